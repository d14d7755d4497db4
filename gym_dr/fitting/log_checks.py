"""Checks that a log's observations and actions are those of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from gym_dr.arrays import Array
from gym_dr.errors import LogError, located, shortened
from gym_dr.fitting.logs import ACTIONS, OBSERVATIONS, LoggedEpisode

TOLERANCE = 1e-6  # of actions: what rounding to float32 may add
LARGEST = 1e8  # of observations, in the units of any environment


def check_spaces(observation_space: gym.Space[Any], action_space: gym.Space[Any], *, nested: bool = False) -> None:
    """Checks that an environment's episodes can be logged: observations ``(n,)``, and actions ``(m,)`` or discrete.

    Args:
        observation_space: Of a single environment.
        action_space: Of a single environment.
        nested: Whether observations may also be other arrays, or dictionaries and tuples of arrays.

    Raises:
        LogError: A space has another form.
    """
    rows = [isinstance(space, Box) and len(space.shape) == 1 for space in (observation_space, action_space)]
    observed = _has_arrays(observation_space) if nested else rows[0]
    if not (observed and (rows[1] or isinstance(action_space, Discrete))):
        raise LogError(
            f"Expected an environment whose observations are {'arrays' if nested else 'rows of numbers'}, and whose "
            f"actions are rows of numbers or discrete, got {shortened(observation_space)} and "
            f"{shortened(action_space)}. Flatten observations with gymnasium.wrappers.FlattenObservation; only "
            "recorded data sets of Minari hold dictionaries, tuples and images."
        )


def _has_arrays(space: gym.Space[Any]) -> bool:
    """Whether observations are arrays, or dictionaries and tuples of them."""
    if isinstance(space, Dict | Tuple):
        return all(map(_has_arrays, space.values() if isinstance(space, Dict) else space))
    return isinstance(space, Box | Discrete | MultiDiscrete | MultiBinary)


def check_log(
    episodes: Sequence[LoggedEpisode], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> list[LoggedEpisode]:
    """Checks that a log fits an environment.

    Args:
        episodes: From ``read_log``.
        observation_space: Of a single environment.
        action_space: Of a single environment.

    Returns:
        The same episodes with actions as the environment takes them: float64 ``(T, m)`` within the bounds, or int64
        ``(T,)``. Also accepts ``(T,)`` for a single number, and discrete actions ``(T, 1)`` or as floats.

    Raises:
        LogError: The environment's episodes cannot be logged, the log has other observations or actions, or its
            observations are too large for any motion.
    """
    check_spaces(observation_space, action_space)
    width = (observation_space.shape or (0,))[0]
    checked = []
    for episode in episodes:
        with located(episode.source):
            if episode.observations.shape[1] != width:
                raise LogError(
                    f"{OBSERVATIONS}: expected {width} numbers in each, as the environment observes, got "
                    f"{episode.observations.shape[1]}. Bring the log into the environment's form."
                )
            _check_sizes(episode.observations)
            checked.append(replace(episode, actions=_checked_actions(episode.actions, action_space)))
    return checked


def _check_sizes(observations: Array) -> None:
    """Raises LogError for numbers too large to be compared with any simulation."""
    large = np.argwhere(np.abs(observations) > LARGEST)
    if large.size:
        row, column = large[0].tolist()
        raise LogError(
            f"{OBSERVATIONS}: expected numbers up to {LARGEST:g}, got {observations[row, column]:g} in row {row}, "
            f"column {column}. Log in the environment's units, and leave out readings of a failed sensor."
        )


def _checked_actions(actions: npt.NDArray[Any], space: Any) -> npt.NDArray[Any]:
    """Actions of a ``Box`` within its bounds, or of a ``Discrete``."""
    discrete = isinstance(space, Discrete)
    ends = ([space.start], [space.start + space.n - 1]) if discrete else (space.low, space.high)
    low, high = np.asarray(ends, np.float64)
    rows = actions.reshape(len(actions), -1).astype(np.float64)
    if rows.shape[1] != len(low):
        raise LogError(f"{ACTIONS}: expected {len(low)} in each step, for {space}, got {rows.shape[1]}.")
    wrong = (rows < low - TOLERANCE) | (rows > high + TOLERANCE) | (discrete & (rows != np.round(rows)))
    if wrong.any():
        step, column = np.argwhere(wrong)[0].tolist()
        raise LogError(
            f"{ACTIONS}: expected {'whole numbers' if discrete else 'values'} from {low[column]:g} to "
            f"{high[column]:g}, got {rows[step, column]:g} in step {step}, column {column}. The environment would clip "
            "or refuse it: if the real system clipped it too, clip the log; otherwise log actions in the environment's "
            "units."
        )
    clipped: Array = np.clip(rows, low, high)
    return clipped.astype(np.int64).ravel() if discrete else clipped
