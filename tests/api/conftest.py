"""Fixtures that several files of tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.fit_sample import short_log


@pytest.fixture(scope="module")
def short() -> list[dict[str, Any]]:
    """A log of a cart, for fits whose numbers do not matter."""
    return short_log()


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a fit."""
    return tmp_path_factory.mktemp("fits") / "fitted.toml"
