"""What every registered environment promises, whichever way it is made."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from gym_dr.compiled.policy import CATEGORICAL, TWO_HEADS, SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.errors import EnvStateError, GymDrError, InvalidActionError, RandomizationError
from gym_dr.randomization.context import context_ranges, normalised_context
from gym_dr.randomization.draws import draw
from gym_dr.training.rollout import plays
from gym_dr.wrappers.disturb import Disturb, DisturbVector
from gym_dr.wrappers.vector_params import VectorParams

SEED = 20
STEPS = 7  # with episodes of two or three steps: several autoresets
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One id and the way in which it is made."""

    env_id: str
    name: str  # "single", "sync", "async" or "native"

    @property
    def vector(self) -> bool:
        """Whether there are several sub-environments."""
        return self.name != "single"

    @property
    def num_envs(self) -> int:
        """Sub-environments that contracts use."""
        return 3 if self.vector else 1

    def make(self, num_envs: int = 3, **kwargs: Any) -> Any:
        """The environment, all with the same interface of parameters but for single ones, which have numbers."""
        if self.name == "single":
            return gym.make(self.env_id, **kwargs)
        if self.name == "native":
            return gym.make_vec(self.env_id, num_envs, vectorization_mode="vector_entry_point", **kwargs)
        given = {"autoreset_mode": kwargs.pop("autoreset_mode")} if "autoreset_mode" in kwargs else {}
        return VectorParams(
            gym.make_vec(self.env_id, num_envs, vectorization_mode=self.name, vector_kwargs=given, **kwargs)
        )

    @contextlib.contextmanager
    def opened(self, **kwargs: Any) -> Iterator[Any]:
        """``make`` as a context; worker processes are ended, also those that have raised."""
        envs = self.make(**kwargs)
        try:
            yield envs
        finally:
            envs.close(**({"terminate": True} if self.name == "async" else {}))


Contract = Callable[[Mode], None]


# ---- helpers -----------------------------------------------------------------------------------------------------


def supports_rollout(envs: Any) -> bool:
    """Whether an environment in its wrappers plays many steps in one compiled call."""
    return plays(envs)


def rollout(envs: Any, policy: SmallPolicy, noise: Any, steps: Steps, first: int, last: int) -> tuple[int, Any]:
    """Plays rows ``first`` to ``last`` at most; returns the row to go on from, and info."""
    result: tuple[int, Any] = envs.play(policy, noise, steps, first, last)
    return result


@contextlib.contextmanager
def refused(*errors: type[Exception]) -> Iterator[None]:
    """Asserts that one of these errors is raised, with a text."""
    try:
        yield
    except errors as error:
        assert str(error)
        return
    raise AssertionError(f"expected {' or '.join(error.__name__ for error in errors)}, nothing was raised")


def interface(env: Any) -> Any:
    """What has ``params`` and the like: single environments are in wrappers that hide it."""
    return env if isinstance(env, gym.vector.VectorEnv) else env.unwrapped


def actions_of(env: Any, t: int = 0) -> Any:
    """Actions that depend on ``t`` alone."""
    env.action_space.seed(t)
    return env.action_space.sample()


def columns(params: Mapping[str, Any]) -> dict[str, Any]:
    """Values without their masks: name -> ``(num_envs,)``."""
    return {name: np.atleast_1d(values) for name, values in params.items() if not name.startswith("_")}


def drawn(env: Any, index: Any, seed: int = SEED) -> dict[str, Any]:
    """The keyed draws of an environment after ``reset(seed=seed)``."""
    seeds = np.arange(seed, seed + getattr(env, "num_envs", 1), dtype=np.uint64)
    return draw(interface(env).randomization, interface(env).param_space, seeds, index)


