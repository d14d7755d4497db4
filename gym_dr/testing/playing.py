"""The modes in which environments are made, the register of contracts that hold in each, and how they play."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from gym_dr.compiled.policy import CATEGORICAL, TWO_HEADS, SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.envs.played import Played
from gym_dr.envs.stack import pushed_layer, stack_of
from gym_dr.errors import EnvStateError
from gym_dr.randomization.sampler import draw
from gym_dr.wrappers.vector_params import VectorParams

MODES = ("single", "sync", "async", "native")
VECTOR = MODES[1:]
NUM_ENVS = 3

NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
SEED, STEPS = 20, 7  # with episodes of two or three steps: several autoresets


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
        """The answer of a single environment of this id."""
        with contextlib.closing(gym.make(self.env_id)) as env:
            return question(env)

    @contextlib.contextmanager
    def opened(self, **kwargs: Any) -> Iterator[Any]:
        """``make`` as a context manager, which also ends worker processes that raised errors."""
        envs = self.make(**kwargs)
        try:
            yield envs
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Gymnasium reports their errors a second time
                envs.close(**({"terminate": True} if self.name == "async" else {}))


def gives_pictures(mode: Mode) -> bool:
    """Whether the environment renders pictures, which is optional for equations."""
    return mode.single(lambda env: "rgb_array" in env.metadata["render_modes"])


def takes_pushes(mode: Mode) -> bool:
    """Whether pushes change anything."""
    return mode.single(lambda env: getattr(pushed_layer(env), "push_size", 0) > 0)


def draws_parameters(mode: Mode) -> bool:
    """Whether the preset "default" varies anything."""
    return mode.single(lambda env: bool(interface(env).randomization))


def gives_state(mode: Mode) -> bool:
    """Whether the physics has a state to get, which is optional."""
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        try:
            interface(envs).get_state()
        except (AttributeError, EnvStateError):
            return False
    return True


Contract = Callable[[Mode], None]
ENVIRONMENT_CONTRACTS: dict[str, list[Contract]] = {name: [] for name in MODES}


def promised(*modes: str, where: Callable[[Mode], bool] = lambda mode: True) -> Callable[[Contract], Contract]:
    """Registers a contract for these modes, and for the environments where ``where`` is true."""

    def register(contract: Contract) -> Contract:
        @functools.wraps(contract)
        def checked(mode: Mode) -> None:
            if where(mode):
                contract(mode)

        for name in modes:
            ENVIRONMENT_CONTRACTS[name].append(checked)
        return checked

    return register


# ---- playing ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def refused(*errors: type[Exception]) -> Iterator[None]:
    """Asserts that one of these errors is raised, with a message."""
    caught: list[Exception] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium also warns of errors in its workers
        try:
            yield
        except errors as error:
            caught.append(error)
    assert [str(error) for error in caught if str(error)], f"expected one of {errors}, got {caught}"


def interface(env: Any) -> Any:
    """The layer with ``params``, inside wrappers that hide them."""
    return next((layer for layer in stack_of(env) if hasattr(layer, "params")), env.unwrapped)


def actions_of(env: Any, t: int = 0) -> Any:
    """Actions that depend only on ``t``."""
    env.action_space.seed(t)
    return env.action_space.sample()


def columns(params: Mapping[str, Any]) -> dict[str, Any]:
    """Values without their masks: name -> shape ``(num_envs,)``."""
    return {name: np.atleast_1d(values) for name, values in params.items() if not name.startswith("_")}


def drawn(env: Any, index: int, seed: Any = SEED) -> dict[str, Any]:
    """The keyed draws after ``reset(seed=seed)``: name -> shape ``(num_envs,)``."""
    seeds = seed + np.arange(getattr(env, "num_envs", 1)) if isinstance(seed, int) else seed
    inner = interface(env)
    return draw(inner.randomization, inner.param_space, np.array(seeds, np.uint64), index)


def given(env: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the environment takes them: numbers for a single one."""
    return {name: v if isinstance(env, gym.vector.VectorEnv) else float(v[0]) for name, v in values.items()}


def assert_same(left: Any, right: Any, tolerance: float = 0.0, path: str = "") -> None:
    """Asserts that keys, types, shapes and values agree, at any depth."""
    if isinstance(left, Mapping):
        assert left.keys() == right.keys(), (path, left.keys() ^ right.keys())
        for key in left:
            assert_same(left[key], right[key], tolerance, f"{path}/{key}")
    elif isinstance(left, list | tuple) or (isinstance(left, np.ndarray) and left.dtype == object):
        for one, other in zip(left, right, strict=True):
            assert_same(one, other, tolerance, path)
    elif left is None or right is None:
        assert left is right, path
    else:
        left, right = np.asarray(left), np.asarray(right)
        assert (left.dtype, left.shape) == (right.dtype, right.shape), (path, left.dtype, right.dtype)
        if left.tobytes() == right.tobytes():  # as nearly always, and far quicker than numpy's functions
            return
        if left.dtype.kind == "U":
            assert left.tolist() == right.tolist(), path
        else:
            np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=path)


