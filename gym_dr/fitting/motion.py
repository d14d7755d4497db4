"""The logged steps of all episodes that can be replayed, in one table: what was measured, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.replay import Coordinate, LogReplay, Reading
from gym_dr.errors import LogError, located
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.simulator import Simulator
from gym_dr.wording import counted

_STRETCH = 25  # steps
_GAP = "a gap, in which nobody knows what acted"
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


def read_motion(
    episodes: Sequence[LoggedEpisode],
    simulator: Simulator,
    params: Mapping[str, float],
    late: int = 0,
    ages: Mapping[str, int] | None = None,
) -> LoggedMotion:
    """Reads states from observations.

    Numbers of a state that are no coordinates, such as a lander's legs, are simulated up to where a chain begins.

    Args:
        episodes: The log.
        simulator: Of the environment.
        params: Parameters of that simulation: name -> value.
        late: Logged steps after which an action acts. Before the first logged one does, the action is unknown, so
            motion begins there.
        ages: Logged steps after which a coordinate is read: name -> steps; None for none.

    Raises:
        LogError: No step can be replayed.
        EnvStateError: A logged column has the wrong shape.
    """
    replay = simulator.replay
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
    usable = [np.flatnonzero(reading.usable[late:]) for reading in readings]
    if sum(map(len, usable)) == 0:
        raise LogError(f"Expected episodes of more than {counted(late, 'step')}, after which actions act.")
    states = [reading.states[late:] for reading in readings]
    actions = [episode.actions[: max(len(episode) - late, 0)] for episode in episodes]
    holds = [episode.holds for episode in episodes]
    begins = [np.diff(rows, prepend=-2) != 1 for rows in usable]
    first = np.concatenate([s[rows[new]] for s, rows, new in zip(states, usable, begins, strict=True)])
    others = np.setdiff1d(np.arange(first.shape[1]), replay.places)
    if np.isnan(first[:, others]).any():
        led = _led(states, actions, [one[late:] for one in holds], simulator, params)
        whole = np.concatenate([s[rows[new]] for s, rows, new in zip(led, usable, begins, strict=True)])
        first[:, others] = whole[:, others]
    counts = list(map(len, usable))
    clocks = [np.append(0, np.cumsum(one)) for one in holds]
    times = [clock if e.time is None else e.time - e.time[0] for clock, e in zip(clocks, episodes, strict=True)]
    starts = [rows + late for rows in usable]
    measured = np.concatenate([s[1:][rows] for s, rows in zip(states, usable, strict=True)])
    found = LoggedMotion(
        coordinates=replay.coordinates,
        first=first,
        measured=measured,
        first_observed=replay.seen(~np.isnan(first)),
        observed=replay.seen(~np.isnan(measured)),
        begins=np.concatenate(begins),
        actions=np.concatenate([a[rows] for a, rows in zip(actions, usable, strict=True)]),
        episode=np.repeat(np.arange(len(episodes)), counts),
        time=np.concatenate([t[rows] for t, rows in zip(times, starts, strict=True)]).astype(np.float64),
        intervals=np.concatenate([np.diff(t)[rows] for t, rows in zip(times, starts, strict=True)]).astype(np.float64),
        steps=np.concatenate([clock[rows] for clock, rows in zip(clocks, starts, strict=True)]),
        holds=np.concatenate([one[rows] for one, rows in zip(holds, starts, strict=True)]),
        known={
            name: np.concatenate([one.known[name][rows] for one, rows in zip(episodes, starts, strict=True)])
            for name in episodes[0].known
        },
        scale=np.ones(len(replay.coordinates)),
        places=replay.places,
        inexact=np.array(replay.inexact or np.zeros(len(replay.coordinates))),
        sources=[episode.source for episode in episodes],
        skipped=skipped,
    )
    return replace(found, scale=np.where(found.seen, _spread(found.before, simulator), np.nan))


def _spread(states: Array, simulator: Simulator) -> Array:
    """The standard deviation of each coordinate over states ``(T, size)``, without those that are nan, ``(n,)``."""
    known = np.where(np.isnan(states).all(axis=0), 0.0, states)
    middle = np.repeat(np.nanmean(known, axis=0)[None], len(known), axis=0)
    return np.asarray(np.maximum(np.nanstd(simulator.replay.difference(known, middle), axis=0), 1e-9))


def _when_it_was(states: Array, replay: LogReplay, ages: Mapping[str, int]) -> Array:
    """States ``(T + 1, size)`` with each coordinate in the row in which it was what is read ``ages`` rows later."""
    states = states.copy()
    for coordinate, place in zip(replay.coordinates, replay.places.tolist(), strict=True):
        if age := ages.get(coordinate.name, 0):
            states[:, place] = np.append(states[age:, place], np.full(min(age, len(states)), np.nan))
    return states


def _led(
    states: list[Array], actions: list[Any], holds: list[Indices], simulator: Simulator, params: Mapping[str, float]
) -> list[Array]:
    """States of whole episodes with unobserved numbers from a simulation that follows the measured ones."""
    filled = [s.copy() for s in states]
    start = np.nan_to_num(simulator.start(params))  # numbers that are only drawn may be missing at first
    for s in filled:
        s[:1] = np.where(np.isnan(s[:1]), start, s[:1])  # none if the episode is shorter than a delay
    for t in range(max(map(len, actions))):
        alive = [k for k, a in enumerate(actions) if t < len(a)]
        rows, acting = np.stack([filled[k][t] for k in alive]), np.stack([actions[k][t] for k in alive])
        after = simulator.predict(rows, acting, params, holds=np.array([holds[k][t] for k in alive]))
        for k, row in zip(alive, after, strict=True):
            missing = np.isnan(filled[k][t + 1])
            filled[k][t + 1, missing] = row[missing]
    return filled
