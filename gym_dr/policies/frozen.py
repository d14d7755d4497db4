"""A policy of any origin: the environments in which it acts, how it is called, and how its episodes are played."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array
from gym_dr.envs.family import family_of
from gym_dr.errors import CheckpointError, ConfigError, GymDrError, InvalidActionError, NotFiniteError, shortened
from gym_dr.randomization.presets import NONE, preset_of
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import OpenedRun
from gym_dr.runs.environments import ContextRanges, make_vector_env, wrap_for_policy
from gym_dr.training.api import EpisodeStarts, MemorylessPolicy, Policy, PolicyWithMemory
from gym_dr.training.config import AS_IN_TRAINING, CONTEXT_SPAN
from gym_dr.wrappers.frame_stack import ONE_FRAME, Frames
from gym_dr.wrappers.record import RecordEpisodes
from gym_dr.wrappers.vector_params import with_params

NATIVE_ENVS = 512  # sub-environments of an evaluation; more are hardly faster and report progress less often
PYTHON_ENVS = 10  # more are no faster in Python, and all wait for the slowest episode

UNKNOWN = "unknown"  # in place of a preset's name

EPISODE_STARTS = "episode_starts"  # the name that a policy's second parameter needs if it has a default
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
ARRAYS = (Box, Discrete, MultiDiscrete, MultiBinary)  # spaces whose batches are arrays


@dataclass(frozen=True, kw_only=True)
class Draws:
    """The distribution of draws, and values that replace them."""

    randomization: Randomization = field(default_factory=Randomization)  # empty for nominal values
    values: Mapping[str, Array] = field(default_factory=dict)  # name -> value of each episode, shape (episodes,)
    episodes: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are set or drawn."""
        return tuple(dict.fromkeys((*self.values, *self.randomization)))


@dataclass(frozen=True, kw_only=True)
class FrozenPolicy:
    """A policy of a run or from elsewhere, which can be created any number of times."""

    name: str  # unique among policies evaluated together
    env: str  # id of the environment that it acts in
    source: str  # where it comes from, for messages
    space: ParamSpace | None  # parameters of the environment; None if it has none
    randomization: Randomization | None  # of its training; None if unknown, or without parameters
    context_ranges: ContextRanges | None = None  # of the parameters that it observes, ...
    context_span: float = CONTEXT_SPAN  # ... mapped to [-context_span, context_span]
    frames: Frames = ONE_FRAME
    digest: str  # of everything that determines its actions
    load: Callable[[VectorEnv[Any, Any, Any]], Policy]
    home: Path  # default folder of its evaluation
    record: Mapping[str, Any]  # its entry in an evaluation: kind, path, algorithm, seed, and more by kind
    run: OpenedRun | None = None  # None for a policy from elsewhere
    reference: bool = False  # whether it only shows what is possible, for regret

    def make(self, envs: VectorEnv[Any, Any, Any]) -> Policy:
        """Creates the policy and restarts its random numbers.

        Raises:
            CheckpointError: The weights do not fit the environment's observations or actions.
        """
        try:
            return self.load(envs)
        except GymDrError as error:
            spaces = describe_spaces(self.env, envs)
            raise CheckpointError(f"{self.source}: the policy does not fit {spaces}: {error}") from None

    def make_envs(
        self, draws: Draws, *, render_mode: str | None = None, together: int | None = None, mode: str = "auto"
    ) -> VectorEnv[Any, Any, Any]:
        """Makes a vector environment with these draws, wrapped as in the policy's training.

        Args:
            draws: The distribution of its draws, and the names that ``options["params"]`` may set.
            render_mode: With one, there is a single sub-environment.
            together: Most sub-environments at once; None for as many as are useful.
            mode: Without pictures, how they are stepped: "auto", "native", "sync" or "async".
        """
        native = self.space is not None and gym.spec(self.env.rpartition(":")[2]).vector_entry_point is not None
        alone = getattr(family_of(self.env), "only", None) is not None  # an object of the user
        most = 1 if alone else together or (NATIVE_ENVS if native else PYTHON_ENVS)
        num_envs, shown = min(most, draws.episodes), {}
        if render_mode is not None:
            num_envs, mode, shown = 1, "sync", {"render_mode": render_mode}
        randomization = None if self.space is None else draws.randomization
        envs = make_vector_env(self.env, num_envs, mode, randomization, **shown)
        if draws.values:
            envs = with_params(envs)
        return wrap_for_policy(
            envs, randomization, self.context_ranges, tuple(draws.values), self.context_span, self.frames
        )

    def check(self) -> None:
        """Checks that the policy acts in its environment, for two steps, so that one with memory goes on.

        Raises:
            ConfigError: It fails on the environment's observations, or actions are not arrays.
            InvalidActionError: It returns actions of the wrong shape or type, or that are not finite.
            CheckpointError: Its weights do not fit.
        """
        # single ones: to play one episode, nobody waits until the native environment is compiled
        with contextlib.closing(self.make_envs(Draws(episodes=2), mode="sync")) as envs:
            act = checked(self.make(envs), envs, self.source, self.env)
            for _ in itertools.islice(drive(act, envs, seed=0), 3):  # a reset and two steps
                pass

    @property
    def trained_on(self) -> str:
        """The preset of its training, "none" for nominal values, "own" for other randomizations, or "unknown"."""
        if self.space is None or (self.randomization is not None and not self.randomization):
            return NONE
        if self.randomization is None:
            return UNKNOWN
        return preset_of(self.randomization, self.space)


