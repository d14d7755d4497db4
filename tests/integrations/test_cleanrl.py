"""A loop in CleanRL's manner around our environments: Gymnasium's statistics, SAME_STEP, observations as they come."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from gym_dr import RecordEpisodes
from gym_dr.randomization.sampler import EpisodeRecord

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).parents[2] / "examples" / "cleanrl_ppo.py"
ID, NUM_ENVS, SEED = "gym_dr:gym_dr/LunarLanderDR-v3", 4, 1


def make_env() -> Any:
    """The constructor of ``ppo.py``."""
    return gym.wrappers.RecordEpisodeStatistics(gym.make(ID))


def play(envs: Any, steps: int = 250) -> list[tuple[float, int]]:
    """Random actions; the return and length of each finished episode, as ``ppo.py`` reads them."""
    found = []
    rng = np.random.default_rng(SEED)
    envs.reset(seed=SEED)
    for _ in range(steps):
        *_, infos = envs.step(rng.integers(4, size=NUM_ENVS))
        final = infos.get("final_info", infos)
        where = infos if "episode" in infos else final  # of the vector environment, or of the single ones
        if "episode" in where:
            done = where["_episode"]
            found += zip(where["episode"]["r"][done].tolist(), where["episode"]["l"][done].tolist(), strict=True)
    return found


def test_the_example_trains() -> None:
    returns = runpy.run_path(str(EXAMPLE))["main"](4096, num_envs=32)
    assert len(returns) > 10
    assert all(math.isfinite(value) for value in returns)


def test_native_environments_give_the_episodes_of_the_constructors_of_ppo_py() -> None:
    records: list[EpisodeRecord] = []
    same = AutoresetMode.SAME_STEP
    native = RecordEpisodes(gym.make_vec(ID, NUM_ENVS, autoreset_mode=same), callback=records.append)
    expected = play(gym.vector.SyncVectorEnv([make_env] * NUM_ENVS, autoreset_mode=same))
    found = play(RecordEpisodeStatistics(native))
    assert len(expected) >= 2 * NUM_ENVS
    np.testing.assert_allclose(found, expected)
    assert [(record.episode_return, record.length) for record in records] == found
    assert len({record.params["gravity"] for record in records}) == len(records)
