"""Tests with other packages, each of which is installed in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves files alone whose tests are not asked for, since they import packages that need not be there."""
    unasked = "not integration" in config.option.markexpr
    return True if unasked and collection_path.name.startswith("test_") else None