# ---- how a policy is called ------------------------------------------------------------------------------------------


def takes_episode_starts(policy: Policy, source: str = "The policy") -> bool:
    """Whether a policy has a memory, and is called as ``policy(observations, episode_starts)``.

    Its signature then has a second positional parameter without a default, or one named ``episode_starts``.
    Other parameters keep their defaults. ``*args``, and compiled code without a signature, get only observations.

    Args:
        policy: Any callable.
        source: Where it comes from, for messages.

    Raises:
        ConfigError: It needs more than these two arguments, takes none, or takes ``episode_starts`` only by name.
    """
    try:
        parameters = inspect.signature(policy).parameters.values()
    except (TypeError, ValueError):  # compiled code may have none
        return False
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    needed = sum(parameter.default is parameter.empty for parameter in positional)
    by_name = any(p.name == EPISODE_STARTS and p.kind == p.KEYWORD_ONLY for p in parameters)
    any_number = any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters)
    if needed > 2 or by_name or not (positional or any_number):
        raise ConfigError(
            f"{source}: expected a function (observations) or (observations, {EPISODE_STARTS}), both positional, got "
            f"one with the parameters {inspect.signature(policy)}."
        )
    return needed == 2 or (len(positional) > 1 and positional[1].name == EPISODE_STARTS)


