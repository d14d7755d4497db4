"""Contracts on what resets and steps return, and on how episodes begin, end and go on."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from gym_dr.envs.stack import supports
from gym_dr.errors import ConfigError, EnvStateError, RandomizationError
from gym_dr.randomization.context import context_ranges, normalized_context
from gym_dr.testing.playing import (
    DISABLED,
    MODES,
    NEXT_STEP,
    NUM_ENVS,
    SAME_STEP,
    SEED,
    STEPS,
    VECTOR,
    Mode,
    actions_of,
    assert_current,
    assert_rollout_is_stepping,
    assert_same,
    columns,
    drawn,
    draws_parameters,
    gives_pictures,
    interface,
    play,
    play_compiled,
    promised,
    refused,
    takes_pushes,
)
from gym_dr.wrappers.disturb import Disturb, DisturbVector


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


# ---- how episodes begin, end and go on -------------------------------------------------------------------------------


@promised(*VECTOR)
def episodes_begin_in_the_step_after_the_end_or_in_the_same(mode: Mode) -> None:
    with mode.opened(max_episode_steps=2) as envs, mode.opened(max_episode_steps=2, autoreset_mode=SAME_STEP) as twin:
        assert (envs.metadata["autoreset_mode"], twin.metadata["autoreset_mode"]) == (NEXT_STEP, SAME_STEP)
        assert (envs.autoreset_mode, twin.autoreset_mode) == (NEXT_STEP, SAME_STEP)  # as in Gymnasium's own
        last, *ends, last_info = play(envs, 2)[-1]
        first, *expected, info = play(twin, 2)[-1]
        assert ends[-1].all()
        assert_current(envs, last_info, drawn(envs, 0))
        assert_same([*expected, np.stack(list(info["final_obs"])), info["final_info"]], [*ends, last, last_info])
        assert info["_final_obs"].all()
        assert info["_final_info"].all()
        assert_current(twin, info, drawn(twin, 1))
        observations, *others, info = envs.step(actions_of(envs, 2))
        assert_same(observations, first)  # the action is ignored
        assert not np.any(others)  # no reward, no end
        assert_current(envs, info, drawn(envs, 1))


@promised(*VECTOR)
def disabled_waits_for_a_reset_by_mask(mode: Mode) -> None:
    with mode.opened(max_episode_steps=2, autoreset_mode=DISABLED) as envs:
        assert envs.metadata["autoreset_mode"] is DISABLED
        play(envs, 1)
        assert envs.step(actions_of(envs, 1))[3].all()
        for mask, index in (([True, True, False], [1, 1, 0]), ([False, False, True], [1, 1, 1])):
            if mode.name == "native":  # Gymnasium's own continue
                with refused(EnvStateError):
                    envs.step(actions_of(envs, 2))
            envs.reset(options={"reset_mask": np.array(mask)})
            assert envs.draw_index.tolist() == index
        assert not envs.step(actions_of(envs, 2))[3].any()


@promised("native", "async")
def everything_is_as_in_a_sync_environment(mode: Mode) -> None:
    for autoreset in AutoresetMode:
        kwargs = {"max_episode_steps": 3, "autoreset_mode": autoreset}
        with mode.opened(**kwargs) as envs, Mode(env_id=mode.env_id, name="sync").opened(**kwargs) as twin:
            assert_same(play(envs), play(twin), 1e-9)
            assert_same([envs.params, envs.draw_index], [twin.params, twin.draw_index])
            assert envs.np_random_seed == twin.np_random_seed


@promised(*VECTOR)
def a_compiled_rollout_is_what_stepping_gives_or_is_refused(mode: Mode) -> None:
    native = mode.name == "native"
    wrong: list[dict[str, Any]] = [{"autoreset_mode": SAME_STEP}, {"autoreset_mode": DISABLED}]
    for kwargs in wrong if native else [{}]:
        with mode.opened(**kwargs) as envs:
            assert not supports(envs, "rollout")
            with refused(EnvStateError if native else AttributeError):
                play_compiled(envs)
    ways: list[dict[str, Any]] = [{"num_threads": 1}, {"num_threads": 2}]
    ways += [{"context": "observation"}] if draws_parameters(mode) else []
    for kwargs in ways if native else ():
        with mode.opened(max_episode_steps=2, **kwargs) as envs, mode.opened(max_episode_steps=2, **kwargs) as twin:
            assert supports(envs, "rollout")
            assert assert_rollout_is_stepping(envs, twin) == [2, STEPS - 2]  # it goes on through the ends of episodes


@promised(*MODES)
def pushes_change_what_comes_where_they_reach_the_environment(mode: Mode) -> None:
    push, wrap = {"push_speed": 1, "push_probability": 1}, Disturb if mode.name == "single" else DisturbVector
    with mode.opened() as envs, mode.opened() as twin:
        if mode.name == "async" or not takes_pushes(mode):
            with refused(RandomizationError):
                wrap(envs, push)
            return
        rows, expected = play(wrap(envs, push), 1), play(twin, 1)
        assert_same(rows[0][0], expected[0][0])
        assert np.atleast_2d(rows[1][0] != expected[1][0]).any(axis=1).all()
