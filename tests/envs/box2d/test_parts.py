"""Parts of a step, which a second process may compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gym_dr.envs.box2d.backend import parts_of
from gym_dr.envs.box2d.bipedal_walker.backend import BipedalWalkerBackend
from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderBackend

SCRIPT = """
import sys
from tests.envs.box2d.test_parts import BipedalWalkerBackend, LunarLanderBackend, parts_of
backend = {"walker": BipedalWalkerBackend, "lander": LunarLanderBackend}[sys.argv[1]]()
backend.allocate(1, 1)
for function, kinds in parts_of(backend.topology, backend._group(backend.stepper.buffers)):
    print(function.__name__, kinds in function.overloads)
"""


@pytest.mark.parametrize("backend", [LunarLanderBackend, BipedalWalkerBackend])
def test_parts_have_names_that_another_process_finds(
    backend: type[LunarLanderBackend | BipedalWalkerBackend],
) -> None:
    made = backend()
    made.allocate(1, 1)
    for function, kinds in parts_of(made.topology, made._group(made.stepper.buffers)):
        assert getattr(sys.modules[function.__module__], function.__name__) is function
        assert len(kinds) == function.py_func.__code__.co_argcount


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lander", "walker"])
def test_the_step_calls_every_part_with_arguments_of_just_these_types(family: str, tmp_path: Path) -> None:
    # otherwise a second process would compile it in vain; the step is compiled by one process alone
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    script = f"from gym_dr.compiled import companion; companion.start = lambda *_: None\n{SCRIPT}"
    command = [sys.executable, "-c", script, family]
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    assert {line.split()[1] for line in output.splitlines()} == {"True"}, output
