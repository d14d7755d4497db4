"""Tianshou's vector environments and collector around single environments of ours, as its users write it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import Disturb
from gym_dr.randomization.sampler import draw

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Tianshou's, and of Box2D in its processes
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "tianshou_ppo.py"
ID, NUM_ENVS, SEED = "gym_dr:gym_dr/LunarLanderDR-v3", 3, 7


@pytest.fixture(params=["DummyVectorEnv", "SubprocVectorEnv"])
def vector_class(request: pytest.FixtureRequest) -> Any:
    import tianshou.env

    return getattr(tianshou.env, request.param)


def make_env() -> Any:
    env = gym.make(ID, context="observation", context_params=["gravity"])
    return Disturb(env, {"obs_noise": (0.0, 0.1)})


def collector(envs: Any) -> Any:
    """With random actions and room for everything."""
    from tianshou.algorithm.algorithm_base import Policy
    from tianshou.data import Batch, Collector, CollectStats, VectorReplayBuffer

    class Choose(Policy):  # type: ignore[misc]  # Tianshou may not be installed
        def forward(self, batch: Any, state: Any = None, **_: Any) -> Any:
            return Batch(act=np.zeros(len(batch.obs), np.int64))

    policy = Choose(gym.spaces.Discrete(4))
    return Collector[CollectStats](policy, envs, VectorReplayBuffer(10_000, NUM_ENVS))


def test_the_example_trains() -> None:
    result = runpy.run_path(str(EXAMPLE))["main"](1, 2048, num_envs=2)
    assert (result.train_step, result.update_step) == (2048, 1)
    assert result.train_episode > 10


def test_transitions_carry_the_keyed_draws(vector_class: Any) -> None:
    envs = vector_class([make_env] * NUM_ENVS)
    envs.seed(SEED)
    collecting = collector(envs)
    collecting.collect(n_episode=2 * NUM_ENVS, reset_before_collect=True, random=True)
    rows = collecting.buffer[:]
    assert rows.obs.shape[1] == 8 + 1
    assert {"gravity", "obs_noise"} <= rows.info.params.keys()
    single = make_env().unwrapped
    seeds = (SEED + rows.info.env_id).astype(np.uint64)
    drawn = draw(single.randomization, single.param_space, seeds, rows.info.draw_index.astype(np.int64))
    for name, expected in drawn.items():
        np.testing.assert_array_equal(rows.info.params[name], expected)
    assert len(np.unique(drawn["gravity"])) >= 2 * NUM_ENVS
    envs.close()


def test_parameters_are_pinned_through_the_vector_environment(vector_class: Any) -> None:
    envs = vector_class([make_env] * NUM_ENVS)
    envs.set_env_attr("gravity", -3.0)
    _, infos = envs.reset()
    assert [info["params"]["gravity"] for info in infos] == [-3.0] * NUM_ENVS
    envs.close()
