"""The formulas of Box2D's environments stand in ``physics.py``, for Python and machine code alike."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from gym_dr.compiled.cache import sources_of
from gym_dr.envs.box2d.bipedal_walker import physics as walker
from gym_dr.envs.box2d.bipedal_walker.native import step as walker_step
from gym_dr.envs.box2d.lunar_lander import physics as lander
from gym_dr.envs.box2d.lunar_lander.native import step as lander_step


@pytest.mark.parametrize(("step", "physics"), [(lander_step, lander), (walker_step, walker)], ids=["lander", "walker"])
def test_machine_code_is_compiled_again_when_a_formula_changes(step: Any, physics: Any) -> None:
    sources = sources_of(Path(inspect.getfile(step)))
    assert Path(inspect.getfile(physics)) in sources
