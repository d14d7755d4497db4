"""What the tests of fits share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def few_particles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the particles, which takes half of a fit's time; slow tests and those of ``gym_dr.fit`` have all."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr("gym_dr.fitting.draws._PARTICLES", 1000)
