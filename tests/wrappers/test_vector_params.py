from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import (
    AdaptParams,
    DisturbVector,
    DrawContext,
    EpisodeRecord,
    RandomizeAttributes,
    RecordEpisodes,
    ResampleParams,
    VectorParams,
)
from gym_dr.errors import GymDrError, RandomizationError

ENV_ID = "gym_dr/LunarLanderDR-v3"
SLOW = pytest.mark.slow


def test_environments_without_parameters_are_refused() -> None:
    with pytest.raises(RandomizationError, match="wrap each sub-environment in RandomizeAttributes"):
        VectorParams(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"))


@pytest.mark.parametrize("make", [gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv])
def test_environments_wrapped_in_randomize_attributes_have_parameters(make: Any) -> None:
    envs = VectorParams(make([lambda: RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.3, 0.9)})] * 2))
    envs.set_params({"length": [0.4, 0.5]})
    _, info = envs.reset(seed=1)
    assert info["params"]["length"].tolist() == [0.4, 0.5]
    envs.close()


# keywords of sub-environments: the landers of Gymnasium's tutorial, and ranges beside each other
TUTORIAL = (
    {"gravity": -10.0, "enable_wind": True, "wind_power": 15.0, "turbulence_power": 1.5},
    {"gravity": -9.8, "enable_wind": True, "wind_power": 10.0, "turbulence_power": 1.3},
    {"gravity": -7.0, "enable_wind": False},
)
RANGES = tuple({"randomization": {"gravity": (-high - 1, -high)}} for high in (1, 4, 8))


def different(keywords: Any, make: Any = gym.vector.SyncVectorEnv) -> Any:
    return make([partial(gym.make, ENV_ID, **given) for given in keywords])


@pytest.mark.parametrize("make", [gym.vector.SyncVectorEnv, pytest.param(gym.vector.AsyncVectorEnv, marks=SLOW)])
@pytest.mark.parametrize("keywords", [TUTORIAL, RANGES], ids=["tutorial", "ranges"])
def test_sub_environments_with_other_keywords_or_ranges_keep_their_own(keywords: Any, make: Any) -> None:
    expected = [gym.make(ENV_ID, **given).reset(seed=20 + i)[1]["params"] for i, given in enumerate(keywords)]
    envs = ResampleParams(different(keywords, make), rollout_steps=2)
    envs.reset(seed=20)
    for name, values in envs.params.items():
        assert values.tolist() == [row[name] for row in expected]
    envs.close()


@pytest.mark.parametrize("keywords", [TUTORIAL, RANGES], ids=["tutorial", "ranges"])
@pytest.mark.parametrize(
    "common",
    [
        lambda envs: ResampleParams(envs, rollout_steps=2).randomization,
        lambda envs: VectorParams(envs).set_params({"wind_power": 5.0}),
        lambda envs: VectorParams(envs).reset(options={"params": {"gravity": -3.0}}),
        lambda envs: DrawContext(envs, "observation", ["gravity"]),
        lambda envs: AdaptParams(envs, "uniform"),
        lambda envs: DisturbVector(envs, {"obs_noise": 0.1}).randomization,
    ],
)
def test_what_holds_for_all_sub_environments_is_refused_where_they_differ(keywords: Any, common: Any) -> None:
    envs = different(keywords)
    with pytest.raises(GymDrError, match="sub-environment 1"):
        common(envs)


def test_pushes_that_would_not_reach_every_sub_environment_are_refused() -> None:
    envs = gym.vector.SyncVectorEnv([lambda: gym.make("gym_dr/CartPoleDR-v1"), lambda: gym.make("CartPole-v1")])
    with pytest.raises(RandomizationError, match="push"):
        DisturbVector(envs, {"push_speed": 1.0, "push_probability": 1.0})


def test_a_record_has_the_values_that_its_own_sub_environment_reports() -> None:
    records: list[EpisodeRecord] = []
    ranges = {"body_mass:torso": (3, 4)}, {"body_mass:foot": (4, 5)}
    make = partial(gym.make, "gym_dr/HopperDR-v5", max_episode_steps=1)
    envs = RecordEpisodes(
        gym.vector.SyncVectorEnv([partial(make, randomization=one) for one in ranges]), records.append
    )
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    assert [list(record.params) for record in records] == [["body_mass:torso"], ["body_mass:foot"]]


def test_a_reset_that_gymnasium_refuses_leaves_no_values_behind() -> None:
    envs = VectorParams(gym.make_vec(ENV_ID, 3, vectorization_mode="sync"))
    with pytest.raises(ValueError, match="Expected a seed for each"):
        envs.reset(seed=[1, 2], options={"params": {"gravity": -2.0}})
    _, info = envs.reset(seed=1)
    assert (info["params"]["gravity"] != -2.0).all()


def test_the_autoreset_mode_is_an_attribute_of_every_wrapper_too() -> None:
    for envs in (
        gym.make_vec(ENV_ID, 2, autoreset_mode="Disabled"),
        VectorParams(gym.make_vec(ENV_ID, 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"})),
    ):
        wrapped: Any = DrawContext(RecordEpisodes(ResampleParams(envs, rollout_steps=1), callback=print), "hidden")
        assert wrapped.autoreset_mode is wrapped.metadata["autoreset_mode"] is AutoresetMode.DISABLED


class Failing(gym.Wrapper[Any, Any, Any, Any]):
    """An environment whose resets fail while told to."""

    fails = False

    def reset(self, **kwargs: Any) -> Any:
        if self.fails:
            raise RuntimeError("no contact with the hardware")
        return super().reset(**kwargs)


def test_exact_values_end_with_the_reset_that_they_are_for_even_if_it_fails() -> None:
    inner = gym.vector.SyncVectorEnv(
        [partial(gym.make, "gym_dr/CartPoleDR-v1"), lambda: Failing(gym.make("gym_dr/CartPoleDR-v1"))]
    )
    envs: Any = VectorParams(inner)
    expected = envs.reset(seed=1)[1]["params"]
    inner.envs[1].fails = True  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="hardware"):
        envs.reset(options={"params": {"length": 0.7}})
    inner.envs[1].fails = False  # type: ignore[attr-defined]
    np.testing.assert_equal(envs.reset(seed=1)[1]["params"], expected)
