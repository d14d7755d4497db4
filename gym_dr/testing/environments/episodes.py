"""Episodes: autoreset, equality in every mode, compiled rollouts, pushes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from gym_dr.envs.stack import supports
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.testing.playing import (
    DISABLED,
    MODES,
    NEXT_STEP,
    SAME_STEP,
    STEPS,
    VECTOR,
    Mode,
    actions_of,
    assert_current,
    assert_rollout_is_stepping,
    assert_same,
    drawn,
    draws_parameters,
    play,
    play_compiled,
    promised,
    refused,
    takes_pushes,
)
from gym_dr.wrappers.disturb import Disturb, DisturbVector


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
