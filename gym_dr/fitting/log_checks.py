"""Checks that a log fits an environment: its observations and its actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from gym_dr.arrays import Array
from gym_dr.errors import LogError, located, shortened
from gym_dr.fitting.logs import ACTIONS, OBSERVATIONS, LoggedEpisode

TOLERANCE = 1e-6  # of actions: what rounding to float32 may add
LARGEST = 1e8  # of observations, in the units of any environment


def check_spaces(observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
    """Checks that an environment's episodes can be logged: observations ``(n,)``, and actions ``(m,)`` or discrete.

    Raises:
        LogError: A space has another form.
    """
    if not isinstance(observation_space, Box) or len(observation_space.shape) != 1:
        raise LogError(
            f"Expected an environment whose observations are rows of numbers, got {shortened(observation_space)}."
        )
    if not isinstance(action_space, Discrete) and (not isinstance(action_space, Box) or len(action_space.shape) != 1):
        raise LogError(
            f"Expected an environment whose actions are rows of numbers or discrete, got {shortened(action_space)}."
        )


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
            fit = _check_choices if isinstance(action_space, Discrete) else _check_bounds
            checked.append(replace(episode, actions=fit(episode.actions, action_space)))
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


def _check_choices(actions: npt.NDArray[Any], space: Any) -> npt.NDArray[np.int64]:
    """Actions of a ``Discrete``."""
    if actions.ndim == 2 and actions.shape[1] != 1:
        raise LogError(f"{ACTIONS}: expected one number in each step, for {space}, got {actions.shape[1]} numbers.")
    flat = actions.reshape(-1)
    first, last = int(space.start), int(space.start + space.n - 1)
    wrong = np.flatnonzero((flat != np.round(flat)) | (flat < first) | (flat > last))
    if wrong.size:
        raise LogError(
            f"{ACTIONS}: expected whole numbers from {first} to {last}, got {flat[wrong[0]]:g} in step {wrong[0]}."
        )
    return flat.astype(np.int64)


def _check_bounds(actions: npt.NDArray[Any], space: Any) -> Array:
    """Actions of a ``Box``."""
    rows = actions.reshape(len(actions), -1).astype(np.float64)
    size = space.shape[0]
    if rows.shape[1] != size:
        raise LogError(f"{ACTIONS}: expected {size} numbers in each step, for {space}, got {rows.shape[1]}.")
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    outside = (rows < low - TOLERANCE) | (rows > high + TOLERANCE)
    if outside.any():
        step, column = np.argwhere(outside)[0].tolist()
        raise LogError(
            f"{ACTIONS}: expected values from {low[column]:g} to {high[column]:g}, got {rows[step, column]:g} in step "
            f"{step}, column {column}. The environment would clip it, or refuse it: if the real system clipped it too, "
            "clip the log; otherwise log actions in the environment's units."
        )
    clipped: Array = np.clip(rows, low, high)
    return clipped
