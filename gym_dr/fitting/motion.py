"""The logged steps of all episodes that can be replayed, in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.replay import Coordinate
from gym_dr.errors import LogError, located
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.simulator import Simulator
from gym_dr.wording import counted

_STRETCH = 25  # steps


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedMotion:
    """T steps of n coordinates."""

    coordinates: Sequence[Coordinate]  # n
    before: Array  # (T, size) measured states before the steps
    after: Array  # (T, size) measured states after the steps
    actions: npt.NDArray[Any]  # (T, ...), as logged
    episode: Indices  # (T,) the episode of each step
    time: Indices  # (T,) the number of each step in its episode
    seen: Mask  # (n,) which coordinates are measured; others are simulated in ``before`` and ``after``
    scale: Array  # (n,) standard deviation of each coordinate
    places: Indices  # (n,) index of each coordinate in a state
    inexact: Array  # (n,) standard deviation of the error of a replayed step
    skipped: Sequence[tuple[str, int]] = ()  # steps that cannot be replayed: reason, count

    def __len__(self) -> int:
        return len(self.before)

    @property
    def joined(self) -> Mask:
        """Whether each step ends where the next one begins, ``(T,)``."""
        return np.append((np.diff(self.episode) == 0) & (np.diff(self.time) == 1), False)

    def rows(self, chosen: npt.NDArray[Any]) -> LoggedMotion:
        """Some of the steps, in order."""
        picked = {name: getattr(self, name)[chosen] for name in ("before", "after", "actions", "episode", "time")}
        return replace(self, **picked)


def stretches(steps: int, most: int) -> Indices:
    """Some of the steps of a log: stretches spread over all of it, so that no single episode decides.

    Args:
        steps: Length of the log.
        most: Steps to choose, at most.
    """
    if steps <= most:
        return np.arange(steps)
    starts = np.linspace(0, steps - _STRETCH, most // _STRETCH).astype(np.int64)
    return np.concatenate([start + np.arange(_STRETCH) for start in starts])


def read_motion(
    episodes: Sequence[LoggedEpisode], simulator: Simulator, params: Mapping[str, float], late: int = 0
) -> LoggedMotion:
    """Reads states from observations; unobserved numbers are simulated from the start of each episode.

    Args:
        episodes: The log.
        simulator: Of the environment.
        params: Parameters of that simulation: name -> value.
        late: Logged steps after which an action acts. Before the first logged one does, the action is unknown, so
            motion begins there.

    Raises:
        LogError: No step can be replayed.
        EnvStateError: A logged column has the wrong shape.
    """
    replay = simulator.replay
    readings = []
    for episode in episodes:
        with located(episode.source):
            readings.append(replay.read(episode.observations, episode.others))
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
    open_numbers: Mask = np.asarray(np.isnan(np.concatenate(states)).any(axis=0))  # of the raw state
    if open_numbers.any():
        states = _guessed(states, actions, simulator, params)
    before = np.concatenate([s[:-1][rows] for s, rows in zip(states, usable, strict=True)])
    middle = np.repeat(before.mean(axis=0)[None], len(before), axis=0)
    spread = replay.difference(before, middle).std(axis=0)
    return LoggedMotion(
        coordinates=replay.coordinates,
        before=before,
        after=np.concatenate([s[1:][rows] for s, rows in zip(states, usable, strict=True)]),
        actions=np.concatenate([a[rows] for a, rows in zip(actions, usable, strict=True)]),
        episode=np.repeat(np.arange(len(episodes)), list(map(len, usable))),
        time=np.concatenate(usable) + late,
        seen=replay.seen(~open_numbers),
        places=replay.places,
        inexact=np.array(replay.inexact or np.zeros(len(replay.coordinates))),
        scale=np.maximum(spread, 1e-9),
        skipped=skipped,
    )


def _guessed(states: list[Array], actions: list[Any], simulator: Simulator, params: Mapping[str, float]) -> list[Array]:
    """States with unobserved numbers from a simulation that follows the measured ones."""
    filled = [s.copy() for s in states]
    start = np.nan_to_num(simulator.start(params))  # numbers that are only drawn may be missing at first
    for s in filled:
        s[:1] = np.where(np.isnan(s[:1]), start, s[:1])  # none if the episode is shorter than a delay
    for t in range(max(map(len, actions))):
        alive = [k for k, a in enumerate(actions) if t < len(a)]
        rows = np.stack([filled[k][t] for k in alive])
        after = simulator.predict(rows, np.stack([actions[k][t] for k in alive]), params)
        for k, row in zip(alive, after, strict=True):
            missing = np.isnan(filled[k][t + 1])
            filled[k][t + 1, missing] = row[missing]
    return filled
