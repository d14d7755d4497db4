from __future__ import annotations

import json
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import (
    DrawContext,
    EpisodeRecord,
    RandomizeAttributes,
    RandomizeMujoco,
    RecordEpisodes,
    ResampleParams,
)
from gym_dr.errors import ConfigError, RandomizationError, UnknownNameError
from gym_dr.randomization.context import ContextRange, normalized_context
from gym_dr.testing.playing import assert_same, play

LANDER = "gym_dr/LunarLanderDR-v3"
HOPPER = "gym_dr/HopperDR-v5"
RULES: dict[str, dict[str, Any]] = {
    LANDER: {"gravity": (-12.0, -2.0), "wind_power": (0.0, 20.0)},
    HOPPER: {"body_mass:torso": (3.0, 4.0), "gravity.z": (-12.0, -8.0)},
}
MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)


def make(env_id: str, kind: str, num_envs: int = 3, mode: Any = AutoresetMode.NEXT_STEP, **kwargs: Any) -> Any:
    kwargs = {"randomization": RULES[env_id], "max_episode_steps": 6, **kwargs}
    if kind == "native":
        return gym.make_vec(env_id, num_envs, autoreset_mode=mode, **kwargs)
    vector_kwargs = {"autoreset_mode": mode}
    return gym.make_vec(env_id, num_envs, vectorization_mode=kind, vector_kwargs=vector_kwargs, **kwargs)


def expected(params: dict[str, Any]) -> Any:
    """Of the lander, by hand: (low + high) / 2 becomes 0, half the width 1."""
    return np.stack([(params["gravity"] + 7.0) / 5.0, (params["wind_power"] - 10.0) / 10.0], axis=-1)


@pytest.mark.parametrize(("env_id", "mode"), [*zip([LANDER, LANDER, HOPPER], MODES, strict=True)])
def test_keyword_and_wrapper_native_and_sync_show_the_same(env_id: str, mode: AutoresetMode) -> None:
    ways = [
        make(env_id, "native", mode=mode, context="observation"),
        make(env_id, "sync", mode=mode, context="observation"),
        DrawContext(make(env_id, "native", mode=mode), "observation"),
        DrawContext(make(env_id, "sync", mode=mode), "observation"),
    ]
    assert all(envs.observation_space == ways[0].observation_space for envs in ways)
    first, *others = [play(envs, 20) for envs in ways]
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a[0], b[0], atol=1e-9)
            np.testing.assert_array_equal(a[0][:, -2:], b[0][:, -2:])


def test_resampled_and_set_values_are_shown() -> None:
    envs = DrawContext(ResampleParams(make(LANDER, "native"), rollout_steps=2), "observation")
    observations, info = envs.reset(seed=1)
    np.testing.assert_allclose(observations[:, -2:], expected(info["params"]), atol=1e-6)
    # values beyond the range are shown as its nearest end
    observations, _ = envs.reset(options={"params": {"gravity": [-7.0, -1.0, -12.0]}})
    np.testing.assert_allclose(observations[:, -2], [0.0, 1.0, -1.0])


def test_a_subset_and_ranges_of_ones_own_can_be_chosen() -> None:
    one = make(LANDER, "native", context="observation", context_params=["wind_power"])
    assert one.single_observation_space.shape == (9,)
    fixed = make(LANDER, "native", context="observation", context_params={"gravity": (-20.0, 0.0)})
    observations, info = fixed.reset(seed=1)
    np.testing.assert_allclose(observations[:, -1], (info["params"]["gravity"] + 10.0) / 10.0, atol=1e-6)
    # not randomized: physical bounds, 0 to 2 around the nominal 0.1
    bounds = make(LANDER, "native", context="observation", context_params=["ground_friction"])
    np.testing.assert_allclose(bounds.reset(seed=1)[0][:, -1], -0.9, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_the_wrapper_hides_draws_as_the_keyword_does(mode: AutoresetMode) -> None:
    keyword, wrapper = make(LANDER, "native", mode=mode, context="hidden"), make(LANDER, "native", mode=mode)
    for one, other in zip(play(keyword, 8), play(DrawContext(wrapper, "hidden"), 8), strict=True):
        assert_same(one, other)
        assert not {"params", "_params"} & (other[-1].keys() | other[-1].get("final_info", {}).keys())


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_recorded_with_their_draws_inside_of_the_wrapper_that_hides_them(mode: AutoresetMode) -> None:
    hidden: list[EpisodeRecord] = []
    seen: list[EpisodeRecord] = []
    play(DrawContext(RecordEpisodes(make(LANDER, "native", mode=mode), hidden.append), "hidden"), 20)
    play(RecordEpisodes(make(LANDER, "native", mode=mode), seen.append), 20)
    assert hidden == seen
    assert len(seen) >= 6
    assert all("gravity" in record.params for record in hidden)


def test_a_single_environment_is_made_again_from_its_spec() -> None:
    env = gym.make(LANDER, context="observation", context_params={"gravity": (-12.0, 0.0)})
    spec = env.spec
    assert spec is not None
    for again in (gym.make(spec), gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))):
        assert again.observation_space == env.observation_space
        np.testing.assert_array_equal(again.reset(seed=4)[0], env.reset(seed=4)[0])
    assert json.loads(spec.to_json())["kwargs"]["context"] == "observation"