def assert_current(env: Any, info: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Asserts that both ``info`` and the environment report these values, among others."""
    for reported in (columns(info["params"]), columns(interface(env).params)):
        assert_same({name: reported[name] for name in expected}, dict(expected))


def play(env: Any, steps: int = STEPS) -> list[Any]:
    """Everything that a reset and some steps return; without autoreset, resets ended episodes by hand."""
    return [env.reset(seed=SEED), *go_on(env, steps)]


def go_on(env: Any, steps: int = STEPS) -> list[Any]:
    """As ``play``, without the first reset."""
    rows: list[Any] = []
    for t in range(steps):
        rows.append(env.step(actions_of(env, t)))
        done = np.logical_or(rows[-1][2], rows[-1][3])
        if done.any() and env.metadata.get("autoreset_mode", DISABLED) == DISABLED:
            rows.append(env.reset(options={"reset_mask": done} if done.ndim else None))
    return rows


def unequal(envs: Any) -> Any:
    """The observations after a step and another reset of the first sub-environment, so that episodes end apart."""
    envs.reset(seed=SEED)
    envs.step(actions_of(envs))
    return envs.reset(options={"reset_mask": np.arange(envs.num_envs) == 0})[0]


def play_compiled(envs: Any) -> tuple[Steps, list[Played]]:
    """Rollouts of pure noise, of two steps and then of the rest, in as many calls as it takes."""
    space, inputs = envs.single_action_space, envs.single_observation_space.shape[0]
    discrete = isinstance(space, gym.spaces.Discrete)
    low, high = np.zeros((2, 0), np.float32) if discrete else (space.low, space.high)
    sizes, kind = ([inputs, int(space.n)], CATEGORICAL) if discrete else ([inputs, 2 * len(low)], TWO_HEADS)
    policy = SmallPolicy.allocate(
        sizes=sizes, kind=kind, low=low, high=high, num_envs=envs.num_envs, activation="tanh", floor=0.01
    )
    noise = np.random.default_rng(0).random((STEPS, envs.num_envs, max(1, len(low))), np.float32)
    steps = Steps.allocate(STEPS, envs.num_envs, inputs=inputs, actions=len(low))
    steps.observations[0] = unequal(envs)
    t, calls = 0, []
    for last in (2, STEPS):
        while t < last:
            calls.append(envs.rollout(policy, noise, steps, t, last))
            t += len(calls[-1].ended)
    return steps, calls


def assert_rollout_is_stepping(envs: Any, twin: Any) -> list[int]:
    """Asserts that rollouts equal stepping: float32 observations, rewards, ends, resets, draws, signals and info.

    Returns:
        The steps of each call.
    """
    steps, calls = play_compiled(envs)
    space, everyone, resets = twin.single_action_space, np.arange(twin.num_envs), np.zeros(twin.num_envs, np.bool_)
    assert_same(steps.observations[0], unequal(twin).astype(np.float32))
    rows = [(played, row) for played in calls for row in range(len(played.ended))]
    for t, (played, row) in enumerate(rows):
        discrete = isinstance(space, gym.spaces.Discrete)
        actions = steps.discrete[t] + space.start if discrete else np.clip(steps.raw_actions[t], space.low, space.high)
        observations, rewards, *ends, info = twin.step(actions)
        expected = [observations.astype(np.float32), rewards, ends[0], ends[0] | ends[1], resets]
        assert_same([np.asarray(rows)[row] for rows in played[:5]], expected)
        assert_same(
            [steps.observations[t + 1], steps.rewards[t], steps.terminated[t], steps.truncated[t]],
            [*expected[:2], *ends],
        )
        signals = Played.of_step(observations, rewards, ends[0], ends[1], info, resets).signals
        nothing = {name: np.zeros_like(values[row]) for name, values in played.signals.items()}  # as resets report
        assert_same(
            {name: values[row] for name, values in played.signals.items()},
            nothing | {name: values[0] for name, values in signals.items()},
        )
        places, draws, resets = played.episodes(row, everyone), played.draws, expected[3]
        assert_same(draws["draw_index"][places], info["draw_index"])
        assert_same({name: draws["params"][name][places] for name in info["params"]}, info["params"])
        if row == len(played.ended) - 1:
            assert_same(played.info, info)
    left, right = interface(envs), interface(twin)
    assert_same([left.params, left.draw_index], [right.params, right.draw_index])
    return [len(played.ended) for played in calls]
