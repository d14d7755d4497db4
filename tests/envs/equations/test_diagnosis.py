"""What numba says of code that it cannot compile is passed on with the user's function, file and line."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
import pytest

from gym_dr.errors import EquationsError
from tests.envs.equations.bad_lines import EXPECTED, calls_what_forgets, reads_a_list
from tests.envs.equations.swing import register

QUICK = (reads_a_list, calls_what_forgets)  # in the function itself, and in one that it calls


@pytest.mark.filterwarnings("ignore:Assigning a code object:DeprecationWarning")  # by numba, on Python 3.13
@pytest.mark.parametrize(
    "function",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in EXPECTED],
    ids=lambda function: function.__name__,
)
def test_the_message_names_function_and_line(function: Any) -> None:
    named, line, said = EXPECTED[function]
    register(step=function)
    with pytest.raises(EquationsError) as caught:
        gym.make_vec("tests/Swing-v0", 2)
    message = str(caught.value)
    assert message.startswith(f"Equations 'tests/Swing-v0': numba cannot compile {named} at bad_lines.py:")
    number = int(message.split("bad_lines.py:")[1].split()[0])
    source = inspect.getsource(inspect.getmodule(function)).splitlines()[number - 1]  # type: ignore[arg-type]
    assert line in source
    assert f"`{source.strip()}`" in message
    assert said in message
    assert "\n" not in message
    assert caught.value.__cause__ is not None  # numba's own, for those who want it
