"""Equations that a test registers are forgotten after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registered import forgotten_afterwards


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten_afterwards():
        yield
