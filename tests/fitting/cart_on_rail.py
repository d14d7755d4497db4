"""A cart on a rail, of which only the position is measured: x' = v, v' = gain u - drag v."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from gym_dr import Param, register_equations

ID = "tests/CartOnRail-v0"
STEP = 0.01  # s


class State(NamedTuple):
    x: float
    v: float


def begin(c: Any, u: Any) -> State:
    return State(u.x, u.v)


def step(c: Any, s: State, action: float) -> tuple[State, float, bool]:
    v = s.v + STEP * (c.gain * action - c.drag * s.v)
    return State(s.x + STEP * v, v), 0.0, False


def observe(c: Any, s: State) -> tuple[float, ...]:
    return (s.x,)


def state_from(observation: tuple[float, ...]) -> tuple[float, ...]:
    return observation[0], math.nan


def register() -> None:
    """Registers it; in a test, ``forgotten_afterwards``."""
    register_equations(
        ID,
        params=[
            Param(name="gain", nominal=2.0, low=-9.0, high=9.0, unit="m/s^2", doc="acceleration under full action"),
            Param(name="drag", nominal=1.0, low=0.0, high=9.0, unit="1/s", doc="of the air"),
        ],
        observation_space=Box(-np.inf, np.inf, (1,)),
        action_space=Box(-1.0, 1.0, (1,)),
        start={"x": (-0.1, 0.1), "v": (-0.1, 0.1)},
        begin=begin,
        step=step,
        observe=observe,
        presets={"default": {"gain": (-5.0, 5.0)}},
        state_from=state_from,
        time_step=STEP,
    )


def ridden(
    gain: float = 2.0, drag: float = 1.0, *, friction: float = 0.0, noise: float = 5e-4, seed: int = 0
) -> list[dict[str, Any]]:
    """Three episodes of 300 steps; with dry ``friction`` (m/s^2), which the equations lack."""
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(3):
        state, rows, actions = State(*rng.uniform(-0.1, 0.1, 2)), [], np.repeat(rng.uniform(-1.0, 1.0, 20), 15)
        rows.append(state.x)
        for action in actions:
            v = state.v + STEP * (gain * action - drag * state.v - friction * np.tanh(state.v / 0.02))
            state = State(state.x + STEP * v, v)
            rows.append(state.x)
        seen = np.array(rows)[:, None] + noise * rng.standard_normal((len(rows), 1))
        episodes.append({"observations": seen, "actions": actions[:, None], "time": STEP * np.arange(len(rows))})
    return episodes
