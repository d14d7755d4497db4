"""Bad input is refused with an error of ours that says what was expected, and nothing has changed then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderVectorEnv
from gym_dr.errors import ConfigError, EnvStateError, InvalidActionError, RandomizationError, UnknownNameError

NUM_ENVS = 3


def started(**kwargs: Any) -> LunarLanderVectorEnv:
    envs = LunarLanderVectorEnv(NUM_ENVS, randomization="extreme", **kwargs)
    envs.reset(seed=0)
    return envs


def state(envs: LunarLanderVectorEnv) -> list[bytes]:
    memory = envs._backend.memory
    arrays = [a for a in (*memory.world, *memory[1:]) if isinstance(a, np.ndarray)]
    return [a.tobytes() for a in (*arrays, envs._elapsed, envs._autoreset.done, envs.draw_index)] + [
        repr(envs.np_random_seed).encode()
    ]


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(2, int),
        np.zeros((3, 1), int),
        0,
        None,
        "abc",
        [0, 1],
        np.zeros(3),
        np.array([True, False, True]),
        np.array([0, 4, 0]),
        np.array([0, -1, 0]),
        np.array([0, 2**63, 0], np.uint64),
        np.array([None, 1, 2]),
    ],
    ids=repr,
)
def test_discrete_actions(actions: Any) -> None:
    envs = started()
    before = state(envs)
    with pytest.raises(InvalidActionError, match=r"[Ee]xpected"):
        envs.step(actions)
    assert state(envs) == before


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(3),
        np.zeros((3, 3)),
        np.zeros((2, 2)),
        np.full((3, 2), np.nan),
        np.array([[0, 0], [0, np.inf], [0, 0]]),
        np.zeros((3, 2), complex),
        np.zeros((3, 2), object),
        [["a", "b"]] * 3,
        None,
    ],
    ids=repr,
)
def test_continuous_actions(actions: Any) -> None:
    envs = started(continuous=True)
    before = state(envs)
    with pytest.raises(InvalidActionError, match=r"[Ee]xpected"):
        envs.step(actions)
    assert state(envs) == before


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"gravity": 1.0}, RandomizationError),
        ({"gravity": np.nan}, RandomizationError),
        ({"gravity": np.inf}, RandomizationError),
        ({"gravity": "low"}, RandomizationError),
        ({"gravity": np.zeros(2)}, RandomizationError),
        ({"enable_wind": 0.5}, RandomizationError),
        ({"lander_density": 0.0}, RandomizationError),
        ({"gravty": -9.0}, UnknownNameError),
        (3, RandomizationError),
    ],
    ids=repr,
)
def test_parameters(params: Any, error: type[Exception]) -> None:
    envs = started()
    before = state(envs)
    with pytest.raises(error):
        envs.reset(seed=1, options={"params": params})
    with pytest.raises(error):
        envs.set_params(params)
    assert state(envs) == before


def test_an_absurd_number_of_sub_environments_is_refused_before_memory_is_touched() -> None:
    with pytest.raises(ConfigError, match="memory"):
        LunarLanderVectorEnv(10**12)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"num_threads": 0},
        {"num_threads": 1.5},
        {"max_episode_steps": 0},
        {"autoreset_mode": "sometimes"},
        {"render_mode": "human"},
        {"render_mode": "ansi"},
    ],
    ids=repr,
)
def test_other_arguments(kwargs: Any) -> None:
    with pytest.raises(ConfigError, match="Expected"):
        LunarLanderVectorEnv(2, **kwargs)


def test_steps_out_of_order() -> None:
    envs = LunarLanderVectorEnv(2)
    with pytest.raises(EnvStateError, match="reset"):
        envs.step(np.zeros(2, int))
    envs.reset(seed=0, options={"reset_mask": np.array([True, False])})
    with pytest.raises(EnvStateError, match="every sub-environment"):
        envs.step(np.zeros(2, int))
    envs.reset(seed=0)
    envs.step(np.zeros(2, int))
    envs.close()
    for call in (lambda: envs.step(np.zeros(2, int)), envs.reset, envs.render):
        with pytest.raises(EnvStateError, match="closed"):
            call()
    envs.close()


def test_rendering_without_a_render_mode_warns_as_gymnasium_does() -> None:
    envs = started()
    with pytest.warns(UserWarning, match="render_mode"):
        assert envs.render() is None
