"""Brings a log to the rate of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gym_dr.errors import LogError
from gym_dr.fitting.log_checks import TOLERANCE
from gym_dr.fitting.logs import ACTIONS, LoggedEpisode


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
        return timed, hold
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
