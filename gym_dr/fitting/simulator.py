"""Simulation of logged steps under any parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.envs.replay import LogReplay
from gym_dr.fitting.sensors import split


class Simulator:
    """Predicts the state after each logged step from the state before it, for all steps at once.

    All states are as sensors read them, see ``sensors.py``.

    Attributes:
        replay: The sub-environments.
        steps: Environment steps simulated so far.
    """

    def __init__(self, replay: LogReplay) -> None:
        """Takes over the sub-environments of ``replay``."""
        self.replay, self.steps = replay, 0
        self._begun: tuple[tuple[str, bytes], ...] | None = None
        self._streams: dict[int, npt.NDArray[np.uint64]] = {}  # by seed

    def begin(self, params: Mapping[str, float | Array], seed: int = 0) -> None:
        """Sets parameters in all sub-environments, unless they are set already, and restarts random numbers.

        Args:
            params: name -> value, or ``(num_envs,)``; the others are nominal.
            seed: Of random numbers.
        """
        params, _ = split(params, self.replay)
        wanted = tuple((name, np.asarray(params[name], np.float64).tobytes()) for name in sorted(params))
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
        _, sensors = split(params, self.replay)
        return self.replay.first if sensors is None else sensors.read(self.replay.first)

    def predict(
        self,
        states: Array,
        actions: npt.NDArray[Any],
        params: Mapping[str, float],
        *,
        holds: Indices,
        known: Mapping[str, Array] | None = None,
        phases: npt.NDArray[np.int64] | None = None,
        seed: int = 0,
    ) -> Array:
        """States after one logged step.

        Args:
            states: Shape ``(n, size)``.
            actions: Shape ``(n, ...)``.
            params: name -> value; the others are nominal.
            holds: Steps of the environment in each logged step, ``(n,)``.
            known: Parameters that differ between rows, whatever ``params`` says: name -> ``(n,)``; None for none.
            phases: The step of each force profile, ``(n, profiles)``; None without.
            seed: Of the simulator's random numbers.

        Returns:
            Shape ``(n, size)``.
        """
        self.begin(params, seed)
        _, sensors = split({**params, **(known or {})}, self.replay)
        states = states if sensors is None else sensors.true(states)
        count, slots = len(states), self.replay.num_envs
        # rows of about the same hold are stepped together
        order = np.argsort(holds, kind="stable") if count > slots else np.arange(count)
        after = np.empty_like(states)
        for start in range(0, count, slots):
            rows = order[np.minimum(np.arange(start, start + slots), count - 1)]
            if known:
                self.begin({**params, **{name: values[rows] for name, values in known.items()}}, seed + start)
            done, found = 0, states[rows]
            for hold in np.unique(holds[rows]).tolist():
                if done:
                    found = self.replay.go_on(actions[rows], hold - done)
                else:
                    found = self.replay.step(found, actions[rows], hold, None if phases is None else phases[rows])
                over, done = holds[rows] == hold, hold
                after[rows[over]] = found[over]
            self.steps += slots * done
        return after if sensors is None else sensors.read(after)
