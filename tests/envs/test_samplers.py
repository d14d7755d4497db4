"""The seam for samplers that learn: whoever steps the environments, they draw the same."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import EpisodeRecord, Randomization, RecordEpisodes, ResampleParams, VectorParams
from tests.plugins.parts.growing import GrowingSampler

ENV_ID = "gym_dr/LunarLanderDR-v3"
BOX = Randomization({"gravity": (-11.0, -5.0), "lander_density": (3.0, 9.0)})
STEPS = 5  # of an episode
NUM_ENVS = 3


def make(mode: str) -> Any:
    if mode == "native":
        return gym.make_vec(ENV_ID, NUM_ENVS, randomization=BOX, max_episode_steps=STEPS)
    kwargs: Any = {"randomization": BOX, "max_episode_steps": STEPS}
    return VectorParams(gym.make_vec(ENV_ID, NUM_ENVS, vectorization_mode=mode, **kwargs))


def play(envs: Any, *, resample: bool) -> list[Any]:
    """Plays with a sampler that learns every seven steps; what was recorded."""
    records: list[EpisodeRecord] = []
    sampler = GrowingSampler(envs.param_space, BOX)
    envs.set_sampler(sampler)
    if resample:
        envs = ResampleParams(envs, rollout_steps=3, every=2)
    outer: Any = RecordEpisodes(envs, records.append)
    outer.reset(seed=20)
    for t in range(40):
        outer.step(np.full(NUM_ENVS, t % 4))
        if t % 7 == 6:
            sampler.update(records[-2:])
            envs.set_sampler(sampler)
    outer.close()
    assert sampler.version > 3
    return [(r.env_index, r.seed, r.draw_index, dict(r.params), r.episode_return) for r in records]


@pytest.mark.parametrize("resample", [False, True], ids=["each episode", "resampled"])
def test_a_sampler_that_learns_draws_the_same_in_all_modes(resample: bool) -> None:
    native = play(make("native"), resample=resample)
    assert len({params["gravity"] for *_, params, _ in native}) > 6
    for mode in ("sync", "async"):
        assert play(make(mode), resample=resample) == native


def test_a_single_environment_draws_as_the_first_of_many() -> None:
    env: Any = gym.make(ENV_ID, randomization=BOX).unwrapped
    envs = make("native")
    for host in (env, envs):
        sampler = GrowingSampler(host.param_space, BOX)
        (host.set_sampler if host is envs else lambda s: setattr(env, "sampler", s))(sampler)
        sampler.load_state({"shares": [0.1, 0.2, 0.3, 0.5]})
    for _ in range(4):
        single, vector = env.reset(seed=None if _ else 5)[1], envs.reset(seed=None if _ else 5)[1]
        assert single["params"]["gravity"] == vector["params"]["gravity"][0]
        assert single["draw_index"] == vector["draw_index"][0]
    envs.close()


def test_context_ranges_are_those_of_the_support() -> None:
    envs = gym.make_vec(ENV_ID, NUM_ENVS, randomization=BOX, context="observation")
    sampler = GrowingSampler(envs.param_space, BOX)  # type: ignore[attr-defined]
    envs.set_sampler(sampler)  # type: ignore[attr-defined]
    observations, info = envs.reset(seed=1)
    # -11 becomes -1 and -5 becomes 1, though only the lowest tenth is drawn
    expected = (info["params"]["gravity"] + 8.0) / 3.0
    assert observations[:, 8] == pytest.approx(expected, abs=1e-6)
    assert (observations[:, 8] < -0.8).all()
    envs.close()
