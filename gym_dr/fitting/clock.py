"""Brings a log to the clock of an environment: how many of its steps each logged interval lasts, and where gaps are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.errors import LogError
from gym_dr.fitting.log_checks import TOLERANCE
from gym_dr.fitting.logs import ACTIONS, LoggedEpisode

GAP = 5.0  # median intervals; nobody knows what acted in a longer one
_SAME_RATE = 0.01  # relative difference of two clocks that is ignored
_FASTER = 0.75  # median interval, in steps, below which a log is thinned
_ROUGH = 0.25  # rms error of intervals in whole steps, over their median, above which they are refused
_LATE = 1e-6  # steps by which half a step may be exceeded


def on_clock(
    episodes: Sequence[LoggedEpisode], time_step: float | None, *, exact: bool = False, average_actions: bool = False
) -> list[LoggedEpisode]:
    """Brings a log to the clock of an environment.

    Each interval takes the whole number of steps that is nearest on the running clock of its episode, so that errors do
    not add up. A log that is faster than the environment keeps the observation nearest to each step, and what belongs
    to it in ``others``. Intervals longer than ``GAP`` medians are gaps.

    Args:
        episodes: All with times, or all without; without, each logged step is one of the environment.
        time_step: Duration of the environment's steps, s; None if it is not known: the median interval then.
        exact: Whether steps can be made as long as an interval needs, and ``time_step`` is the longest.
        average_actions: Whether an action may change within a step, in which its mean then acts.

    Raises:
        LogError: Times are missing in some episodes, whole steps are too rough for them, or an action changes within a
            step.
    """
    timed = [episode for episode in episodes if episode.time is not None]
    if not timed:
        return list(episodes)
    if missing := [episode for episode in episodes if episode.time is None]:
        raise LogError(
            f"{missing[0].source}: expected times, as in {timed[0].source}, got none. Log them in all episodes, or "
            "leave them out in all."
        )
    step = float(np.median(np.diff(_time(timed[0])))) if time_step is None else time_step
    return [_exact(one, step) if exact else _clocked(one, step, average_actions) for one in timed]


def in_single_steps(episode: LoggedEpisode) -> LoggedEpisode:
    """The same episode with a row for each step of the environment, in which nothing is measured between two rows."""
    holds, count = episode.holds, len(episode)
    rows, acting = np.append(0, np.cumsum(holds)), np.repeat(np.arange(count), holds)

    def spread(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if values.ndim and len(values) == count:
            return values[acting]
        if not (values.ndim and len(values) == count + 1 and values.dtype.kind in "biuf"):
            return values
        found = np.full((len(acting) + 1, *values.shape[1:]), np.nan)
        found[rows] = values
        return found

    time = None if episode.time is None else np.interp(np.arange(len(acting) + 1), rows, episode.time)
    return replace(
        episode,
        observations=spread(episode.observations),
        actions=episode.actions[acting],
        time=time,
        others={name: spread(values) for name, values in episode.others.items()},
        holds=np.ones(len(acting), np.int64),
        gaps=episode.gaps[acting],
        known={name: values[acting] for name, values in episode.known.items()},
    )


def _time(episode: LoggedEpisode) -> Array:
    time = np.asarray(episode.time, np.float64)
    return np.asarray(time - time[0])


def _gaps(episode: LoggedEpisode) -> npt.NDArray[np.bool_]:
    intervals = np.diff(_time(episode))
    return np.asarray(intervals > GAP * np.median(intervals))


def _exact(episode: LoggedEpisode, longest: float) -> LoggedEpisode:
    """The steps that divide each interval evenly."""
    steps = np.ceil(np.diff(_time(episode)) / longest - _SAME_RATE)
    return replace(episode, holds=np.maximum(steps, 1).astype(np.int64), gaps=_gaps(episode))


def _clocked(episode: LoggedEpisode, step: float, average_actions: bool) -> LoggedEpisode:
    ratio = float(np.median(np.diff(_time(episode)))) / step
    whole = max(1, round(ratio)) if ratio > _FASTER else 1.0 / round(1.0 / ratio)
    if abs(ratio - whole) <= _SAME_RATE * whole:  # the same rate by another clock
        step, ratio = step * ratio / whole, whole
    time = _time(episode) / step
    ticks = np.ceil(time - 0.5 - _LATE).astype(np.int64)
    if ratio < _FASTER:
        return _thinned(episode, time, ticks, average_actions)
    rows = np.arange(len(ticks))
    ticks = np.maximum.accumulate(ticks - rows) + rows  # at least one step each
    holds, gaps = np.diff(ticks), _gaps(episode)
    error = float(np.sqrt(np.square(np.diff(time) - holds)[~gaps].mean()))
    if error > _ROUGH * ratio:
        raise LogError(
            f"{episode.source}: expected observations every {step:g} s, a step of the environment, or multiples or a "
            f"whole fraction of it, got one every {ratio * step:g} s (median), off by {error * step:.2g} s. Name the "
            f"parameter that is the duration of a step (`time_step`), so that steps last as long as each interval "
            f"needs, or make the environment with steps of {ratio * step:g} s; if only the clock's stamps jitter and "
            "not the sampling, leave out the time."
        )
    return replace(episode, holds=holds, gaps=gaps)


def _thinned(episode: LoggedEpisode, time: Array, ticks: Indices, average_actions: bool) -> LoggedEpisode:
    """An episode with the observation nearest to each tick, and the actions between them.

    Args:
        episode: Faster than the environment.
        time: Of the observations, in steps of the environment, ``(T + 1,)``.
        ticks: The whole steps next to them, ``(T + 1,)``.
        average_actions: Whether an action may change within a step.
    """
    order = np.lexsort((np.abs(time - ticks), ticks))
    kept = order[np.diff(ticks[order], prepend=-1) > 0]
    if time[kept[-1]] < ticks[kept[-1]] - 0.5 * np.median(np.diff(time)) - _LATE:
        kept = kept[:-1]  # the log ends within this step
    if len(kept) < 2:
        raise LogError(
            f"{episode.source}: expected at least {int(np.ceil(1 / np.median(np.diff(time))))} actions, which last one "
            f"step of the environment, got {len(episode)}. Leave the episode out."
        )
    actions, counts = episode.actions[: kept[-1]], np.diff(kept)
    first = np.repeat(actions[kept[:-1]], counts, axis=0)
    changed = np.argwhere(np.abs(actions - first).reshape(len(actions), -1) > TOLERANCE)
    can_average = average_actions and actions.ndim > 1
    if changed.size and not can_average:
        row = int(changed[0, 0])
        raise LogError(
            f"{episode.source}: {ACTIONS}: expected the same action in all rows of each step of the environment, got a "
            f"change in row {row}, within step {int(np.searchsorted(kept, row, 'right')) - 1}. "
            + ("Average what acts (`average_actions`), make" if actions.ndim > 1 else "Make")
            + " the environment with shorter steps, or leave out first rows so that the steps begin where actions "
            "change."
        )
    acting: npt.NDArray[Any] = actions[kept[:-1]]
    if changed.size:
        weights = np.diff(time)[: kept[-1], None]
        acting = np.add.reduceat(actions * weights, kept[:-1]) / np.add.reduceat(weights, kept[:-1])
    others = dict(episode.others)
    for name, values in others.items():
        if values.ndim and len(values) in (len(episode), len(episode) + 1):
            others[name] = values[kept if len(values) == len(episode) + 1 else kept[:-1]]
    times = np.asarray(episode.time)[kept]
    intervals = np.diff(times)
    return replace(
        episode,
        observations=episode.observations[kept],
        actions=acting,
        time=times,
        others=others,
        holds=np.diff(ticks[kept]),
        gaps=np.asarray(intervals > GAP * np.median(intervals)),
    )
