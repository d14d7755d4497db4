"""A wrapper without a state of its own passes on the environment's; the others refuse by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import AdaptParams, DisturbVector, DrawContext, ObservePast, RecordEpisodes, ResampleParams, VectorParams
from gym_dr.errors import EnvStateError
from gym_dr.testing.playing import assert_same
from gym_dr.wrappers.finite import RequireFinite

WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "AdaptParams": lambda envs: AdaptParams(envs, "adr", success=100),
    "DisturbVector": lambda envs: DisturbVector(envs, {"obs_noise": (0.0, 0.1)}),
    "DrawContext": lambda envs: DrawContext(envs, "observation"),
    "ObservePast": lambda envs: ObservePast(envs, stack_observations=3),
    "RecordEpisodes": lambda envs: RecordEpisodes(envs, print),
    "ResampleParams": lambda envs: ResampleParams(envs, rollout_steps=3),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_with_a_state_of_its_own_refuses_by_name(name: str) -> None:
    envs = WRAPPERS[name](gym.make_vec("gym_dr/CartPoleDR-v1", 2, randomization="wide"))
    envs.reset(seed=1)
    for wrapped in (envs, RequireFinite(envs)):
        for call in (wrapped.get_state, lambda wrapped=wrapped: wrapped.set_state(envs.unwrapped.get_state())):
            with pytest.raises(EnvStateError, match=f"{name} does not offer its state"):
                call()


def test_a_wrapper_without_one_passes_the_environments_on() -> None:
    envs = RequireFinite(gym.make_vec("gym_dr/CartPoleDR-v1", 2))
    envs.reset(seed=1)
    state, actions = envs.get_state(), np.ones(2, np.int64)
    expected = envs.step(actions)
    envs.set_state(state)
    assert_same(envs.step(actions), expected)
    envs.set_state(state, np.array([True, False]))
    assert not np.array_equal(envs.unwrapped.get_state()["physics/state"], state["physics/state"])  # type: ignore[attr-defined]


def test_gymnasiums_vector_environments_offer_none() -> None:
    envs = gym.make_vec("gym_dr/CartPoleDR-v1", 2, vectorization_mode="sync")
    with pytest.raises(EnvStateError, match="SyncVectorEnv does not offer its state"):
        RequireFinite(envs).get_state()
    with pytest.raises(EnvStateError, match="VectorParams does not offer its state"):
        RequireFinite(VectorParams(envs)).get_state()
