"""The logged steps of all episodes that can be replayed, in one table: what was measured and when; and full states."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.replay import Coordinate, LogReplay, Reading
from gym_dr.errors import LogError, counted, located
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.simulator import Simulator

_STRETCH = 25  # steps
_GAP = "a gap, in which nobody knows what acted"
_KNOWN = "known/"
_OF_STEPS = ("measured", "observed", "actions", "episode", "time", "intervals", "steps", "holds")


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedMotion:
    """T logged steps of n coordinates, in C chains: stretches of episodes in which each step begins where one ended."""

    coordinates: Sequence[Coordinate]  # n
    first: Array  # (C, size) measured states where chains begin, nan where not measured
    measured: Array  # (T, size) measured states after the steps, nan where not measured
    first_observed: Mask  # (C, n) which coordinates are measured where chains begin
    observed: Mask  # (T, n) which coordinates are measured after the steps
    begins: Mask  # (T,) whether a step is the first of its chain
    actions: npt.NDArray[Any]  # (T, ...), as logged
    episode: Indices  # (T,) the episode of each step
    time: Array  # (T,) when each step begins in its episode, s; steps of the environment if the log has no times
    intervals: Array  # (T,) how long it lasts, in the same unit
    steps: Indices  # (T,) steps of the environment from the beginning of the episode to that of each step
    holds: Indices  # (T,) steps of the environment in each step
    known: Mapping[str, Array]  # parameters that the log tells: name -> (T,)
    scale: Array  # (n,) standard deviation of each coordinate; nan if it is never measured
    places: Indices  # (n,) index of each coordinate in a state
    inexact: Array  # (n,) standard deviation of the error of a replayed step
    sources: Sequence[str]  # of all episodes: names for messages
    skipped: Sequence[tuple[str, int]] = ()  # steps that cannot be replayed: reason, count

    def __len__(self) -> int:
        return len(self.measured)

    @property
    def chain(self) -> Indices:
        """The chain of each step, ``(T,)``."""
        return np.cumsum(self.begins) - 1

    @property
    def joined(self) -> Mask:
        """Whether each step ends where the next one begins, ``(T,)``."""
        return np.append(~self.begins[1:], False)

    @property
    def before(self) -> Array:
        """Measured states before the steps, ``(T, size)``."""
        earlier = np.roll(self.measured, 1, axis=0)
        earlier[self.begins] = self.first
        return earlier

    @property
    def seen(self) -> Mask:
        """Which coordinates are measured at all, ``(n,)``."""
        return np.asarray(self.observed.any(axis=0) | self.first_observed.any(axis=0))

    def rows(self, chosen: Any) -> LoggedMotion:
        """Some of the steps, in order."""
        rows = np.arange(len(self))[chosen]
        begins = self.begins[rows] | (np.diff(rows, prepend=-2) != 1)
        observed = np.roll(self.observed, 1, axis=0)
        observed[self.begins] = self.first_observed
        return replace(
            self,
            first=self.before[rows][begins],
            first_observed=observed[rows][begins],
            begins=begins,
            known={name: values[rows] for name, values in self.known.items()},
            **{name: getattr(self, name)[rows] for name in _OF_STEPS},
        )


def stretches(steps: int, most: int, together: int = _STRETCH) -> Indices:
    """Some of the steps of a log: stretches spread over all of it, so that no single episode decides.

    Args:
        steps: Length of the log.
        most: Steps to choose, at most.
        together: Steps of a stretch.
    """
    if steps <= most:
        return np.arange(steps)
    starts = np.linspace(0, steps - together, most // together).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(together))


def evenly(whole: int, count: int) -> Indices:
    """``count`` of the numbers from 0 to ``whole - 1``, spread evenly."""
    return ((np.arange(count) + 0.5) / max(count, 1) * whole).astype(np.int64)


def read_motion(
    episodes: Sequence[LoggedEpisode], replay: LogReplay, late: int = 0, ages: Mapping[str, int] | None = None
) -> LoggedMotion:
    """Reads states from observations.

    Args:
        episodes: The log.
        replay: Of the environment.
        late: Logged steps after which an action acts. Before the first logged one does, the action is unknown, so
            motion begins there.
        ages: Logged steps after which a coordinate is read: name -> steps; None for none.

    Raises:
        LogError: No step can be replayed.
        EnvStateError: A logged column has the wrong shape.
    """
    readings = []
    for episode in episodes:
        with located(episode.source):
            reading = replay.read(episode.observations, episode.others)
            reasons = {**reading.reasons, _GAP: episode.gaps}
            was = _when_it_was(reading.states, replay, ages or {})
            readings.append(Reading(states=was, usable=reading.usable & ~episode.gaps, reasons=reasons))
    lost: dict[str, int] = {}
    for reading in readings:
        for reason, mask in reading.reasons.items():
            lost[reason] = lost.get(reason, 0) + int(mask.sum())
    skipped = tuple((reason, count) for reason, count in lost.items() if count)
    if not any(reading.usable.any() for reading in readings):
        why = "; ".join(f"{count} steps: {reason}" for reason, count in skipped)
        raise LogError(f"No logged step can be replayed. {why}")
    parts = [_columns(*each, late) for each in zip(range(len(episodes)), episodes, readings, strict=True)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not len(columns["measured"]):
        raise LogError(f"Expected episodes of more than {counted(late, 'step')}, after which actions act.")
    names = episodes[0].known
    found = LoggedMotion(
        coordinates=replay.coordinates,
        first_observed=replay.seen(~np.isnan(columns["first"])),
        observed=replay.seen(~np.isnan(columns["measured"])),
        known={name: columns.pop(f"{_KNOWN}{name}") for name in names},
        scale=np.ones(len(replay.coordinates)),
        places=replay.places,
        inexact=np.array(replay.inexact or np.zeros(len(replay.coordinates))),
        sources=[episode.source for episode in episodes],
        skipped=skipped,
        **columns,
    )
    return replace(found, scale=np.where(found.seen, _spread(found.before, replay), np.nan))


def _columns(number: int, episode: LoggedEpisode, reading: Reading, late: int) -> dict[str, npt.NDArray[Any]]:
    """What one episode adds to ``LoggedMotion``, by the names of its fields."""
    usable = np.flatnonzero(reading.usable[late:])
    begins, states, rows = np.diff(usable, prepend=-2) != 1, reading.states[late:], usable + late
    steps = np.append(0, np.cumsum(episode.holds))
    time = steps.astype(np.float64) if episode.time is None else episode.time - episode.time[0]
    return {
        "first": states[usable[begins]],
        "measured": states[usable + 1],
        "begins": begins,
        "actions": episode.actions[usable],
        "episode": np.full(len(usable), number),
        "time": time[rows],
        "intervals": np.diff(time)[rows],
        "steps": steps[rows],
        "holds": episode.holds[rows],
        **{f"{_KNOWN}{name}": values[rows] for name, values in episode.known.items()},
    }


def _spread(states: Array, replay: LogReplay) -> Array:
    """The standard deviation of each coordinate over states ``(T, size)``, without those that are nan, ``(n,)``."""
    known = np.where(np.isnan(states).all(axis=0), 0.0, states)
    middle = np.repeat(np.nanmean(known, axis=0)[None], len(known), axis=0)
    return np.asarray(np.maximum(np.nanstd(replay.difference(known, middle), axis=0), 1e-9))


def _when_it_was(states: Array, replay: LogReplay, ages: Mapping[str, int]) -> Array:
    """States ``(T + 1, size)`` with each coordinate in the row in which it was what is read ``ages`` rows later."""
    states = states.copy()
    for coordinate, place in zip(replay.coordinates, replay.places.tolist(), strict=True):
        if age := ages.get(coordinate.name, 0):
            states[:, place] = np.append(states[age:, place], np.full(min(age, len(states)), np.nan))
    return states


# ---- full states -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """States before and after each of T steps; inside of a chain, a step ends where the next one begins."""

    states: Array  # (T, size) before the steps
    ends: Array  # (T, size) after the steps

    def moved(self, replay: LogReplay, begins: Mask, first: Array, after: Array) -> Path:
        """The path with other coordinates.

        Args:
            replay: Which adds deltas to states.
            begins: Which steps are the first of their chain, ``(T,)``.
            first: Deltas of the first states of chains, ``(C, n)``.
            after: Deltas of states after the steps, ``(T, n)``.
        """
        before = np.roll(after, 1, axis=0)
        before[begins] = first
        return Path(states=replay.add(self.states, before), ends=replay.add(self.ends, after))

    def rows(self, chosen: Any) -> Path:
        """Some of the steps."""
        return Path(states=self.states[chosen], ends=self.ends[chosen])


def start_path(motion: LoggedMotion, simulator: Simulator, params: Mapping[str, float]) -> Path:
    """Measured states; coordinates that are not measured are as at the start of an episode, or between measured ones.

    Other numbers of the state are simulated from the start of each chain.
    """
    start = np.nan_to_num(simulator.start(params))  # numbers that are only drawn may be missing at first
    first, ends, chain = motion.first.copy(), motion.measured.copy(), motion.chain
    for c, k in itertools.product(range(len(first)), motion.places.tolist()):
        whole = np.append(first[c, k], ends[chain == c, k])
        there = ~np.isnan(whole)
        if not there.all():
            number = np.arange(len(whole))
            whole = np.interp(number, number[there], whole[there]) if there.any() else np.full(len(whole), start[k])
            first[c, k], ends[chain == c, k] = whole[0], whole[1:]
    first = np.where(np.isnan(first), start, first)
    states = np.roll(ends, 1, axis=0)
    states[motion.begins] = first
    rows = np.flatnonzero(motion.begins) if np.isnan(ends).any() else np.zeros(0, np.int64)
    while len(rows):
        known = {name: values[rows] for name, values in motion.known.items()}
        found = simulator.predict(states[rows], motion.actions[rows], params, holds=motion.holds[rows], known=known)
        ends[rows] = np.where(np.isnan(ends[rows]), found, ends[rows])
        rows = rows[motion.joined[rows]] + 1
        states[rows] = ends[rows - 1]
    return Path(states=states, ends=ends)
