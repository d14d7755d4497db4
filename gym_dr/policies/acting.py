"""Calls policies with or without memory, for evaluation, reports, play and logs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError, NotFiniteError
from gym_dr.policies.draws import Draws
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.training.api import EpisodeStarts, MemorylessPolicy, Policy, PolicyWithMemory
from gym_dr.wrappers.record import RecordEpisodes

EPISODE_STARTS = "episode_starts"  # the name that a policy's second parameter needs if it has a default

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


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
