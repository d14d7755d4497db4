"""Replays logged motion: simulates one step from each of many states at once.

A log has observations; physics has states. ``LogReplay.read`` computes the states that observations determine, with nan
for the numbers that they leave open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.errors import EnvStateError


@dataclass(frozen=True, kw_only=True)
class Coordinate:
    """One number of a state, as it is compared with a log."""

    name: str  # "angle of the pole"
    unit: str = ""  # "rad"
    angle: bool = False  # whether a full turn changes nothing


@dataclass(frozen=True, kw_only=True)
class ForceProfile:
    """A force that changes over an episode in a known way, such as wind, from an unknown phase on.

    Its effect in step t is ``power * strength(phase + t)``.
    """

    power: str  # the parameter: "wind_power"
    strength: Callable[[npt.NDArray[np.int64]], Array]  # steps -> fractions of the power
    low: int  # first possible phase
    high: int  # one after the last


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """States of the physics, as a logged episode determines them."""

    states: Array  # (T + 1, size); nan where the observation leaves them open
    usable: Mask  # (T,) steps that can be replayed
    reasons: Mapping[str, Mask] = field(default_factory=dict)  # why other steps cannot: reason -> (T,)


class LogReplay(ABC):
    """Places many sub-environments in states, and steps them once.

    A subclass may omit ``add``, ``difference`` and ``seen`` if states are numbers that add up.

    Attributes:
        coordinates: The numbers that states are compared by, in order.
        time_step: Duration of a step in s, or the parameter that sets it; None if the physics has none.
        force_profiles: Forces with an unknown phase.
        inexact: Standard deviations of a replayed step's errors due to guesses, one for each coordinate; empty if
            nothing is guessed.
        unidentifiable: Parameters that replayed motion does not depend on: name -> reason.
        random_steps: Whether steps draw random numbers.
        num_envs: How many sub-environments there are.
        envs: The vector environment, kept alive: Gymnasium 1.2 closes one that is garbage-collected.
    """

    envs: VectorEnv[Any, Any, Any]
    coordinates: tuple[Coordinate, ...]
    time_step: float | str | None = None
    force_profiles: tuple[ForceProfile, ...] = ()
    inexact: tuple[float, ...] = ()
    unidentifiable: Mapping[str, str] = {}
    random_steps: bool = False

    def __init__(self, backend: Any) -> None:
        """Takes over the sub-environments of a backend of the same family."""
        self._backend = backend
        self.num_envs: int = backend.table.num_envs
        self._all: Indices = np.arange(self.num_envs)
        self._seeded = False

    # ---- what a family defines ---------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, observations: Array, others: Mapping[str, npt.NDArray[Any]]) -> Reading:
        """Reads a logged episode.

        Args:
            observations: Shape ``(T + 1, size)``.
            others: Other logged columns, by name.

        Raises:
            EnvStateError: An array has the wrong shape.
        """

    @abstractmethod
    def _place(self, states: Array, phases: npt.NDArray[np.int64] | None) -> None:
        """Moves all sub-environments to states ``(num_envs, size)``, and force profiles to ``phases``, see ``step``."""

    @abstractmethod
    def _states(self) -> Array:
        """The states of all sub-environments, a copy."""

    def seen(self, known: Mask) -> Mask:
        """Which coordinates are measured, ``(..., coordinates)``, if these numbers of states are, ``(..., size)``."""
        return np.asarray(known[..., self.places])

    def add(self, states: Array, deltas: Array) -> Array:
        """States ``(n, size)`` moved by ``(n, coordinates)``."""
        return states + deltas

    def difference(self, states: Array, origins: Array) -> Array:
        """The deltas ``(n, coordinates)`` with which ``add`` moves ``origins`` to ``states``."""
        return self._shortest(states - origins)

    def _shortest(self, deltas: Array) -> Array:
        """The deltas, of angles at most half a turn; changes them in place."""
        turning = [k for k, coordinate in enumerate(self.coordinates) if coordinate.angle]
        deltas[:, turning] = np.remainder(deltas[:, turning] + np.pi, 2 * np.pi) - np.pi
        return deltas

    # ---- what all share ----------------------------------------------------------------------------------------------

    @property
    def places(self) -> Indices:
        """The index of the number of a state that is, or comes closest to, each coordinate."""
        return np.arange(len(self.coordinates))

    @property
    def per_observation(self) -> Array:
        """How far each coordinate moves per unit of its number in an observation, ``(n,)``."""
        return np.ones(len(self.coordinates))

    @property
    def size(self) -> int:
        """How many numbers a state has."""
        return len(self.coordinates)

    def begin(self, params: Mapping[str, Any]) -> None:
        """Begins an episode in every sub-environment.

        Args:
            params: Exact values: name -> number or ``(num_envs,)``; the others stay nominal.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is impossible.
        """
        table = self._backend.table
        exact = table.space.check_vector(params, self.num_envs)
        if not self._seeded:
            self._backend.seed(range(self.num_envs), range(self.num_envs))
            self._seeded = True
        table.begin(self._all, exact)
        self._backend.reset(self._all)
        self._backend.observe()

    @property
    def first(self) -> Array:
        """A state in which an episode begins, ``(size,)``, after ``begin``."""
        return np.asarray(self._states()[0])

    def step(
        self, states: Array, actions: npt.NDArray[Any], hold: int = 1, phases: npt.NDArray[np.int64] | None = None
    ) -> Array:
        """One logged step from each state; ends of episodes are ignored.

        Args:
            states: Shape ``(num_envs, size)``.
            actions: Shape ``(num_envs, ...)``, as ``check_actions`` returns them.
            hold: Steps of the environment per action.
            phases: The step of each force profile, ``(num_envs, profiles)``; None without profiles.

        Returns:
            The states afterwards, ``(num_envs, size)``.
        """
        self._place(states, phases)
        return self.go_on(actions, hold)

    def go_on(self, actions: npt.NDArray[Any], hold: int = 1) -> Array:
        """``step`` from the current states."""
        for _ in range(hold):
            self._backend.step(actions)
        return self._states()

    def streams(self, seed: int) -> npt.NDArray[np.uint64]:
        """Random streams of all sub-environments, for ``rewind``; sub-environment i has ``seed + i``."""
        self._backend.seed(range(self.num_envs), range(seed, seed + self.num_envs))
        return np.array(self._backend.streams)

    def rewind(self, streams: npt.NDArray[np.uint64]) -> None:
        """Restores random streams."""
        self._backend.streams[:] = streams


def logged(others: Mapping[str, npt.NDArray[Any]], name: str, shape: Sequence[int]) -> Array | None:
    """A column that may be logged besides observations, checked; None if it is not there.

    Raises:
        EnvStateError: It has another shape.
    """
    if name not in others:
        return None
    values = np.asarray(others[name], np.float64)
    if values.shape != tuple(shape):
        raise EnvStateError(f"Log, {name!r}: expected shape {tuple(shape)}, got {values.shape}.")
    return values
