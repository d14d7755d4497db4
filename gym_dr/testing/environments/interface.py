"""What an environment returns: spaces, types, info, the draw in the observation, pictures, and a spec."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from gym_dr.errors import ConfigError
from gym_dr.randomization.context import context_ranges, normalized_context
from gym_dr.testing.playing import (
    MODES,
    NUM_ENVS,
    SEED,
    Mode,
    actions_of,
    assert_same,
    columns,
    draws_parameters,
    gives_pictures,
    interface,
    play,
    promised,
    refused,
)


@promised(*MODES)
def spaces_types_and_info_are_as_gymnasium_collects_them_from_single_environments(mode: Mode) -> None:
    with mode.opened() as envs, contextlib.closing(gym.make(mode.env_id)) as env:
        (observations, info), (observation, single_info) = envs.reset(seed=SEED), env.reset(seed=SEED + 2)
        assert observations in envs.observation_space
        assert isinstance(single_info["draw_index"], int)
        assert all(isinstance(value, float) for value in single_info["params"].values())
        if mode.name == "single":
            return
        assert_same(observations[2], observation, 1e-9)  # sub-environment i is seeded with s + i
        assert {name: values[2] for name, values in columns(info["params"]).items()} == single_info["params"]
        _, *others, step_info = envs.step(actions_of(envs))
        assert [part.dtype for part in others] == [np.float64, np.bool_, np.bool_]
        assert (envs.single_observation_space, envs.single_action_space) == (env.observation_space, env.action_space)
        assert envs.action_space == gym.vector.utils.batch_space(env.action_space, NUM_ENVS)
        assert envs.observation_space == gym.vector.utils.batch_space(env.observation_space, NUM_ENVS)
        for level in (info, info["params"], step_info, step_info["params"]):  # each key has a mask
            keys = [key for key in level if not key.startswith("_")]
            assert {f"_{key}" for key in keys} == level.keys() - keys
            assert all((level[f"_{key}"] == np.ones(NUM_ENVS, np.bool_)).all() for key in keys)
        assert all((v.dtype, v.shape) == (np.float64, (NUM_ENVS,)) for v in columns(info["params"]).values())
        assert info["draw_index"].dtype == envs.draw_index.dtype == np.int64


@promised(*MODES)
def returned_arrays_are_the_callers_own(mode: Mode) -> None:
    def spoil(value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype != object:
            value[...] = 1
        elif isinstance(value, Mapping | Sequence | np.ndarray):
            for part in value.values() if isinstance(value, Mapping) else value:
                spoil(part)

    for kwargs in [{}] if mode.name == "single" else [{"autoreset_mode": autoreset} for autoreset in AutoresetMode]:
        with mode.opened(max_episode_steps=2, **kwargs) as envs, mode.opened(max_episode_steps=2, **kwargs) as twin:
            spoil(play(envs, 0))
            play(twin, 0)
            for t in range(2):
                result, expected = envs.step(actions_of(envs, t)), twin.step(actions_of(twin, t))
                assert_same(result, expected)
                spoil([result, interface(envs).params])


@promised(*MODES, where=draws_parameters)
def the_draw_ends_the_observation_or_is_hidden_from_info_and_the_episode_is_the_same(mode: Mode) -> None:
    for kwargs in [{}] if mode.name == "single" else [{"autoreset_mode": autoreset} for autoreset in AutoresetMode]:
        limited: dict[str, Any] = {"max_episode_steps": 2, **kwargs}
        with mode.opened(context="observation", **limited) as envs, mode.opened(context="hidden", **limited) as twin:
            ranges = context_ranges(interface(envs).param_space, interface(envs).randomization)
            rows, hidden = play(envs, 2), play(twin, 2)
            seen = [(row[0], row[-1]) for row in rows if np.asarray(row[-1]["draw_index"]).any() or len(row) == 5]
            seen += [(np.stack(list(i["final_obs"])), i["final_info"]) for *_, i in rows if "final_obs" in i]
            for observations, info in seen:
                expected = normalized_context(columns(info["params"]), ranges)
                np.testing.assert_allclose(np.atleast_2d(observations)[:, -len(ranges) :], expected, atol=1e-6)
                assert observations in envs.observation_space
            for (observations, *others, _), (*without, info) in zip(rows, hidden, strict=True):
                assert_same([observations[..., : -len(ranges)], *others], without)
                assert not {"params", "_params"} & (info.keys() | info.get("final_info", {}).keys())


@promised(*MODES)
def every_sub_environment_gives_a_picture_in_a_render_mode_alone(mode: Mode) -> None:
    if not gives_pictures(mode):
        with refused(ConfigError), mode.opened(render_mode="rgb_array"):
            pass
        return
    with mode.opened(render_mode="rgb_array") as envs:
        envs.reset(seed=SEED)
        frames: Any = (envs.render(),) if mode.name == "single" else envs.render()
        assert len(frames) == (1 if mode.name == "single" else NUM_ENVS)
        assert all(frame.dtype == np.uint8 and frame.ndim == 3 for frame in frames)
        if mode.name == "native":
            assert_same(envs.render(indices=[2, 0]), (frames[2], frames[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium's environments, and some of ours, warn about it
        with mode.opened() as envs:
            envs.reset(seed=SEED)
            assert envs.render() in (None, (None,) * NUM_ENVS)


@promised(*MODES)
def its_spec_makes_the_same_environment_again(mode: Mode) -> None:
    known: Any = mode.single(lambda env: interface(env).randomization)
    with mode.opened(randomization=known.without(list(known)[:1])) as envs:
        spec = EnvSpec.from_json(envs.spec.to_json())
        with contextlib.closing((gym.make if mode.name == "single" else gym.make_vec)(spec)) as again:
            assert_same(envs.reset(seed=SEED), again.reset(seed=SEED))
