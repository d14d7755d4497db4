"""What every registered environment promises, in every supported mode."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from gym_dr.envs.capabilities import supports
from gym_dr.envs.stack import pushed_layer
from gym_dr.errors import (
    ConfigError,
    EnvStateError,
    GymDrError,
    InvalidActionError,
    RandomizationError,
    RandomizationWarning,
)
from gym_dr.randomization.context import context_ranges, normalized_context
from gym_dr.randomization.presets import presets
from gym_dr.runs.environments import param_space_of, space_of
from gym_dr.testing.playing import (
    DISABLED,
    NEXT_STEP,
    SAME_STEP,
    SEED,
    actions_of,
    assert_current,
    assert_rollout_is_stepping,
    assert_same,
    columns,
    drawn,
    given,
    go_on,
    interface,
    play,
    play_compiled,
    refused,
)
from gym_dr.wrappers.disturb import Disturb, DisturbVector
from gym_dr.wrappers.vector_params import VectorParams

MODES = ("single", "sync", "async", "native")
VECTOR = ("sync", "async", "native")
NUM_ENVS = 3


@dataclass(frozen=True, kw_only=True)
class Mode:
    """An environment id and a way to make it."""

    env_id: str
    name: str  # one of MODES

    def make(self, num_envs: int = NUM_ENVS, **kwargs: Any) -> Any:
        """The environment; ``autoreset_mode`` is a keyword in every mode that has one."""
        if self.name == "single":
            return gym.make(self.env_id, **kwargs)
        if self.name == "native":
            return gym.make_vec(self.env_id, num_envs, vectorization_mode="vector_entry_point", **kwargs)
        given = {"autoreset_mode": kwargs.pop("autoreset_mode")} if "autoreset_mode" in kwargs else {}
        envs = gym.make_vec(self.env_id, num_envs, vectorization_mode=self.name, vector_kwargs=given, **kwargs)
        return VectorParams(envs)

    def single(self, question: Callable[[Any], bool]) -> bool:
        """What a single environment of this id answers."""
        with contextlib.closing(gym.make(self.env_id)) as env:
            return question(env)

    @contextlib.contextmanager
    def opened(self, **kwargs: Any) -> Iterator[Any]:
        """``make`` as a context manager; also ends worker processes that have raised errors."""
        envs = self.make(**kwargs)
        try:
            yield envs
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Gymnasium reports workers that raised errors a second time
                envs.close(**({"terminate": True} if self.name == "async" else {}))


def gives_pictures(mode: Mode) -> bool:
    """Whether the environment draws itself, which those of equations need not."""
    return mode.single(lambda env: "rgb_array" in env.metadata["render_modes"])


def takes_pushes(mode: Mode) -> bool:
    """Whether pushes change anything."""
    return mode.single(lambda env: getattr(pushed_layer(env), "push_size", 0) > 0)


def draws_parameters(mode: Mode) -> bool:
    """Whether the preset "default" varies anything."""
    return mode.single(lambda env: bool(interface(env).randomization))


Contract = Callable[[Mode], None]
ENVIRONMENT_CONTRACTS: dict[str, list[Contract]] = {name: [] for name in MODES}


def promised(*modes: str) -> Callable[[Contract], Contract]:
    """Registers a contract for the modes in which it holds."""

    def file(contract: Contract) -> Contract:
        for name in modes:
            ENVIRONMENT_CONTRACTS[name].append(contract)
        return contract

    return file


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
        gone = {"reset_mask"} if mode.name == "native" else set()  # Gymnasium removes it, and its wrappers rely on that
        assert options.keys() == before.keys() - gone
        assert_current(envs, envs.step(actions_of(envs))[-1], values)
        assert_current(envs, envs.reset()[1], drawn(envs, 1))


@promised(*MODES)
def pins_hold_from_the_next_reset_until_they_are_handed_back(mode: Mode) -> None:
    if not draws_parameters(mode):  # there are no values to pin
        return
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
def impossible_values_masks_and_seeds_change_nothing(mode: Mode) -> None:
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        inner = interface(envs)
        name = next(iter([*drawn(envs, 0), *inner.param_space]))
        values: list[Any] = [{"no such name": 1.0}, {name: np.nan}, {name: -np.inf}, {name: "low"}, [name], 3]
        calls = [{"seed": 99, "options": {"params": value}} for value in values]
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
        if mode.name in ("single", "native") and inner.push_size:
            velocity = np.ones(inner.push_size)
            with refused(EnvStateError):
                inner.push(*([velocity] if mode.name == "single" else [velocity[None], np.array([0])]))
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
        wrong += [{"autoreset_mode": "x"}, {"render_mode": "no such mode"}]
    for kwargs in wrong:
        with refused(GymDrError), mode.opened(**kwargs):
            pass
    for name in ("no_such_argument", *(["autoreset_mode"] if mode.name == "single" else [])):
        with refused(TypeError), mode.opened(**{name: NEXT_STEP}):
            pass
    with mode.opened(max_episode_steps=-1) as envs:  # Gymnasium's value for no limit
        assert not np.any(play(envs, 1)[-1][3])


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


@promised(*MODES)
def the_draw_ends_the_observation_or_is_hidden_from_info_and_the_episode_is_the_same(mode: Mode) -> None:
    if not draws_parameters(mode):  # there is no draw to observe
        return
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


def gives_state(mode: Mode) -> bool:
    """Whether its physics gives its state, which it need not."""
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        try:
            interface(envs).get_state()
        except (AttributeError, EnvStateError):
            return False
    return True


@promised("native")
def going_on_from_a_state_equals_going_on(mode: Mode) -> None:
    if not gives_state(mode):
        return
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


@promised("native")
def a_state_of_some_sub_environments_leaves_the_others_alone(mode: Mode) -> None:
    if not gives_state(mode):
        return
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


@promised("single")
def a_compiled_single_environment_goes_on_from_a_state(mode: Mode) -> None:
    if not gives_state(mode):
        return
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


@promised("single", "native")
def a_state_that_does_not_fit_changes_nothing(mode: Mode) -> None:
    if not gives_state(mode):
        return
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
        with mode.opened(max_episode_steps=3, **kwargs) as envs, mode.opened(max_episode_steps=3, **kwargs) as twin:
            assert supports(envs, "rollout")
            assert_rollout_is_stepping(envs, twin)


@promised(*MODES)
def its_spec_makes_the_same_environment_again(mode: Mode) -> None:
    with mode.opened(randomization="none") as envs:
        spec = EnvSpec.from_json(envs.spec.to_json()) if mode.name == "single" else envs.spec
        with contextlib.closing((gym.make if mode.name == "single" else gym.make_vec)(spec)) as again:
            assert_same(envs.reset(seed=SEED), again.reset(seed=SEED))
