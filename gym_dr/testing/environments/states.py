"""Native and compiled environments continue exactly from a state."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr.errors import EnvStateError, GymDrError
from gym_dr.testing.playing import (
    DISABLED,
    NEXT_STEP,
    NUM_ENVS,
    SAME_STEP,
    SEED,
    Mode,
    actions_of,
    assert_same,
    drawn,
    gives_state,
    go_on,
    interface,
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
