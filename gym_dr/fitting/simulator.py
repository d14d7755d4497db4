"""Simulation of logged steps under any parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.replay import LogReplay


class Simulator:
    """Predicts the state after each logged step from the state before it, for all steps at once.

    Attributes:
        replay: The sub-environments.
        hold: Steps of the environment for which a logged action acts.
        steps: Environment steps simulated so far.
    """

    def __init__(self, replay: LogReplay, hold: int = 1) -> None:
        """Takes over the sub-environments of ``replay``."""
        self.replay, self.hold, self.steps = replay, hold, 0
        self._begun: tuple[tuple[str, float], ...] | None = None
        self._streams: dict[int, npt.NDArray[np.uint64]] = {}  # by seed

    def begin(self, params: Mapping[str, float], seed: int = 0) -> None:
        """Sets parameters in all sub-environments, unless they are set already, and restarts random numbers."""
        wanted = tuple(sorted(params.items()))
        if wanted != self._begun:
            self.replay.begin(params)
            self._begun = wanted
        if self.replay.random_steps:
            if seed not in self._streams:
                self._streams[seed] = self.replay.streams(seed)
            self.replay.rewind(self._streams[seed])

    def start(self, params: Mapping[str, float]) -> Array:
        """A state in which an episode may begin."""
        self.begin(params)
        return self.replay.first

    def predict(
        self,
        states: Array,
        actions: npt.NDArray[Any],
        params: Mapping[str, float],
        *,
        phases: npt.NDArray[np.int64] | None = None,
        seed: int = 0,
    ) -> Array:
        """States after one logged step.

        Args:
            states: Shape ``(n, size)``.
            actions: Shape ``(n, ...)``.
            params: name -> value; the others are nominal.
            phases: The step of each force profile, ``(n, profiles)``; None without.
            seed: Of the simulator's random numbers.

        Returns:
            Shape ``(n, size)``.
        """
        self.begin(params, seed)
        count, slots = len(states), self.replay.num_envs
        after = np.empty_like(states)
        for start in range(0, count, slots):
            rows = np.minimum(np.arange(start, start + slots), count - 1)
            chosen = None if phases is None else phases[rows]
            found = self.replay.step(states[rows], actions[rows], self.hold, chosen)
            after[start : start + slots] = found[: count - start]
            self.steps += slots * self.hold
        return after