def given(env: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the environment takes them: numbers where it is a single one."""
    vector = isinstance(env, gym.vector.VectorEnv)
    return {name: value if vector else float(value[0]) for name, value in values.items()}


def assert_same(left: Any, right: Any, tolerance: float = 0.0, path: str = "") -> None:
    """Keys, types, shapes and values agree, at any depth."""
    if isinstance(left, Mapping):
        assert left.keys() == right.keys(), (path, left.keys() ^ right.keys())
        for key in left:
            assert_same(left[key], right[key], tolerance, f"{path}/{key}")
    elif isinstance(left, Sequence) or (isinstance(left, np.ndarray) and left.dtype == object):
        assert len(left) == len(right), path
        for one, other in zip(left, right, strict=True):
            assert_same(one, other, tolerance, path)
    elif left is None or right is None:
        assert left is right, path
    else:
        left, right = np.asarray(left), np.asarray(right)
        assert (left.dtype, left.shape) == (right.dtype, right.shape), (path, left.dtype, right.dtype)
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=path)


def assert_in_force(env: Any, info: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Both ``info`` and the environment report these values, among others."""
    for told in (columns(info["params"]), columns(interface(env).params)):
        assert_same({name: told[name] for name in expected}, expected)


def play(env: Any, steps: int = STEPS, seed: int | None = SEED) -> list[Any]:
    """Everything that a reset and some steps return; where nobody else resets, what ended is reset by hand."""
    rows = [env.reset(seed=seed)]
    for t in range(steps):
        rows.append(env.step(actions_of(env, t)))
        done = np.atleast_1d(rows[-1][2]) | np.atleast_1d(rows[-1][3])
        if done.any() and env.metadata.get("autoreset_mode", DISABLED) == DISABLED:
            rows.append(env.reset(options={"reset_mask": done} if len(done) > 1 else None))
    return rows


def idle_policy(envs: Any) -> SmallPolicy:
    """A network of zeros, of which the noise alone chooses actions."""
    space, inputs = envs.single_action_space, envs.single_observation_space.shape[0]
    discrete = isinstance(space, gym.spaces.Discrete)
    low, high = (np.zeros((2, 0), np.float32)) if discrete else (space.low, space.high)
    sizes = [inputs, int(space.n) if discrete else 2 * len(low)]
    kind = CATEGORICAL if discrete else TWO_HEADS
    return SmallPolicy.allocate(
        sizes=sizes, tanh=True, kind=kind, low=low, high=high, floor=0.01, num_envs=envs.num_envs
    )


def play_compiled(envs: Any, last: int = STEPS) -> tuple[Steps, list[Any]]:
    """A compiled rollout from a reset on, and the info of each call."""
    policy, rng = idle_policy(envs), np.random.default_rng(0)
    discrete, numbers = policy.kind == CATEGORICAL, max(1, len(policy.low))
    noise = rng.random((last, envs.num_envs, numbers), np.float32)
    noise = noise if discrete else rng.standard_normal(noise.shape, np.float32)
    inputs = envs.single_observation_space.shape[0]
    steps = Steps.allocate(last, envs.num_envs, inputs=inputs, actions=len(policy.low))
    steps.observations[0] = envs.reset(seed=SEED)[0]
    t, infos = 0, []
    while t < last:
        t, info = rollout(envs, policy, noise, steps, t, last)
        infos.append((t, info))
    return steps, infos


def assert_rollout_is_stepping(envs: Any, twin: Any) -> None:
    """A compiled rollout gives what stepping with its actions gives: float32 observations, rewards, ends and info."""
    steps, infos = play_compiled(envs)
    space, told = twin.single_action_space, dict(infos)
    assert_same(steps.observations[0], twin.reset(seed=SEED)[0].astype(np.float32))
    for t in range(STEPS):
        discrete = isinstance(space, gym.spaces.Discrete)
        actions = steps.chosen[t] + space.start if discrete else np.clip(steps.sampled[t], space.low, space.high)
        observations, *others, info = twin.step(actions)
        assert_same(steps.observations[t + 1], observations.astype(np.float32))
        assert_same([steps.rewards[t], steps.terminated[t], steps.truncated[t]], others)
        if t + 1 in told:
            assert_same(told[t + 1], info)
    assert_same([envs.params, envs.draw_index], [twin.params, twin.draw_index])


# ---- draws and values set by hand --------------------------------------------------------------------------------


def draws_are_keyed_by_seed_and_number_of_resets(mode: Mode) -> None:
    with mode.opened() as envs:
        for seed, index in ((SEED, 0), (None, 1), (None, 2), (SEED, 0), (SEED + 5, 0)):
            _, info = envs.reset(seed=seed)
            assert (np.asarray(info["draw_index"]) == index).all()
            assert (np.asarray(interface(envs).draw_index) == index).all()
            assert_in_force(envs, info, drawn(envs, index, seed or SEED))


def the_same_seed_gives_the_same_episodes(mode: Mode) -> None:
    with mode.opened(max_episode_steps=3) as envs, mode.opened(max_episode_steps=3) as twin:
        assert_same(play(envs), play(twin))


def unseeded_environments_differ(mode: Mode) -> None:
    with mode.opened() as envs, mode.opened() as twin:
        left, right = envs.reset()[1]["params"], twin.reset()[1]["params"]
        name = next(iter(interface(envs).randomization))
        values = [*np.atleast_1d(left[name]), *np.atleast_1d(right[name])]
        assert len(set(values)) > len(values) / 2  # a discrete one may give a value twice


def sub_environment_i_is_a_single_environment_seeded_s_plus_i(mode: Mode) -> None:
    with mode.opened() as envs, contextlib.closing(gym.make(mode.env_id)) as env:
        i = mode.num_envs - 1
        vector, single = envs.reset(seed=SEED), env.reset(seed=SEED + i)
        assert_same(np.atleast_2d(vector[0])[i], single[0], 1e-9)
        assert {n: v[i] for n, v in columns(vector[1]["params"]).items()} == single[1]["params"]


def seeds_are_reported_and_may_differ_for_each(mode: Mode) -> None:
    with mode.opened() as envs:
        seeds: Any = [7, 3, 2**40] if mode.vector else 7
        _, info = envs.reset(seed=seeds)
        assert envs.np_random_seed == (tuple(seeds) if mode.vector else seeds)
        words = np.array(seeds, np.uint64, ndmin=1)
        inner = interface(envs)
        assert_in_force(envs, info, draw(inner.randomization, inner.param_space, words, 0))


def exact_values_hold_for_one_episode(mode: Mode) -> None:
    with mode.opened() as envs:
        values = drawn(envs, 7, seed=900)
        _, info = envs.reset(seed=SEED, options={"params": given(envs, values)})
        assert_in_force(envs, info, values)
        assert_in_force(envs, envs.step(actions_of(envs))[-1], values)
        assert_in_force(envs, envs.reset()[1], drawn(envs, 1))


def pins_hold_from_the_next_reset_until_they_are_handed_back(mode: Mode) -> None:
    with mode.opened() as envs:
        values, exact, inner = drawn(envs, 7, seed=900), drawn(envs, 8, seed=900), interface(envs)
        name = next(iter(values))
        inner.set_params({name: given(envs, values)[name]})  # before the first reset too
        first = envs.reset(seed=SEED)[1]
        assert_in_force(envs, first, {**drawn(envs, 0), name: values[name]})
        inner.set_params(given(envs, values))
        assert_same(columns(inner.params), columns(first["params"]))
        assert_in_force(envs, envs.step(actions_of(envs))[-1], {**drawn(envs, 0), name: values[name]})
        assert_in_force(envs, envs.reset()[1], values)
        assert_in_force(envs, envs.reset(options={"params": given(envs, exact)})[1], exact)
        assert_in_force(envs, envs.reset()[1], values)
        inner.set_params(None)
        assert_in_force(envs, envs.reset()[1], drawn(envs, 4))  # draws were counted all along


def masks_choose_what_is_pinned_and_what_is_reset(mode: Mode) -> None:
    mask = np.array([False, True, False])
    if not mode.vector:
        with mode.opened() as env, refused(TypeError):
            interface(env).set_params(None, mask=mask)
        return
    with mode.opened() as envs, mode.opened() as twin:
        before, _ = envs.reset(seed=SEED)
        twin.reset(seed=SEED)
        values = drawn(envs, 7, seed=900)
        envs.set_params(values, mask=mask)
        observations, info = envs.reset(options={"reset_mask": mask})
        assert_same(observations[~mask], before[~mask])
        assert info["_draw_index"].tolist() == info["_params"].tolist() == mask.tolist()
        assert envs.draw_index.tolist() == info["draw_index"].tolist() == [0, 1, 0]
        for name, old in drawn(envs, 0).items():
            assert_same(envs.params[name], np.where(mask, values[name], old))
            assert_same(info["params"][name], np.where(mask, values[name], 0.0))
            assert info["params"][f"_{name}"].tolist() == mask.tolist()
        left, right = envs.step(actions_of(envs)), twin.step(actions_of(twin))
        assert_same([part[~mask] for part in left[:4]], [part[~mask] for part in right[:4]])


# ---- refusals ----------------------------------------------------------------------------------------------------


def impossible_values_masks_and_seeds_change_nothing(mode: Mode) -> None:
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        inner, name = interface(envs), next(iter(interface(envs).randomization))
        values: list[Any] = [{"no such name": 1.0}, {name: np.nan}, {name: -np.inf}, {name: "low"}, [name], 3]
        options = [{"params": value} for value in values]
        if mode.vector:
            values.append({name: np.ones(2)})
            masks = [np.ones(2, bool), np.ones(3), np.zeros(3, bool), "yes"]
            options += [{"reset_mask": mask} for mask in masks] + [[1]]
            for seed in (-1, 1.5, "1", True, [1, 2], [1, 2, -3]):
                with refused(RandomizationError):
                    envs.reset(seed=seed)
            with refused(RandomizationError):
                inner.set_params({name: 1.0}, mask=masks[0])
        for option in options:
            with refused(GymDrError):
                envs.reset(seed=99, options=option)
        for value in values:
            with refused(GymDrError):
                inner.set_params(value)
        assert_same(columns(inner.params), {**columns(inner.params), **drawn(envs, 0)})
        assert_in_force(envs, envs.reset()[1], drawn(envs, 1))  # the seed and its count are as they were


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


def before_the_first_reset_values_are_nominal_and_steps_are_refused(mode: Mode) -> None:
    with mode.opened() as envs:
        inner = interface(envs)
        for name, values in columns(inner.params).items():
            assert (values == inner.param_space[name].nominal).all()
        assert set(inner.randomization) <= set(inner.params)
        assert (np.asarray(inner.draw_index) == -1).all()
        with refused(EnvStateError if mode.name == "native" else gym.error.ResetNeeded):
            envs.step(actions_of(envs))


def closing_twice_is_possible(mode: Mode) -> None:
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        envs.close()
        envs.close()


def a_closed_vector_environment_refuses_calls(mode: Mode) -> None:
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        envs.close()
        for call in (envs.reset, envs.render, lambda: envs.step(actions_of(envs))):
            with refused(EnvStateError, gym.error.ClosedEnvironmentError):
                call()


def impossible_arguments_are_refused(mode: Mode) -> None:
    wrong: list[dict[str, Any]] = [
        {"randomization": "no such preset"},
        {"randomization": {"no such name": 1.0}},
        {"context": "everyone"},
        {"context_params": ["gravity"]},  # without context="observation"
    ]
    if mode.name == "native":
        numbers = ("num_envs", "num_threads", "max_episode_steps")
        wrong += [{name: bad} for name in numbers for bad in (0, 1.5, True)] + [{"autoreset_mode": "x"}]
    for kwargs in wrong:
        with refused(GymDrError):
            mode.make(**kwargs).close()
    with refused(TypeError):
        mode.make(no_such_argument=1).close()


def an_unknown_render_mode_is_refused(mode: Mode) -> None:
    with refused(GymDrError):
        mode.make(render_mode="no such mode").close()


# ---- what is returned --------------------------------------------------------------------------------------------


def spaces_and_types_are_gymnasiums(mode: Mode) -> None:
    with mode.opened() as envs, contextlib.closing(gym.make(mode.env_id)) as env:
        observations, _ = envs.reset(seed=SEED)
        assert observations in envs.observation_space
        _, rewards, terminated, truncated, _ = envs.step(actions_of(envs))
        if not mode.vector:
            assert [type(value) for value in (terminated, truncated)] == [bool, bool]
            assert isinstance(rewards, float)
            return
        assert envs.single_observation_space == env.observation_space
        assert envs.single_action_space == env.action_space
        assert envs.action_space == gym.vector.utils.batch_space(env.action_space, 3)
        assert envs.observation_space == gym.vector.utils.batch_space(env.observation_space, 3)
        assert [part.dtype for part in (rewards, terminated, truncated)] == [np.float64, np.bool_, np.bool_]
        assert [part.shape for part in (rewards, terminated, truncated)] == [(3,)] * 3


def returned_arrays_are_the_callers_own(mode: Mode) -> None:
    def spoil(value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype != object:
            value[...] = 1
        elif isinstance(value, Mapping | Sequence | np.ndarray) and not isinstance(value, str):
            for part in value.values() if isinstance(value, Mapping) else value:
                spoil(part)

    for kwargs in [{"autoreset_mode": m} for m in AutoresetMode] if mode.name == "native" else [{}]:
        with mode.opened(max_episode_steps=2, **kwargs) as envs, mode.opened(max_episode_steps=2, **kwargs) as twin:
            spoil(envs.reset(seed=SEED))
            twin.reset(seed=SEED)
            for t in range(2):
                result, expected = envs.step(actions_of(envs, t)), twin.step(actions_of(twin, t))
                assert_same(result, expected)
                spoil(result)
                spoil(interface(envs).params)


def info_has_values_draw_index_and_masks(mode: Mode) -> None:
    with mode.opened() as envs:
        for info in (envs.reset(seed=SEED)[1], envs.step(actions_of(envs))[-1]):
            if not mode.vector:
                assert isinstance(info["draw_index"], int)
                assert all(isinstance(value, float) for value in info["params"].values())
                assert not any(key.startswith("_") for key in (*info, *info["params"]))
                continue
            assert info["draw_index"].dtype == np.int64
            for level in (info, info["params"]):
                keys = [key for key in level if not key.startswith("_")]
                assert {f"_{key}" for key in keys} == level.keys() - keys
                assert all(level[f"_{key}"].dtype == np.bool_ and level[f"_{key}"].all() for key in keys)
            assert all((v.dtype, v.shape) == (np.float64, (3,)) for v in columns(info["params"]).values())


def the_callers_options_are_left_alone(mode: Mode) -> None:
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        options: dict[str, Any] = {"params": given(envs, drawn(envs, 7))}
        options |= {"reset_mask": np.array([True, False, True])} if mode.vector else {}
        before = dict(options)
        envs.reset(options=options)
        assert options.keys() == before.keys()


# ---- who sees the draw -------------------------------------------------------------------------------------------


def the_observation_ends_with_the_draw_where_the_policy_may_see_it(mode: Mode) -> None:
    autoresets = AutoresetMode if mode.vector else [None]
    for autoreset in autoresets:
        kwargs = {"autoreset_mode": autoreset} if autoreset else {}
        with mode.opened(max_episode_steps=2, context="observation", **kwargs) as envs:
            ranges = context_ranges(interface(envs).param_space, interface(envs).randomization)

            def tail(observations: Any, info: Any, ranges: Any = ranges) -> None:
                seen = np.atleast_2d(np.array(list(np.atleast_2d(observations)), np.float64))[:, -len(ranges) :]
                np.testing.assert_allclose(seen, normalised_context(columns(info["params"]), ranges), atol=1e-6)

            observations, info = envs.reset(seed=SEED)
            tail(observations, info)
            assert observations in envs.observation_space
            for t in range(2):
                observations, *_, info = envs.step(actions_of(envs, t))
                tail(observations, info)
            if autoreset == SAME_STEP:
                tail(np.stack(list(info["final_obs"])), info["final_info"])


def hidden_draws_are_in_no_info_and_change_no_episode(mode: Mode) -> None:
    kwargs: dict[str, Any] = {"max_episode_steps": 2, **({"autoreset_mode": SAME_STEP} if mode.vector else {})}
    with mode.opened(context="hidden", **kwargs) as envs, mode.opened(**kwargs) as twin:
        for hidden, seen in zip(play(envs, 3), play(twin, 3), strict=True):
            assert_same(hidden[:-1], seen[:-1])
            for level, other in ((hidden[-1], seen[-1]), (hidden[-1].get("final_info", {}), seen[-1])):
                assert not {"params", "_params"} & level.keys()
                assert "params" in other


# ---- the end of an episode ---------------------------------------------------------------------------------------


def next_step_resets_in_the_step_after_the_end(mode: Mode) -> None:
    if not mode.vector:  # whoever makes one environment resets it
        with refused(TypeError):
            mode.make(autoreset_mode=NEXT_STEP)
        return
    with mode.opened(max_episode_steps=2) as envs, mode.opened(max_episode_steps=2) as twin:
        assert envs.metadata["autoreset_mode"] is NEXT_STEP  # the default
        play(envs, 1), play(twin, 1)
        *_, truncated, info = envs.step(actions_of(envs, 1))
        twin.step(actions_of(twin, 1))
        assert truncated.all()
        assert_in_force(envs, info, drawn(envs, 0))
        observations, rewards, terminated, truncated, info = envs.step(actions_of(envs, 2))
        assert_same(observations, twin.step(actions_of(twin, 99))[0])  # the action is ignored
        assert not (rewards.any() or terminated.any() or truncated.any())
        assert_in_force(envs, info, drawn(envs, 1))
        assert info["draw_index"].tolist() == [1, 1, 1]


def same_step_returns_the_last_observation_and_info_beside_the_first(mode: Mode) -> None:
    if not mode.vector:
        with refused(TypeError):
            mode.make(autoreset_mode=SAME_STEP)
        return
    with mode.opened(max_episode_steps=2, autoreset_mode=SAME_STEP) as envs, mode.opened(max_episode_steps=2) as twin:
        assert envs.metadata["autoreset_mode"] is SAME_STEP
        play(envs, 1), play(twin, 1)
        observations, *others, info = envs.step(actions_of(envs, 1))
        last, *expected, last_info = twin.step(actions_of(twin, 1))
        assert_same(others, expected)
        assert_same(np.stack(list(info["final_obs"])), last)
        assert_same(info["final_info"], last_info)
        assert info["_final_obs"].all()
        assert info["_final_info"].all()
        assert_same(observations, twin.step(actions_of(twin, 2))[0])
        assert_in_force(envs, info, drawn(envs, 1))


def disabled_waits_for_a_reset_by_mask(mode: Mode) -> None:
    if not mode.vector:
        with refused(TypeError):
            mode.make(autoreset_mode=DISABLED)
        return
    with mode.opened(max_episode_steps=2, autoreset_mode=DISABLED) as envs:
        assert envs.metadata["autoreset_mode"] is DISABLED
        *_, info = play(envs, 1)[-1]
        assert envs.step(actions_of(envs, 1))[3].all()
        assert envs.draw_index.tolist() == [0, 0, 0]
        if mode.name == "native":  # Gymnasium's own go on
            with refused(EnvStateError):
                envs.step(actions_of(envs, 2))
        _, info = envs.reset(options={"reset_mask": np.array([True, True, False])})
        assert envs.draw_index.tolist() == [1, 1, 0]
        if mode.name == "native":
            with refused(EnvStateError):
                envs.step(actions_of(envs, 2))
        envs.reset(options={"reset_mask": np.array([False, False, True])})
        assert not envs.step(actions_of(envs, 2))[3].any()


def everything_is_as_in_a_sync_environment(mode: Mode) -> None:
    if mode.name not in ("native", "async"):
        return
    for autoreset in AutoresetMode:
        kwargs = {"max_episode_steps": 3, "autoreset_mode": autoreset}
        with mode.opened(**kwargs) as envs, Mode(env_id=mode.env_id, name="sync").opened(**kwargs) as twin:
            assert_same(play(envs), play(twin), 1e-9)
            assert_same([envs.params, envs.draw_index], [twin.params, twin.draw_index])
            assert envs.np_random_seed == twin.np_random_seed


def an_episode_may_go_on_for_ever(mode: Mode) -> None:
    with mode.opened(max_episode_steps=-1) as envs:  # Gymnasium's way to say it
        envs.reset(seed=SEED)
        assert not np.any(envs.step(actions_of(envs))[3])


# ---- pushes, pictures, rollouts, specifications ------------------------------------------------------------------

PUSHES = {"push_speed": 1.0, "push_probability": 1.0}


def pushes_change_what_comes_and_need_an_episode(mode: Mode) -> None:
    with mode.opened() as envs, mode.opened() as twin:
        if mode.name == "async":  # nobody reaches into other processes
            with refused(RandomizationError):
                DisturbVector(envs, PUSHES)
            return
        pushed = DisturbVector(envs, PUSHES) if mode.vector else Disturb(envs, PUSHES)
        assert_same(pushed.reset(seed=SEED)[0], twin.reset(seed=SEED)[0])
        after, still = pushed.step(actions_of(envs))[0], twin.step(actions_of(twin))[0]
        assert (np.atleast_2d(after) != np.atleast_2d(still)).any(axis=1).all()


def a_push_before_the_first_reset_is_refused(mode: Mode) -> None:
    if mode.name in ("async", "sync"):
        return  # what is pushed are the single environments
    with mode.opened() as envs:
        inner = interface(envs)
        velocities = np.ones((1, inner.push_size)) if mode.vector else np.ones(inner.push_size)
        with refused(EnvStateError):
            inner.push(velocities, *([np.array([0])] if mode.vector else []))


def every_sub_environment_gives_a_picture(mode: Mode) -> None:
    with mode.opened(render_mode="rgb_array") as envs:
        envs.reset(seed=SEED)
        frames = envs.render() if mode.vector else (envs.render(),)
        assert len(frames) == mode.num_envs
        assert all(frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3 for frame in frames)
        if mode.name == "native":
            assert_same(envs.render(indices=[2, 0]), (frames[2], frames[0]))


def there_are_no_pictures_without_a_render_mode(mode: Mode) -> None:
    with mode.opened() as envs, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium's environments, and some of ours, say so
        envs.reset(seed=SEED)
        frames = envs.render()
        assert frames is None or set(frames) == {None}


def pictures_need_an_episode(mode: Mode) -> None:
    with (
        mode.opened(render_mode="rgb_array") as envs,
        refused(EnvStateError if mode.name == "native" else gym.error.ResetNeeded),
    ):
        envs.render()


def a_compiled_rollout_is_what_stepping_gives(mode: Mode) -> None:
    if mode.name != "native":
        with mode.opened() as envs:
            assert not supports_rollout(envs)
        return
    with mode.opened(max_episode_steps=3, num_threads=1) as envs, mode.opened(max_episode_steps=3) as twin:
        assert supports_rollout(envs)
        assert_rollout_is_stepping(envs, twin)


def a_compiled_rollout_is_refused_where_it_would_differ(mode: Mode) -> None:
    if mode.name != "native":
        return
    wrong: list[dict[str, Any]] = [{"autoreset_mode": SAME_STEP}, {"autoreset_mode": DISABLED}]
    for kwargs in [*wrong, {"context": "observation"}]:
        with mode.opened(num_threads=1, **kwargs) as envs:
            assert not supports_rollout(envs), kwargs
            with refused(EnvStateError):
                play_compiled(envs)
    with mode.opened(num_threads=1) as envs, refused(EnvStateError):
        shape = envs.single_observation_space.shape
        steps = Steps.allocate(1, 3, inputs=shape[0], actions=len(idle_policy(envs).low))
        rollout(envs, idle_policy(envs), np.zeros((1, 3, 9), np.float32), steps, 0, 1)  # no reset yet


def its_spec_makes_the_same_environment_again(mode: Mode) -> None:
    with mode.opened(randomization="none") as envs:
        spec = envs.spec
        if mode.vector:
            again = gym.make_vec(spec)
        else:
            again = gym.make(EnvSpec.from_json(spec.to_json()))
            assert json.loads(spec.to_json())["kwargs"]["randomization"] == "none"
        assert_same(envs.reset(seed=SEED), again.reset(seed=SEED))
        again.close()


ENVIRONMENT_CONTRACTS: tuple[Contract, ...] = (
    draws_are_keyed_by_seed_and_number_of_resets,
    the_same_seed_gives_the_same_episodes,
    unseeded_environments_differ,
    sub_environment_i_is_a_single_environment_seeded_s_plus_i,
    seeds_are_reported_and_may_differ_for_each,
    exact_values_hold_for_one_episode,
    pins_hold_from_the_next_reset_until_they_are_handed_back,
    masks_choose_what_is_pinned_and_what_is_reset,
    impossible_values_masks_and_seeds_change_nothing,
    impossible_actions_change_nothing,
    before_the_first_reset_values_are_nominal_and_steps_are_refused,
    closing_twice_is_possible,
    a_closed_vector_environment_refuses_calls,
    impossible_arguments_are_refused,
    an_unknown_render_mode_is_refused,
    spaces_and_types_are_gymnasiums,
    returned_arrays_are_the_callers_own,
    info_has_values_draw_index_and_masks,
    the_callers_options_are_left_alone,
    the_observation_ends_with_the_draw_where_the_policy_may_see_it,
    hidden_draws_are_in_no_info_and_change_no_episode,
    next_step_resets_in_the_step_after_the_end,
    same_step_returns_the_last_observation_and_info_beside_the_first,
    disabled_waits_for_a_reset_by_mask,
    everything_is_as_in_a_sync_environment,
    an_episode_may_go_on_for_ever,
    pushes_change_what_comes_and_need_an_episode,
    a_push_before_the_first_reset_is_refused,
    every_sub_environment_gives_a_picture,
    there_are_no_pictures_without_a_render_mode,
    pictures_need_an_episode,
    a_compiled_rollout_is_what_stepping_gives,
    a_compiled_rollout_is_refused_where_it_would_differ,
    its_spec_makes_the_same_environment_again,
)
