"""Making an environment tries new equations: errors name the function, its line, and what it was called with."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box

from gym_dr import Param
from gym_dr.errors import EquationsError
from tests.envs.equations.swing import Swing, register, step

ID = "tests/Swing-v0"


class Other(NamedTuple):
    angle: float
    spin: float


def failing(p: Any, s: Swing, action: float) -> Any:
    return Swing(s.angle, math.sqrt(-1.0 - s.angle * s.angle)), 0.0, False


def late(p: Any, s: Swing, action: float) -> Any:
    """NaN in the third step."""
    return Swing(s.angle, s.speed + 1.0 if s.speed < 1.5 else math.nan), 0.0, False


def rolling(p: Any, s: Swing, action: float) -> Any:
    return step(p, Swing(s.angle + random.gauss(0.0, 1.0), s.speed), action)


def again(p: Any, s: Swing) -> Any:
    return again(p, s)


def forgetful(p: Any, s: Swing, action: float) -> Any:  # noqa: RET503  which is the mistake
    if s.angle > 1e6:
        return s, 0.0, False


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": rolling}, r"draws random numbers, which no seed .* process_noise=\{'gust': Normal\(0, 1\)\}"),
        ({"begin": lambda p, u: Swing(random.random(), 0.0)}, "draws random numbers, which no seed"),
        ({"observe": again}, "observe failed with RecursionError: .* at test_trial.py:.*`return again"),
        ({"step": forgetful}, "step at .* to return three things, next state, reward and whether .*, got None"),
        ({"step": failing}, r"step failed with ValueError: .* at test_trial.py:27 `return Swing.*, called with Params"),
        ({"step": lambda p, s, a: (s, 0.0)}, r"step at test_trial.py:\d+ to return three things, next state, reward"),
        ({"step": lambda p, s, a: ((s.angle, s.speed), 0.0, False)}, "to return a named tuple of angle, speed, got"),
        ({"step": lambda p, s, a: (Swing(s.angle, None), 0.0, False)}, "to return numbers, got speed = None"),
        ({"step": lambda p, s, a: (s, math.nan, False)}, "got nan in 'reward nan', called with Swing"),
        ({"step": lambda p, s, a: (s, 0.0, s.angle)}, "True or False as whether the episode ends, got"),
        ({"step": late}, r"got nan in Swing\(.*speed=nan\), called with Swing\(.*speed=2.0\)"),
        ({"observe": lambda p, s: (s.angle,)}, "observe at .* to return a tuple of 2 numbers, .* got"),
        ({"observe": lambda p, s: (s.angle, math.nan)}, "got nan in"),
        (
            {"observation_space": Box(np.float32([-9.0, -1e-4]), np.float32([9.0, 1e-4]))},
            r"observe at swing.py:29 to return number 1 from -0.0001 to 0.0001, .* step 1, Swing.*Widen the space",
        ),
    ],
)
def test_errors_of_the_first_steps_are_found_before_anything_is_compiled(
    changed: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.envs.equations.simulation.kernels_of", lambda equations: pytest.fail("compiled"))
    register(**changed)
    for make in (gym.make, lambda env_id: gym.make_vec(env_id, 3)):
        with pytest.raises(EquationsError, match=f"^Equations 'tests/Swing-v0': .*{message}"):
            make(ID)


def test_draws_of_the_presets_are_tried_too() -> None:
    register(
        params=[Param(name="length", nominal=1.0, low=0.0, high=10.0)],
        presets={"default": {}, "zero": {"length": 0.0}},
    )
    with pytest.raises(EquationsError, match=r"step failed with ZeroDivisionError.*swing.py:25 `speed"):
        gym.make(ID)


class TriedError(Exception):
    """Equations have been tried, and would be compiled now, which takes a second."""


@pytest.fixture
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_them(equations: Any) -> Any:
        raise TriedError

    monkeypatch.setattr("gym_dr.envs.equations.simulation.kernels_of", compile_them)


@pytest.mark.usefixtures("nothing_compiled")
def test_values_that_keywords_set_are_tried_too() -> None:
    register(keywords=("length",), observe=lambda p, s: (math.sqrt(9.5 - p.length), s.speed))
    with pytest.raises(TriedError):
        gym.make(ID)
    with pytest.raises(EquationsError, match="observe failed with ValueError"):
        gym.make(ID, length=9.8)


@pytest.mark.parametrize("bounds", [(20.0, 30.0), (-30.0, -20.0), (-np.inf, -50.0), (50.0, np.inf), (-np.inf, np.inf)])
@pytest.mark.usefixtures("nothing_compiled")
def test_actions_are_tried_within_their_bounds(bounds: tuple[float, float]) -> None:
    tried: list[float] = []

    def recorded(p: Any, s: Swing, action: float) -> Any:
        tried.append(action)
        return Swing(s.angle, action), 0.0, False

    register(action_space=Box(*bounds, (1,)), step=recorded)
    with pytest.raises(TriedError):
        gym.make_vec(ID, 3)
    assert len(set(tried)) > 1
    assert all(bounds[0] <= action <= bounds[1] and math.isfinite(action) for action in tried)


def test_fields_reach_the_functions_as_floats_as_in_compiled_code() -> None:
    register(
        start={},
        begin=lambda p, u: Swing(0, False),
        step=lambda p, s, a: (Swing((1.0, 2.0)[s.speed], 0), 0.0, False),
    )
    with pytest.raises(EquationsError, match="step failed with TypeError: tuple indices must be integers"):
        gym.make(ID)


def test_what_is_nan_from_the_beginning_may_stay_so() -> None:
    register(
        begin=lambda p, u: Swing(u.angle, math.nan),
        step=lambda p, s, a: (s, 0.0, False),
        observe=lambda p, s: (1.0, 2.0),
    )
    gym.make(ID).reset(seed=0)


def test_an_environment_that_ends_at_once_is_tried_until_then() -> None:
    register(step=lambda p, s, action: (Swing(9.0, 9.0), 1.0, True))
    assert gym.make_vec(ID, 2).reset(seed=0)[0].shape == (2, 2)