def with_episode_starts(policy: Policy, source: str = "The policy") -> PolicyWithMemory:
    """The policy as a function of observations and episode starts; for arguments see ``takes_episode_starts``.

    Raises:
        ConfigError: It has other parameters.
    """
    if takes_episode_starts(policy, source):
        return cast(PolicyWithMemory, policy)

    def act(observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        return cast(MemorylessPolicy, policy)(observations)

    return act


def describe_spaces(env_id: str, envs: VectorEnv[Any, Any, Any]) -> str:
    """Describes an environment's observations and actions, for the end of a sentence.

    Raises:
        ConfigError: Its actions are not arrays.
    """
    observations, actions = envs.single_observation_space, envs.single_action_space
    if not isinstance(actions, ARRAYS):
        raise ConfigError(f"{env_id}: expected actions that are arrays, which policies return, got {actions}.")
    observed = f"of shape {observations.shape}" if isinstance(observations, ARRAYS) else observations
    return f"{env_id}, which has observations {observed} and actions {actions}"


def checked(policy: Policy, envs: VectorEnv[Any, Any, Any], source: str, env_id: str) -> PolicyWithMemory:
    """Wraps a policy: checks the shape and type of actions, and clips them to a Box, as Stable-Baselines3 does.

    Args:
        policy: With memory or without; may return anything.
        envs: The environments that it acts in.
        source: Where the policy comes from, for messages.
        env_id: Id of the environment, for messages.

    Returns:
        The checked policy; it raises ``ConfigError`` if the given one fails, and ``InvalidActionError`` if actions do
        not fit the environment.

    Raises:
        ConfigError: The policy takes other arguments, or actions are not arrays.
    """
    given = with_episode_starts(policy, source)
    spaces = describe_spaces(env_id, envs)
    single, space = envs.single_action_space, envs.action_space

    def act(observations: Any, episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        try:
            actions = np.asarray(given(observations, episode_starts))
        except GymDrError:
            raise
        except Exception as error:  # the policy may be any code
            raise ConfigError(f"{source}: fails on {spaces}: {type(error).__name__}: {error}") from error
        if actions.shape != space.shape:
            raise InvalidActionError(
                f"{source}: expected actions of shape {space.shape} for {spaces}, got shape {actions.shape}."
            )
        if actions.dtype.kind not in ("fiub" if isinstance(single, Box) else "iub"):
            raise InvalidActionError(
                f"{source}: expected {'numbers' if isinstance(single, Box) else 'whole numbers'} as actions for "
                f"{spaces}, got {actions.dtype}."
            )
        if actions.dtype.kind == "f" and not (finite := np.isfinite(actions)).all():
            got = f"{actions[~finite][0]} in sub-environment {np.argwhere(~finite)[0][0]}"
            raise InvalidActionError(f"{source}: expected finite actions, got {got}.")
        if isinstance(space, Box):
            return np.asarray(np.clip(actions, space.low, space.high), space.dtype)
        if not space.contains(actions.astype(space.dtype)):
            wrong = next(a for a in actions if not single.contains(a.astype(single.dtype)))
            raise InvalidActionError(
                f"{source}: expected actions in {single}, got {shortened(wrong.tolist())} among them."
            )
        return actions.astype(space.dtype)

    if (reseed := getattr(policy, "reseed", None)) is not None:  # of a policy that samples actions
        vars(act)["reseed"] = reseed
    return act


def for_one_or_many(policy: MemorylessPolicy, shape: tuple[int, ...], source: str) -> MemorylessPolicy:
    """Lets a policy act on a single observation too.

    Args:
        policy: Observations ``(N, *shape)`` -> actions ``(N, ...)``.
        shape: Shape of one observation.
        source: Where the policy comes from, for messages.

    Returns:
        A policy that also takes one observation, of ``shape``, and returns its action. It raises ``ConfigError`` for
        observations of any other shape.
    """
    return functools.partial(_act, policy, shape, source)  # which can be copied and pickled


def _act(policy: MemorylessPolicy, shape: tuple[int, ...], source: str, observations: npt.NDArray[Any]) -> Any:
    given = np.asarray(observations)
    if given.shape == shape:
        return policy(given[None])[0]
    if given.shape[1:] != shape or given.ndim != len(shape) + 1:
        many = str(("N", *shape)).replace("'", "")
        expected = f"expected observations of shape {shape} or {many}, got {given.shape}"
        raise ConfigError(f"{source}: {expected}. {AS_IN_TRAINING}")
    return policy(given)


# ---- how its episodes are played -------------------------------------------------------------------------------------


class Moment(NamedTuple):
    """The results of a reset or a step; a reset has no actions."""

    observations: Any
    info: dict[str, Any]
    actions: npt.NDArray[Any] | None = None
    rewards: Any = 0.0
    terminations: Any = False
    truncations: Any = False


def drive(
    policy: Policy, envs: VectorEnv[Any, Any, Any], *, seed: int | None, options: Mapping[str, Any] | None = None
) -> Iterator[Moment]:
    """Resets environments and steps them with a policy's actions, without end.

    The policy is told where episodes start: everywhere at its first call, later where a reset step has just returned
    the first observation of an episode.

    Args:
        policy: See ``with_episode_starts``.
        envs: NEXT_STEP autoreset.
        seed: Seed of the reset; None to keep the environments' generators.
        options: Options of the reset.

    Yields:
        The results of the reset, then of each step.
    """
    act = with_episode_starts(policy)
    observations, info = envs.reset(seed=seed, options=dict(options) if options else None)
    starts, ended = np.ones(envs.num_envs, np.bool_), np.zeros(envs.num_envs, np.bool_)
    moment = Moment(observations, info)
    while True:
        yield moment
        actions = act(moment.observations, starts)
        observations, rewards, terminations, truncations, info = envs.step(actions)
        moment = Moment(observations, info, actions, rewards, terminations, truncations)
        # NEXT_STEP: the step after the one that ended an episode is the reset step
        starts, ended = ended, np.logical_or(terminations, truncations)


def play_batch(
    policy: Policy,
    envs: VectorEnv[Any, Any, Any],
    draws: Draws,
    *,
    seed: int,
    first: int = 0,
    on_step: Callable[[Moment], object] = lambda moment: None,
) -> list[EpisodeRecord]:
    """Plays the next episodes, one in each sub-environment, until the slowest ends.

    Each episode has its own seed, so its draw, terrain and first push are the same for every policy. A batch waits for
    its slowest episode, since taking the first episodes to finish would favor short ones.

    Args:
        policy: With memory or without.
        envs: NEXT_STEP autoreset; closed by the caller.
        draws: All episodes; ``envs`` draw from its randomization.
        seed: Seed of episode 0; episode k has ``seed + k``.
        first: The first episode of this batch.
        on_step: Called with the results of the reset and of each step.

    Returns:
        A record for each episode, in the order of the sub-environments.

    Raises:
        NotFiniteError: A return is not finite, or a simulation diverged: statistics could not be computed.
    """
    records: dict[int, EpisodeRecord] = {}
    episodes = min(envs.num_envs, draws.episodes - first)

    def keep(record: EpisodeRecord) -> None:
        _check_finite(record, seed + first + record.env_index)
        records[record.env_index] = record

    recorded = RecordEpisodes(envs, keep)
    played = np.minimum(np.arange(first, first + envs.num_envs), draws.episodes - 1)  # idle ones get the last values
    options = {"params": {name: values[played] for name, values in draws.values.items()}} if draws.values else None
    steps = drive(policy, recorded, seed=seed + first, options=options)
    on_step(next(steps))  # the reset
    recorded.quota[:] = np.arange(envs.num_envs) < episodes
    while len(records) < episodes:
        on_step(next(steps))
    return [records[i] for i in range(episodes)]


def _check_finite(record: EpisodeRecord, seed: int) -> None:
    if record.diverged or not math.isfinite(record.episode_return):
        values = "".join(f", {name} {value:g}" for name, value in record.params.items())
        what = "diverged in its simulation" if record.diverged else f"returned {record.episode_return}"
        raise NotFiniteError(
            f"An episode {what} (seed {seed}{values}): expected rewards that are finite and simulations that do not "
            "diverge. Leave out values that lead there."
        )