def test_a_span_scales_what_is_shown_and_its_bounds() -> None:
    plain = DrawContext(make(LANDER, "native"), "observation")
    small = DrawContext(make(LANDER, "native"), "observation", ["wind_power", "gravity"], span=0.25)
    first, second = plain.reset(seed=1)[0], small.reset(seed=1)[0]
    np.testing.assert_allclose(second[:, 8:], 0.25 * first[:, [10, 9]], rtol=1e-6)  # enable_wind comes first
    assert small.single_observation_space.high[8:].tolist() == [0.25, 0.25]
    assert small.observation_space.low[:, 8:].tolist() == [[-0.25, -0.25]] * 3


@pytest.mark.parametrize(
    "context", [("observation", None, 0.0), ("observation", None, float("nan")), ("info", None, 0.5)]
)
def test_impossible_spans_are_refused(context: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError, match="span above 0"):
        DrawContext(make(LANDER, "native"), *context)


def test_the_largest_ranges_are_mapped_linearly_too() -> None:
    ranges = (ContextRange(name="x", low=-1e308, high=0.0, nominal=0.0),)
    shown = normalized_context({"x": np.array([-1e308, -7.5e307, -1e307, 0.0])}, ranges)
    np.testing.assert_allclose(shown[:, 0], [-1.0, -0.5, 0.8, 1.0])


@pytest.mark.parametrize(
    ("error", "kwargs"),
    [
        (UnknownNameError, {"context": "visible"}),
        (UnknownNameError, {"context": "observation", "context_params": ["gravty"]}),
        (ConfigError, {"context": "info", "context_params": ["gravity"]}),
        (RandomizationError, {"context": "observation", "context_params": []}),
        (RandomizationError, {"context": "observation", "context_params": "gravity"}),
        (RandomizationError, {"context": "observation", "context_params": ["gravity", "gravity"]}),
        (RandomizationError, {"context": "observation", "context_params": {"gravity": (0.0, -1.0)}}),
        (RandomizationError, {"context": "observation", "context_params": {"gravity": (0.0,)}}),
        (RandomizationError, {"context": "observation", "context_params": {"gravity": (float("nan"), 1.0)}}),
        (RandomizationError, {"context": "observation", "context_params": {"gravity": (-1e308, 1e308)}}),
        (RandomizationError, {"context": "observation", "context_params": {"gravity": ("-9", "-1")}}),
        (RandomizationError, {"context": "observation", "randomization": "none"}),
    ],
)
def test_impossible_contexts_are_refused(error: type[Exception], kwargs: dict[str, Any]) -> None:
    given = {"randomization": RULES[LANDER], **kwargs}
    envs = make(LANDER, "native", randomization=given.pop("randomization"))
    with pytest.raises(error):
        DrawContext(envs, **given)


def test_hidden_draws_cannot_be_shown() -> None:
    envs = DrawContext(make(LANDER, "native", context="hidden"), "observation")
    with pytest.raises(RandomizationError, match="hidden"):
        envs.reset(seed=1)


def test_observations_that_are_no_row_of_numbers_are_refused() -> None:
    class Pictures(gym.vector.VectorWrapper):
        single_observation_space = gym.spaces.Box(0, 255, (4, 4), np.uint8)

    with pytest.raises(ConfigError, match="expected a flat Box"):
        DrawContext(Pictures(make(LANDER, "native")), "observation")


WRAPPERS: dict[str, Any] = {
    "CartPole-v1": partial(RandomizeAttributes, randomization={"length": (0.25, 0.75), "masspole": (0.1, 0.3)}),
    "Hopper-v5": partial(RandomizeMujoco, randomization=RULES[HOPPER]),
}


def wrapped(env_id: str, **kwargs: Any) -> Any:
    return WRAPPERS[env_id](gym.make(env_id, max_episode_steps=6), **kwargs)


@pytest.mark.parametrize("env_id", WRAPPERS)
def test_wrappers_that_randomize_show_what_draw_context_shows(env_id: str) -> None:
    shown = gym.vector.SyncVectorEnv([partial(wrapped, env_id, context="observation")] * 3)
    other = DrawContext(gym.vector.SyncVectorEnv([partial(wrapped, env_id)] * 3), "observation")
    assert shown.observation_space == other.observation_space
    for a, b in zip(play(shown, 20), play(other, 20), strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        assert a[-1]["params"].keys() == b[-1]["params"].keys()
        assert a[0] in shown.observation_space


@pytest.mark.parametrize("env_id", WRAPPERS)
def test_wrappers_that_randomize_hide_the_draw_and_change_no_episode(env_id: str) -> None:
    hidden, plain = wrapped(env_id, context="hidden"), wrapped(env_id)
    action = plain.action_space.sample()
    for a, b in ((hidden.reset(seed=2), plain.reset(seed=2)), (hidden.step(action), plain.step(action))):
        np.testing.assert_array_equal(a[0], b[0])
        assert b[-1].keys() - a[-1].keys() == {"params"}
    assert hidden.observation_space == plain.observation_space


@pytest.mark.parametrize("env_id", WRAPPERS)
def test_wrappers_that_show_the_draw_are_made_again_from_their_spec(env_id: str) -> None:
    name = next(iter(wrapped(env_id).randomization))
    env = wrapped(env_id, context="observation", context_params={name: (0.0, 10.0)})
    again = gym.make(env.spec)
    observation, _ = env.reset(seed=4)
    np.testing.assert_array_equal(again.reset(seed=4)[0], observation)
    assert observation[-1] == pytest.approx(env.params[name] / 5.0 - 1.0)
