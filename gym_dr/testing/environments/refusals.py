"""Wrong arguments, values and calls are refused and change nothing."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr.envs.stack import pushed_layer
from gym_dr.errors import EnvStateError, GymDrError, InvalidActionError, RandomizationError
from gym_dr.testing.playing import (
    MODES,
    NEXT_STEP,
    SEED,
    Mode,
    actions_of,
    assert_current,
    assert_same,
    columns,
    drawn,
    gives_pictures,
    interface,
    play,
    promised,
    refused,
)


@promised(*MODES)
def impossible_values_masks_and_seeds_change_nothing(mode: Mode) -> None:
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        inner = interface(envs)
        name = next(iter([*drawn(envs, 0), *inner.param_space]))
        values: list[Any] = [{"no such name": 1.0}, {name: np.nan}, {name: -np.inf}, {name: "low"}, [name], 3]
        calls = [{"seed": 99, "options": options} for options in (5, {name: 1.0}, *({"params": v} for v in values))]
        if mode.name != "single":
            masks = [np.ones(2, bool), np.ones(3), np.zeros(3, bool), "yes"]
            calls += [{"seed": 99, "options": option} for option in [*({"reset_mask": m} for m in masks), [1]]]
            calls += [{"seed": seed} for seed in (-1, 1.5, "1", True, [1, 2], [1, 2, -3])]
            values.append({name: np.ones(2)})
            with refused(RandomizationError):
                inner.set_params(None, mask=masks[0])
        for call in calls:
            with refused(GymDrError):
                envs.reset(**call)
        for value in values:
            with refused(GymDrError):
                inner.set_params(value)
        assert_current(envs, envs.step(actions_of(envs))[-1], drawn(envs, 0))
        assert_current(envs, envs.reset()[1], drawn(envs, 1))  # the seed and the draw count have not changed


@promised(*MODES)
def impossible_actions_change_nothing(mode: Mode) -> None:
    with mode.opened() as envs, mode.opened() as twin:
        assert_same(envs.reset(seed=SEED), twin.reset(seed=SEED))
        good = np.asarray(actions_of(envs))
        wrong = [None, "x", np.zeros((*good.shape, 9)), np.full(good.shape, np.nan), np.full(good.shape, None)]
        wrong += [good - 1000, good + 1000] if good.dtype.kind == "i" else [np.full(good.shape, np.inf)]
        for actions in wrong:
            with refused(InvalidActionError):
                envs.step(actions)
        assert_same(envs.step(actions_of(envs)), twin.step(actions_of(twin)))


@promised(*MODES)
def before_the_first_reset_values_are_nominal_and_calls_are_refused_as_after_closing(mode: Mode) -> None:
    pictured = gives_pictures(mode)
    with mode.opened(render_mode="rgb_array" if pictured else None) as envs:
        inner, reported = interface(envs), columns(interface(envs).params)
        assert set(inner.randomization) <= set(reported)
        assert all((values == inner.param_space[name].nominal).all() for name, values in reported.items())
        assert (np.asarray(inner.draw_index) == -1).all()
        calls = [lambda: envs.step(actions_of(envs)), envs.render]
        # async workers exit at their first error
        for call in calls[:1] if mode.name == "async" or not pictured else calls:
            with refused(EnvStateError if mode.name == "native" else gym.error.ResetNeeded):
                call()
        pushed = pushed_layer(envs) if mode.name == "single" else inner
        if mode.name in ("single", "native") and getattr(pushed, "push_size", False):
            velocity = np.ones(pushed.push_size)
            with refused(EnvStateError):
                pushed.push(*([velocity] if mode.name == "single" else [velocity[None], np.array([0])]))
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        envs.close(), envs.close()  # closing twice is allowed
        for call in (envs.reset, envs.render, lambda: envs.step(actions_of(envs))) if mode.name != "single" else ():
            with refused(EnvStateError, gym.error.ClosedEnvironmentError):
                call()


@promised(*MODES)
def impossible_arguments_are_refused_and_no_limit_is_possible(mode: Mode) -> None:
    wrong: list[dict[str, Any]] = [{"randomization": name} for name in ("no such preset", {"no such name": 1.0})]
    wrong += [{"context": "everyone"}, {"context_params": ["gravity"]}]  # the latter is for "observation" only
    if mode.name == "native":  # Gymnasium warns of other render modes
        numbers = ("num_envs", "num_threads", "max_episode_steps")
        wrong += [{name: bad} for name in numbers for bad in (0, 1.5, True)]
        wrong += [{"num_envs": 10**10}, {"num_envs": 10**12}]  # for which there is no memory
        wrong += [{"autoreset_mode": "x"}, {"render_mode": "no such mode"}]
    for kwargs in wrong:
        with refused(GymDrError), mode.opened(**kwargs):
            pass
    for name in ("no_such_argument", *(["autoreset_mode"] if mode.name == "single" else [])):
        with refused(TypeError), mode.opened(**{name: NEXT_STEP}):
            pass
    with mode.opened(max_episode_steps=-1) as envs:  # Gymnasium's value for no limit
        assert not np.any(play(envs, 1)[-1][3])
