"""Dictionaries, tuples and images as observations: wrappers pass them on, and add the draw as one more part."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import AdaptParams, DrawContext, FrameStack, RandomizeMujoco, RecordEpisodes, ResampleParams
from gym_dr.errors import ConfigError
from gym_dr.testing.playing import DISABLED, NEXT_STEP, SAME_STEP, assert_same, play
from gym_dr.wrappers.finite import RequireFinite
from gym_dr.wrappers.vector_params import VectorParams
from tests.wrappers.observed import IMAGE, SPACES, VECTOR, make, make_several

OTHERS = [kind for kind in SPACES if kind != "vector"]
PARTS = [kind for kind in OTHERS if kind != "image"]  # to which the draw can be added
STEPS = 11  # two episodes
# workers take long to start, and return what the environments inside of them do
WAYS = [("sync", mode) for mode in AutoresetMode] + [("async", SAME_STEP)]


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize(("vectorization", "mode"), WAYS)
def test_wrappers_pass_observations_on_as_they_are(kind: str, vectorization: str, mode: Any) -> None:
    episodes: list[Any] = []
    plain = play(make_several(kind, mode), STEPS)
    # each of them draws what the environment does
    envs = AdaptParams(VectorParams(make_several(kind, mode, vectorization)), "uniform", every=2)
    envs = RecordEpisodes(RequireFinite(DrawContext(envs, "info")), episodes.append)
    assert_same(play(envs, STEPS), plain)
    assert len(episodes) == 6
    assert envs.observation_space == gym.vector.utils.batch_space(SPACES[kind], 3)
    envs.close()


@pytest.mark.parametrize("kind", OTHERS)
def test_draws_may_be_held_while_any_kind_of_observation_passes(kind: str) -> None:
    envs = ResampleParams(make_several(kind, SAME_STEP), rollout_steps=STEPS + 1)
    rows = play(envs, STEPS)
    assert all(row[0] in envs.observation_space for row in rows)
    assert_same([row[-1]["params"] for row in rows], [rows[0][-1]["params"]] * len(rows))


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize(("vectorization", "mode"), WAYS)
def test_the_draw_is_one_more_part_of_an_observation(kind: str, vectorization: str, mode: Any) -> None:
    keyword = make_several(kind, mode, vectorization, context="observation")
    wrapper = DrawContext(VectorParams(make_several(kind, mode)), "observation")
    assert keyword.single_observation_space == wrapper.single_observation_space
    rows = play(wrapper, STEPS)
    assert_same(play(keyword, STEPS), rows)
    keyword.close()
    for (shown, *_, info), (plain, *_) in zip(rows, play(make_several(kind, mode), STEPS), strict=True):
        assert shown in wrapper.observation_space
        added, rest = (shown["context"], {**shown}) if isinstance(shown, dict) else (shown[-1], shown[:-1])
        if isinstance(rest, dict):
            del rest["context"]
        assert_same(rest, plain)
        np.testing.assert_allclose(added[:, 0], (info["params"]["gain"] - 1.25) / 0.75, atol=1e-6)


def test_a_single_environment_on_mujoco_shows_it_likewise() -> None:
    hopper: Any = gym.make("Hopper-v5")
    space = gym.spaces.Dict(joints=hopper.observation_space)
    named = gym.wrappers.TransformObservation(hopper, lambda observation: {"joints": observation}, space)
    env = RandomizeMujoco(named, {"gravity.z": (-12.0, -8.0)}, context="observation")
    for observation, *_, info in (env.reset(seed=1), env.step(np.zeros(3, np.float32))):
        assert observation in env.observation_space
        np.testing.assert_allclose(observation["context"], [(info["params"]["gravity.z"] + 10) / 2], atol=1e-6)


@pytest.mark.parametrize("space", [IMAGE, gym.spaces.Discrete(3), gym.spaces.Dict(context=VECTOR)])
def test_observations_that_have_no_place_for_the_draw_are_refused(space: gym.Space[Any]) -> None:
    with pytest.raises(ConfigError, match=r"context='observation': expected .*TransformObservation"):
        make(space, context="observation")
    with pytest.raises(ConfigError, match=r"context='observation': expected .*TransformObservation"):
        DrawContext(make_several(space, NEXT_STEP), "observation")


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(("shape", "axis"), [((36, 40, 3), -1), ((1, 36, 40), -3)])
def test_images_are_stacked_along_their_colors(mode: Any, shape: tuple[int, ...], axis: int) -> None:
    space = gym.spaces.Box(0, 255, shape, np.uint8)
    envs = FrameStack(make_several(space, mode), stack_observations=2)
    plain = play(make_several(space, mode), STEPS)
    before = plain[0][0]
    for (shown, *_, info), (now, *_, expected) in zip(play(envs, STEPS), plain, strict=True):
        assert shown in envs.observation_space
        latest, earlier = np.split(shown, 2, axis)
        np.testing.assert_array_equal(latest, now)
        begun = (earlier == now).all(axis=(1, 2, 3))
        np.testing.assert_array_equal(earlier[~begun], before[~begun])
        for i in np.flatnonzero(expected.get("_final_obs", [])).tolist():
            last = np.concatenate([expected["final_obs"][i], before[i]], axis)
            np.testing.assert_array_equal(info["final_obs"][i], last)
        before = now


@pytest.mark.parametrize(
    ("kind", "reward"), [("dict", False), ("tuple", False), ("image", True), (gym.spaces.Box(0, 1, (4, 4)), False)]
)
def test_observations_that_cannot_be_stacked_are_refused_with_what_can(kind: Any, reward: bool) -> None:
    with pytest.raises(ConfigError, match=r"FrameStack: expected .*FrameStackObservation"):
        FrameStack(make_several(kind, DISABLED), stack_observations=2, observe_reward=reward)
