"""Checks a policy's actions before they reach an environment."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError, GymDrError, InvalidActionError, shortened
from gym_dr.policies.acting import with_episode_starts
from gym_dr.training.api import EpisodeStarts, MemorylessPolicy, Policy, PolicyWithMemory
from gym_dr.training.config import AS_IN_TRAINING

ARRAYS = (Box, Discrete, MultiDiscrete, MultiBinary)  # spaces whose batches are arrays


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
