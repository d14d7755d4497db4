"""What the tests of fits share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _few(request: pytest.FixtureRequest) -> None:
    """Slow tests, and those of ``gym_dr.fit``, have all particles."""
    if request.node.get_closest_marker("slow") is None:
        request.getfixturevalue("few_particles")
