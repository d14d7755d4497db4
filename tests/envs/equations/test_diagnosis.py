"""What numba cannot compile is said of the user's function and line, with what to write instead."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gym_dr.errors import EquationsError
from tests.envs.equations.bad_lines import EXPECTED
from tests.envs.equations.swing import register


@pytest.mark.filterwarnings("ignore:Assigning a code object:DeprecationWarning")  # by numba, on Python 3.13
@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_the_message_names_function_line_and_remedy(function: Any) -> None:
    named, line, remedy = EXPECTED[function]
    register(step=function)
    with pytest.raises(EquationsError) as caught:
        gym.make_vec("tests/Swing-v0", 2)
    message = str(caught.value)
    assert message.startswith(f"Equations 'tests/Swing-v0': numba cannot compile {named} at bad_lines.py:")
    number = int(message.split("bad_lines.py:")[1].split()[0])
    source = inspect.getsource(inspect.getmodule(function)).splitlines()[number - 1]  # type: ignore[arg-type]
    assert line in source
    assert f"`{source.strip()}`" in message
    assert remedy in message
    assert "\n" not in message
    assert caught.value.__cause__ is not None  # numba's own, for those who want it


def test_names_of_files_and_lines_of_code_are_no_reasons(tmp_path: Path) -> None:
    """Advice follows what numba says, not a folder or a comment with a word such as try, with or array in it."""
    path = tmp_path / "with try" / "array_geometry.py"
    path.parent.mkdir()
    code = "def step(p, s, action):\n    return s, NAMED['a'], False  # try except with"
    path.write_text(f"NAMED = {{'a': 1.0}}\n\n{code}\n")
    spec = importlib.util.spec_from_file_location("array_geometry", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    register(step=module.step)
    with pytest.raises(EquationsError, match=r"step at array_geometry.py:4 .*Make NAMED a number, a tuple or"):
        gym.make("tests/Swing-v0")
