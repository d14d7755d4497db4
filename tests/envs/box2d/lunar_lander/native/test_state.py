"""A Box2D environment's state put into a native one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderVectorEnv
from gym_dr.envs.box2d.lunar_lander.env import LunarLanderDR
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.lunar_lander.native.box2d_state import from_box2d
from tests.envs.box2d.lunar_lander.native.duel import heuristic_policy, random_policy


def start(seed: int, policy: Any, steps: int) -> tuple[LunarLanderDR, Any, np.random.Generator]:
    """A Box2D environment ``steps`` steps into an episode, or where a leg has just touched the ground."""
    env = LunarLanderDR(randomization="extreme")
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        observation, _, terminated, _, _ = env.step(policy(rng, env, observation))
        assert not terminated
        if observation[6] or observation[7]:
            break
    return env, observation, rng


@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
@pytest.mark.parametrize(("policy", "steps"), [(random_policy, 25), (random_policy, 50), (heuristic_policy, 500)])
def test_a_native_environment_goes_on_from_box2ds_state(policy: Any, steps: int) -> None:
    for seed in range(4):
        env, observation, rng = start(seed, policy, steps)
        native = LunarLanderVectorEnv(3, randomization="none")
        native.reset(seed=99, options={"params": env.params})
        from_box2d(native._backend.arrays, 1, env)
        for _ in range(400):
            action = policy(rng, env, observation)
            observation, reward, terminated, _, _ = env.step(action)
            theirs = native.step(np.array([0, action, 0]))
            assert (theirs[0][1] == observation).all()
            assert (theirs[1][1], theirs[2][1]) == (reward, terminated)
            if terminated:
                break
