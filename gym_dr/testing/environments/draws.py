"""Which values an environment has: keyed draws, exact values, pins, switches and presets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gym_dr.errors import RandomizationError, RandomizationWarning
from gym_dr.randomization.presets import presets
from gym_dr.runs.environments import param_space_of, space_of
from gym_dr.testing.playing import (
    MODES,
    NUM_ENVS,
    SEED,
    VECTOR,
    Mode,
    actions_of,
    assert_current,
    assert_same,
    columns,
    drawn,
    draws_parameters,
    given,
    interface,
    play,
    promised,
    refused,
)


@promised(*MODES)
def draws_are_keyed_by_seed_and_number_of_resets_and_episodes_follow(mode: Mode) -> None:
    with mode.opened(max_episode_steps=3) as envs, mode.opened(max_episode_steps=3) as twin:
        unseeded = np.concatenate([np.atleast_2d(envs.reset()[0]), np.atleast_2d(twin.reset()[0])])
        seeded = np.concatenate([np.atleast_2d(envs.reset(seed=seed)[0]) for seed in (SEED, SEED + 50)])
        if len(np.unique(seeded, axis=0)) > 1:  # else episodes always begin in the same way
            assert len(np.unique(unseeded, axis=0)) == len(unseeded)
        assert_same(play(envs), play(twin))
        for seed, index in ((SEED, 0), (None, 1), (None, 2), (SEED, 0), (SEED + 5, 0)):
            _, info = envs.reset(seed=seed)
            assert (np.asarray(info["draw_index"]) == index).all()
            assert (np.asarray(interface(envs).draw_index) == index).all()
            assert_current(envs, info, drawn(envs, index, seed or SEED))
        seeds = 7 if mode.name == "single" else [7, 3, 2**40]
        assert_current(envs, envs.reset(seed=seeds)[1], drawn(envs, 0, np.atleast_1d(seeds)))
        assert envs.np_random_seed == (seeds if mode.name == "single" else (7, 3, 2**40))


@promised(*MODES)
def exact_values_hold_for_one_episode_and_options_are_left_alone(mode: Mode) -> None:
    with mode.opened() as envs:
        values = drawn(envs, 7, seed=900)
        options: dict[str, Any] = {"params": given(envs, values)}
        options |= {} if mode.name == "single" else {"reset_mask": np.ones(NUM_ENVS, np.bool_)}
        before = dict(options)
        assert_current(envs, envs.reset(seed=SEED, options=options)[1], values)
        assert options.keys() == before.keys()
        assert_current(envs, envs.step(actions_of(envs))[-1], values)
        assert_current(envs, envs.reset()[1], drawn(envs, 1))


@promised(*MODES, where=draws_parameters)
def pins_hold_from_the_next_reset_until_they_are_handed_back(mode: Mode) -> None:
    with mode.opened() as envs:
        values, exact, inner = drawn(envs, 7, seed=900), drawn(envs, 8, seed=900), interface(envs)
        name = next(reversed(values))  # the first may be the switch of others
        inner.set_params({name: given(envs, values)[name]})  # also before the first reset
        first = {**drawn(envs, 0), name: values[name]}
        assert_current(envs, envs.reset(seed=SEED)[1], first)
        inner.set_params(given(envs, {other: values[other] for other in values if other != name}))
        assert_current(envs, envs.step(actions_of(envs))[-1], first)
        assert_current(envs, envs.reset()[1], values)
        assert_current(envs, envs.reset(options={"params": given(envs, exact)})[1], exact)
        assert_current(envs, envs.reset()[1], values)
        inner.set_params(None)
        assert_current(envs, envs.reset()[1], drawn(envs, 4))  # draws were counted throughout


@promised(*VECTOR)
def masks_choose_what_is_pinned_and_what_is_reset(mode: Mode) -> None:
    mask = np.array([False, True, False])
    with mode.opened() as envs, mode.opened() as twin:
        before, values = envs.reset(seed=SEED)[0], drawn(envs, 7, seed=900)
        twin.reset(seed=SEED)
        envs.set_params(values, mask=mask)
        observations, info = envs.reset(options={"reset_mask": mask})
        assert_same(observations[~mask], before[~mask])
        assert info["_draw_index"].tolist() == info["_params"].tolist() == mask.tolist()
        assert envs.draw_index.tolist() == info["draw_index"].tolist() == [0, 1, 0]
        for name, old in drawn(envs, 0).items():
            assert_same(envs.params[name], np.where(mask, values[name], old))
            assert_same(info["params"][name], np.where(mask, values[name], 0.0))
            assert_same(info["params"][f"_{name}"], mask)
        left, right = envs.step(actions_of(envs)), twin.step(actions_of(twin))
        assert_same([part[~mask] for part in left[:4]], [part[~mask] for part in right[:4]])


@promised(*MODES)
def a_parameter_turns_its_switch_on_unless_the_switch_is_set(mode: Mode) -> None:
    with mode.opened(randomization="none") as env:
        space = interface(env).param_space
        switches = [(p.name, other) for p in space.values() for other in p.needs if space[other].kind == "bool"]
        for name, switch in switches:
            env.reset(seed=SEED)
            interface(env).set_params({name: space[name].nominal})
            assert set(columns(env.reset()[1]["params"])[switch]) == {1.0}
            interface(env).set_params(None)
            assert set(columns(env.reset()[1]["params"])[switch]) == {space[switch].nominal}
    for name, switch in switches:
        varied = {name: (space[name].low, space[name].high)}
        with mode.opened(randomization=varied) as env:
            assert set(columns(env.reset(seed=SEED)[1]["params"])[switch]) == {1.0}
        with refused(RandomizationError), mode.opened(randomization={**varied, switch: 0.0}):
            pass


@promised("single")
def a_familys_description_of_what_may_vary_is_what_the_environment_says(mode: Mode) -> None:
    described: Any = param_space_of(mode.env_id)
    with mode.opened() as env:
        made: Any = space_of(env)
    assert (described.name, described.constants, described.disturbances) == (
        made.name,
        made.constants,
        made.disturbances,
    )
    assert list(described.items()) == list(made.items())
    assert described.sensors == made.sensors


@promised("single")
def every_parameter_of_a_preset_has_an_effect(mode: Mode) -> None:
    with mode.opened(randomization="none") as env:
        names = presets(interface(env).param_space.name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RandomizationWarning)
        for name in names:
            with mode.opened(randomization=name):
                pass
