"""What numba cannot compile is said of the user's function and line, with what to write instead."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
import pytest

from gym_dr.errors import EquationsError
from tests.envs.equations.bad_lines import EXPECTED
from tests.envs.equations.swing import register


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
