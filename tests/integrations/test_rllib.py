"""RLlib's PPO and its runners around native environments, as its users write it."""

from __future__ import annotations

import math
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import DisturbVector, DrawContext, RecordEpisodes, ResampleParams
from gym_dr.randomization.sampler import EpisodeRecord

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Ray warns of its own functions
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "rllib_ppo.py"
NUM_ENVS, SEED = 3, 5


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False)
    yield
    ray.shutdown()


def runner(env: Any, worker_index: int = 1) -> Any:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    config = (
        PPOConfig()
        .environment(env, env_config={"randomization": {"gravity": (-11.5, -5.0)}})
        .env_runners(num_envs_per_env_runner=NUM_ENVS, gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT)
        .debugging(seed=SEED)
    )
    return SingleAgentEnvRunner(config=config, worker_index=worker_index)


@pytest.mark.parametrize("num_env_runners", [0, 1], ids=["local", "remote"])
def test_the_example_trains_and_reports_the_draws(cluster: None, num_env_runners: int) -> None:
    (result,) = runpy.run_path(str(EXAMPLE))["main"](1, num_env_runners, batch=32 * 128)
    assert result["num_env_steps_sampled"] >= 32 * 128
    assert math.isfinite(result["episode_return_mean"])
    assert -11.5 <= result["gravity"] <= -5.0


def test_an_episode_has_one_draw_and_each_has_another(cluster: None) -> None:
    episodes = runner("gym_dr:gym_dr/LunarLanderDR-v3").sample(num_episodes=6, random_actions=True)
    draws = [{info["params"]["gravity"] for info in episode.get_infos()} for episode in episodes]
    assert [len(values) for values in draws] == [1] * len(episodes)
    assert len(set().union(*draws)) == len(episodes)


def test_wrappers_work_below_a_runner_and_reset_steps_are_no_steps_of_its_episodes(cluster: None) -> None:
    records: list[EpisodeRecord] = []

    def make(context: Any) -> Any:  # as RLlib calls for an environment of one's own
        envs = gym.make_vec("gym_dr/LunarLanderDR-v3", context["num_envs"], randomization=context["randomization"])
        envs = DisturbVector(ResampleParams(envs, rollout_steps=150), {"obs_noise": (0.0, 0.1)})
        return DrawContext(RecordEpisodes(envs, callback=records.append), "observation", ["gravity"])

    found = runner(make).sample(num_episodes=9, random_actions=True)
    ended = [episode for episode in found if episode.is_done]
    left = sorted((len(episode), episode.get_return()) for episode in ended)
    right = sorted((record.length, record.episode_return) for record in records)
    np.testing.assert_allclose(left, right)
    assert found[0].get_observations(0).shape == (9,)
    assert {record.draw_index for record in records} >= {0, 1}
    assert {"gravity", "obs_noise"} <= records[0].params.keys()
