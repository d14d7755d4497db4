"""Fits a log to an environment: checks its observations and actions, and brings it to the environment's rate."""

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


# ---- rate ------------------------------------------------------------------------------------------------------------


def resample(
    episodes: Sequence[LoggedEpisode], time_step: float | None, tolerance: float = 0.01
) -> tuple[list[LoggedEpisode], int]:
    """Brings a log to the rate of an environment.

    Args:
        episodes: All with times, or all without; see ``read_log``.
        time_step: Duration of the environment's steps, s; None if it has none.
        tolerance: Relative difference of intervals to ignore.

    Returns:
        The episodes, and how many steps of the environment each logged action acts. Without times nothing changes, and
        an action acts for one step. A log that is k times faster than the environment keeps each k-th observation, and
        each k-th row of arrays with T + 1 or T rows in ``others``; an incomplete step at the end is left out.

    Raises:
        LogError: Times are missing in some episodes, irregular, or fit no whole number of steps, or an action changes
            within a step of the environment.
    """
    timed = [episode for episode in episodes if episode.time is not None]
    if not timed:
        return list(episodes), 1
    if missing := [episode for episode in episodes if episode.time is None]:
        raise LogError(
            f"{missing[0].source}: expected times, as in {timed[0].source}, got none. Log them in all episodes, or "
            "leave them out in all."
        )
    interval = _interval(timed, tolerance)
    if time_step is None:
        return timed, 1
    every, hold = _whole(time_step / interval, tolerance), _whole(interval / time_step, tolerance)
    if every is not None:
        return (timed if every == 1 else [_thinned(episode, every) for episode in timed]), 1
    if hold is not None:
        return [replace(episode, hold=hold) for episode in timed], hold
    raise LogError(
        f"{timed[0].source}: expected observations every {time_step:g} s, a step of the environment, or a multiple or "
        f"a whole fraction of it, got one every {interval:g} s. Make the environment with steps of {interval:g} s, or "
        "log at that rate."
    )


def _whole(ratio: float, tolerance: float) -> int | None:
    """The whole number near a ratio; None if there is none."""
    number = round(ratio)
    return number if number >= 1 and abs(ratio - number) <= tolerance * number else None


def _interval(episodes: Sequence[LoggedEpisode], tolerance: float) -> float:
    """The time between observations, the same in all episodes, s."""
    medians: list[float] = []
    for episode in episodes:
        steps = np.diff(np.asarray(episode.time))
        median = float(np.median(steps))
        worst = int(np.argmax(np.abs(steps - median)))
        if abs(steps[worst] - median) > tolerance * median:
            raise LogError(
                f"{episode.source}: expected observations at a fixed rate, got {steps[worst]:g} s between rows {worst} "
                f"and {worst + 1}, where the median is {median:g} s. Log at a fixed rate, or split the episode at "
                "gaps; if only the clock's stamps jitter and not the sampling, leave out the time."
            )
        if medians and abs(median - medians[0]) > tolerance * medians[0]:
            raise LogError(
                f"{episode.source}: expected an observation every {medians[0]:g} s, as in {episodes[0].source}, got "
                f"one every {median:g} s. Fit logs of different rates one by one, or bring them to one rate."
            )
        medians.append(median)
    return float(np.median(medians))


def _thinned(episode: LoggedEpisode, every: int) -> LoggedEpisode:
    """Each ``every``-th observation of an episode, and the actions between them."""
    count = len(episode) // every
    if not count:
        raise LogError(
            f"{episode.source}: expected at least {every} actions, which last one step of the environment, got "
            f"{len(episode)}. Leave the episode out."
        )
    rows = slice(0, count * every + 1, every)
    steps = episode.actions[: count * every].reshape(count, every, -1)
    changes = np.argwhere(np.abs(steps - steps[:, :1]) > TOLERANCE)
    if changes.size:
        step, part, _ = changes[0].tolist()
        raise LogError(
            f"{episode.source}: {ACTIONS}: expected the same action in the {every} rows of each step of the "
            f"environment, got a change in row {step * every + part}, within step {step}. Make the environment with "
            "shorter steps, or leave out first rows so that the steps begin where actions change."
        )
    kept = {
        name: values[rows if len(values) == len(episode) + 1 else slice(0, count * every, every)]
        for name, values in episode.others.items()
        if values.ndim and len(values) in (len(episode), len(episode) + 1)
    }
    return replace(
        episode,
        observations=episode.observations[rows],
        actions=episode.actions[: count * every : every],
        time=None if episode.time is None else episode.time[rows],
        others={**episode.others, **kept},
    )
