"""Full states along a log: a start without any fit, and what a smoother makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.envs.replay import LogReplay
from gym_dr.fitting.motion import LoggedMotion
from gym_dr.fitting.simulator import Simulator


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
