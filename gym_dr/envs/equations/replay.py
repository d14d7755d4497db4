"""Logged motion of equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.equations.equations import fields_of
from gym_dr.envs.equations.functions import called
from gym_dr.envs.replay import Coordinate, LogReplay, Reading, logged
from gym_dr.errors import EnvStateError, EquationsError, shortened

_TURN = 2.0 * np.pi


class EquationsLogReplay(LogReplay):
    """States are the fields of the equations' state."""

    def __init__(self, backend: Any) -> None:
        """Finds the fields that are angles: a full turn does not change the observation."""
        super().__init__(backend)
        family = backend.family
        self._equations, self._state_from = family.equations, family.state_from
        self._fields = fields_of(self._equations.state)
        self.random_steps = backend.random_steps
        self.time_step = family.time_step
        nominal = list(backend.table.space.nominal.values()) + list(backend._options)
        self._constants = called(self._equations.derive, "derive", self._equations.params(*nominal))
        probe = np.linspace(0.3, 0.7, len(self._fields))
        seen = self._observed(probe)
        if self._state_from is None and not (seen.shape == probe.shape and np.allclose(seen, probe, rtol=1e-5)):
            raise EnvStateError(
                f"Equations {self._equations.name!r}: observations are not the state itself, "
                f"{', '.join(self._fields)}. Pass state_from to register_equations: observation -> state, with nan for "
                "unknown fields."
            )
        seen_as_is = () if family.described is None or self._state_from else family.described.observation
        units = [each.unit for each in seen_as_is for _ in range(each.size)] or [""] * len(self._fields)
        self.coordinates = tuple(
            Coordinate(name=name, unit=unit, angle=self._turns(probe, seen, k))
            for k, (name, unit) in enumerate(zip(self._fields, units, strict=True))
        )

    def _observed(self, state: Array) -> Array:
        values = called(self._equations.observe, "observe", self._constants, self._equations.state(*state.tolist()))
        return np.asarray(values, np.float64)

    def _turns(self, probe: Array, seen: Array, k: int) -> bool:
        turned, moved = probe.copy(), probe.copy()
        turned[k] += _TURN
        moved[k] += 0.25 * _TURN
        return bool(np.allclose(self._observed(turned), seen) and not np.allclose(self._observed(moved), seen))

    def read(self, observations: Array, others: Mapping[str, npt.NDArray[Any]]) -> Reading:
        if self._state_from is None:
            states = observations.astype(np.float64)
        else:
            nothing = [np.nan] * len(self._fields)
            rows = [
                nothing if np.isnan(row).all() else called(self._state_from, "state_from", tuple(row))
                for row in observations.tolist()
            ]
            states = np.array(rows, np.float64)
            if states.ndim != 2 or states.shape[1] != len(self._fields):
                raise EquationsError(
                    f"Equations {self._equations.name!r}: expected state_from to return {len(self._fields)} numbers "
                    f"({', '.join(self._fields)}), got {shortened(rows[0])}."
                )
        for k, name in enumerate(self._fields):
            known = logged(others, f"state/{name}", (len(observations),))
            if known is not None:
                states[:, k] = known
        return Reading(states=states, usable=np.ones(len(observations) - 1, np.bool_))

    def _place(self, states: Array, phases: npt.NDArray[np.int64] | None) -> None:
        self._backend.simulation.put(self._all, states)

    def _states(self) -> Array:
        return np.asarray(self._backend.simulation.states(self._all))
