"""Simulated steps along a log under any parameters, and their derivatives."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.fitting.motion import LoggedMotion, Path, start_path
from gym_dr.fitting.prior import Prior
from gym_dr.fitting.simulator import Simulator

EDGE = 1e-9  # points stay this far inside (0, 1)
REPLICATES = 16  # random streams, where steps draw random numbers
PROBE = 1e-3  # of a coordinate of unknown size, in its unit, to see what depends on it
_DIFFERENCE = 1e-4  # of a point, for derivatives by parameters


class Likelihood:
    """Simulated steps along a log under any parameters.

    Attributes:
        motion: The logged steps.
        simulator: Of the environment.
        prior: Of the parameters; points ``u`` are in its unit cube.
        replay: The simulator's sub-environments.
        replicates: Random streams that are simulated.
        phases: The step of each force profile at each logged step, ``(T, profiles)``; None without.
        forced: Values that replace those of the prior.
        moving: Which parameters any step depends on, ``(parameters,)``.
        path: States without any fit, see ``start_path``.
    """

    def __init__(self, motion: LoggedMotion, simulator: Simulator, prior: Prior, u: Array | None = None) -> None:
        """Simulates what states have beyond coordinates, at a point ``u`` of the prior; None for the middle."""
        self.simulator, self.prior = simulator, prior
        params = prior.params(np.full(len(prior.names), 0.5) if u is None else u)
        self.path = start_path(motion, simulator, params)
        self.motion = replace(motion, scale=np.nan_to_num(motion.scale, nan=1.0))  # until more is known
        self.replay = simulator.replay
        self.replicates = REPLICATES if self.replay.random_steps else 1
        self.phases: npt.NDArray[np.int64] | None = None
        self.forced: Mapping[str, float] = {}
        self.moving: Mask = np.ones(len(prior.names), np.bool_)

    @functools.cached_property
    def hidden(self) -> Mask:
        """Coordinates that are never measured and on which others depend, ``(n,)``."""
        found = ~self.motion.seen
        for k in np.flatnonzero(found):
            found[k] = bool(self.effects(np.full(len(self.prior.names), 0.5), self.path.states, k).any())
        return found

    def effects(self, u: Array, states: Array, k: Any) -> Array:
        """How much a step changes other coordinates per unit of coordinate k before it, root mean square, ``(n,)``."""
        deltas = np.zeros((len(states), len(self.motion.coordinates)))
        deltas[:, k] = PROBE
        moved = self.replay.difference(self.simulated(self.replay.add(states, deltas), u), self.simulated(states, u))
        moved[:, k] = 0.0
        return np.asarray(np.sqrt(np.square(np.nan_to_num(moved)).mean(axis=0)) / PROBE)

    def part(self, rows: Any) -> Likelihood:
        """The same for some of the steps."""
        chosen = copy.copy(self)
        chosen.motion, chosen.path = self.motion.rows(rows), self.path.rows(rows)
        chosen.phases, chosen.hidden = None if self.phases is None else self.phases[rows], self.hidden
        return chosen

    def simulated(self, states: Array, u: Array, seed: int = 0) -> Array:
        """States after one step from each, under one random stream."""
        params = {**self.prior.params(u), **self.forced}
        motion = self.motion
        return self.simulator.predict(
            states, motion.actions, params, holds=motion.holds, known=motion.known, phases=self.phases, seed=seed
        )

    def streams_after(self, states: Array, u: Array) -> tuple[Array, Array]:
        """``simulated`` of the first random stream, and the deltas from there to all, ``(replicates, T, n)``."""
        first = self.simulated(states, u)
        moved = np.zeros((self.replicates, len(states), len(self.motion.coordinates)))
        for seed in range(1, self.replicates):
            moved[seed] = self.replay.difference(self.simulated(states, u, seed), first)
        return first, moved

    def mean_after(self, states: Array, u: Array) -> Array:
        """The mean of ``simulated`` over random streams, ``(T, size)``."""
        first, moved = self.streams_after(states, u)
        return first if self.replicates == 1 else self.replay.add(first, moved.mean(axis=0))

    def drift(self, u: Array, path: Path) -> Array:
        """Simulated states after the steps (``mean_after``) minus those of the path, ``(T, n)``."""
        found = self.replay.difference(self.mean_after(path.states, u), path.ends)
        return np.nan_to_num(found, nan=1e6, posinf=1e6, neginf=-1e6)  # a simulation that diverged

    def by_parameters(self, u: Array, states: Array) -> Array:
        """Derivatives of simulated states after the steps by u, ``(T, n, parameters)``."""
        columns: list[Array] = []
        for k in range(len(u)):
            if not self.moving[k]:
                columns.append(np.zeros((len(states), len(self.motion.coordinates))))
                continue
            high, low = u.copy(), u.copy()
            high[k], low[k] = min(1.0 - EDGE, u[k] + _DIFFERENCE), max(EDGE, u[k] - _DIFFERENCE)
            ends = (self.mean_after(states, end) for end in (high, low))
            columns.append(self.replay.difference(*ends) / (high[k] - low[k]))
        return np.nan_to_num(np.stack(columns, axis=-1)) if columns else np.zeros((*states.shape[:1], 0, 0))

    def by_states(self, u: Array, states: Array, steps: Array, after: Array) -> tuple[Array, Array]:
        """Derivatives of the states after the steps by those before, as central differences.

        Args:
            u: Point of the prior.
            states: Shape ``(T, size)``.
            steps: Step sizes ``(n,)``: the standard deviations of the noise.
            after: ``simulated`` of these states, under the same random stream.

        Returns:
            Derivatives ``(T, n, n)``, and the covariance of what they leave out ``(T, n, n)``. For a second derivative
            H and an error e of standard deviation d, ``H e^2 / 2`` has the variance ``(H d^2)^2 / 2``, as in the
            second-order filters of Norgaard, Poulsen and Ravn (2000). Where a foot meets the ground, this is most of
            the error.
        """
        count, n = len(states), len(steps)
        jacobians, second_order = np.empty((count, n, n)), np.zeros((count, n, n))
        for k in range(n):
            deltas = np.zeros((count, n))
            deltas[:, k] = steps[k]
            high, low = (
                self.replay.difference(self.simulated(self.replay.add(states, sign * deltas), u), after)
                for sign in (1.0, -1.0)
            )
            jacobians[:, :, k] = (high - low) / (2.0 * steps[k])
            if not self.hidden[k]:
                second_order += 0.5 * np.einsum("ti,tj->tij", high + low, high + low)
        return np.nan_to_num(jacobians), np.nan_to_num(second_order)


def covariance_of_streams(moved: Array) -> Array | None:
    """The covariance ``(T, n, n)`` of steps over random streams, plus that of its mean; None for a single stream.

    Args:
        moved: See ``Likelihood.streams_after``.
    """
    count = len(moved)
    if count == 1:
        return None
    centered = moved - moved.mean(axis=0)
    return np.asarray(np.einsum("rti,rtj->tij", centered, centered) * (1.0 + 1.0 / count) / (count - 1))
