"""Contracts on states, which are exact, and on what is refused, which changes nothing."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr.envs.stack import pushed_layer
from gym_dr.errors import EnvStateError, GymDrError, InvalidActionError, RandomizationError
from gym_dr.testing.playing import (
    DISABLED,
    MODES,
    NEXT_STEP,
    NUM_ENVS,
    SAME_STEP,
    SEED,
    Mode,
    actions_of,
    assert_current,
    assert_same,
    columns,
    drawn,
    gives_pictures,
    gives_state,
    go_on,
    interface,
    play,
    promised,
    refused,
)


@promised("native", where=gives_state)
def going_on_from_a_state_equals_going_on(mode: Mode) -> None:
    for autoreset in (NEXT_STEP, SAME_STEP, DISABLED):
        kwargs: dict[str, Any] = {"autoreset_mode": autoreset, "max_episode_steps": 4}
        with mode.opened(**kwargs) as envs, mode.opened(**kwargs) as fresh:
            envs.reset(seed=SEED)
            go_on(envs, 2)
            values = drawn(envs, 7, seed=900)
            envs.set_params({name: values[name] for name in list(values)[:1]}, mask=np.array([True, False, True]))
            if autoreset != DISABLED:
                envs.step(actions_of(envs))
            state = envs.get_state()
            expected, where = go_on(envs), envs.get_state()
            for each in (envs, fresh):
                each.set_state(state)
                assert_same(each.get_state(), state)
                assert_same(go_on(each), expected)
                assert_same(each.get_state(), where)
            assert envs.np_random_seed == fresh.np_random_seed


@promised("native", where=gives_state)
def a_state_of_some_sub_environments_leaves_the_others_alone(mode: Mode) -> None:
    with mode.opened(max_episode_steps=4) as envs, mode.opened(max_episode_steps=4) as twin:
        for each in (envs, twin):
            each.reset(seed=SEED)
            go_on(each, 1)
        state, mask = envs.get_state(), np.array([False, True, False])
        before = envs.step(actions_of(envs))
        twin.step(actions_of(twin))
        seen = envs.set_state({name: values[[2, 2, 0]] for name, values in state.items()}, mask)
        again, others = envs.step(actions_of(envs)), twin.step(actions_of(twin))
        assert_same(seen[~mask], before[0][~mask])
        assert_same([part[~mask] for part in again[:4]], [part[~mask] for part in others[:4]])
        if isinstance(envs.single_action_space, gym.spaces.Discrete):
            return
        envs.set_state({name: values[[2, 2, 2]] for name, values in state.items()})  # one state, three times
        same = envs.step(np.repeat(actions_of(envs)[:1], NUM_ENVS, axis=0))
        assert all((part == part[:1]).all() for part in same[:4])


@promised("single", where=gives_state)
def a_compiled_single_environment_goes_on_from_a_state(mode: Mode) -> None:
    with mode.opened() as env, mode.opened() as fresh:
        inner: Any = env.unwrapped
        with refused(EnvStateError):
            inner.get_state()  # before the first reset
        env.reset(seed=SEED)
        go_on(inner, 2)
        state = inner.get_state()
        expected = go_on(inner, 5)
        fresh.reset(seed=12345)  # of more digits
        for each in (inner, fresh.unwrapped):
            each.set_state(state)
            assert_same(go_on(each, 5), expected)


@promised("single", "native", where=gives_state)
def a_state_that_does_not_fit_changes_nothing(mode: Mode) -> None:
    with mode.opened() as envs, mode.opened() as twin:
        inner = interface(envs)
        assert_same(envs.reset(seed=SEED), twin.reset(seed=SEED))
        state = inner.get_state()
        physics = next(name for name in state if name.startswith("physics/"))
        wrong: list[Any] = [None, {}, {**state, "no such": state["seed"]}, {**state, physics: state[physics][..., :-1]}]
        needed = [name for name in state if not name.startswith("draws/value/")]  # others are nominal
        wrong += [{name: values for name, values in state.items() if name != left_out} for left_out in needed]
        for given in wrong:
            with refused(GymDrError):
                inner.set_state(given)
        if mode.name == "native":
            with refused(GymDrError):
                inner.set_state({name: values[:2] for name, values in state.items()})
            with refused(GymDrError):
                inner.set_state(state, np.ones(2, bool))
        assert_same(envs.step(actions_of(envs)), twin.step(actions_of(twin)))


# ---- refusals --------------------------------------------------------------------------------------------------------


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
