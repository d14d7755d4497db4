"""The formulas of Box2D's environments stand in ``physics.py``, for Python and machine code alike."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gym_dr.compiled.cache import sources_of
from gym_dr.envs.box2d.bipedal_walker import physics as walker
from gym_dr.envs.box2d.bipedal_walker.native import step as walker_step
from gym_dr.envs.box2d.lunar_lander import physics as lander
from gym_dr.envs.box2d.lunar_lander.native import step as lander_step

SCRIPT = """
import sys, gymnasium as gym, gym_dr
env = gym.make("gym_dr/LunarLanderDR-v3")
env.reset(seed=0)
env.step(2)
print("numba" in sys.modules)
"""


@pytest.mark.parametrize(("step", "physics"), [(lander_step, lander), (walker_step, walker)], ids=["lander", "walker"])
def test_machine_code_is_compiled_again_when_a_formula_changes(step: Any, physics: Any) -> None:
    sources = sources_of(Path(inspect.getfile(step)))
    assert Path(inspect.getfile(physics)) in sources


@pytest.mark.skipif(find_spec("Box2D") is None, reason="without Box2D the physics is compiled")
def test_a_lander_on_box2d_needs_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
