"""Native environments repeat episodes that were recorded on Box2D 2.3.10, also where it is not installed."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.golden import IDS, SEEDS, file_of


@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
@pytest.mark.parametrize("env_id", IDS)
def test_recorded_episodes_are_repeated(env_id: str) -> None:
    recorded: Any = np.load(file_of(env_id))
    envs = gym.make_vec(env_id, len(SEEDS), randomization="none")
    space: Any = envs.unwrapped.param_space  # type: ignore[attr-defined]  # NativeVectorEnv's
    values = np.array([recorded[f"params_{i}"] for i in range(len(SEEDS))])
    params = dict(zip(space, values.T, strict=True))
    observations, _ = envs.reset(seed=list(SEEDS), options={"params": params})
    ends = [len(recorded[f"actions_{i}"]) for i in range(len(SEEDS))]
    assert min(ends) > 40
    for i in range(len(SEEDS)):
        assert (observations[i] == recorded[f"observations_{i}"][0]).all()
    for t in range(max(ends)):
        actions = np.array([recorded[f"actions_{i}"][min(t, ends[i] - 1)] for i in range(len(SEEDS))])
        observations, rewards, terminated, _, _ = envs.step(actions)
        for i in (i for i, end in enumerate(ends) if t < end):
            assert (observations[i] == recorded[f"observations_{i}"][t + 1]).all(), (i, t)
            assert rewards[i] == recorded[f"rewards_{i}"][t], (i, t)
            assert terminated[i] == (bool(recorded[f"terminated_{i}"]) and t == ends[i] - 1), (i, t)
    envs.close()
