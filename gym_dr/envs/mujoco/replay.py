"""Logged motion of MuJoCo's robots: positions and velocities of their joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.envs.replay import Coordinate, LogReplay, Reading, logged

_JOINT = mujoco.mjtJoint
_AXES = "xyz"
_PLACES = {int(_JOINT.mjJNT_FREE): (0, 1, 2, 4, 5, 6), int(_JOINT.mjJNT_BALL): (1, 2, 3)}  # of a joint's numbers


class MujocoLogReplay(LogReplay):
    """States are ``qpos`` and ``qvel``; numbers without an effect, such as the distance covered, are left out."""

    def __init__(self, backend: Any) -> None:
        """Names the coordinates."""
        super().__init__(backend)
        self._task, self._model = backend.task, backend.nominal
        self.time_step = float(self._model.opt.timestep) * int(backend.env.frame_skip)
        self._nq, self._nv = int(self._model.nq), int(self._model.nv)
        self._flat = self._nq == self._nv  # no quaternions
        moving = [k for k in range(self._nv) if k not in self._task.still]
        seen = [k for k in moving if k not in self._task.unseen]
        self._kept = np.array(seen + [self._nv + k for k in moving], np.int64)
        positions, velocities = zip(*_named_dofs(self._model), strict=True)
        self.coordinates = tuple((*positions, *velocities)[k] for k in self._kept)

    def read(self, observations: Array, others: Mapping[str, npt.NDArray[Any]]) -> Reading:
        count = len(observations)
        qpos, qvel = logged(others, "qpos", (count, self._nq)), logged(others, "qvel", (count, self._nv))
        usable, reasons = np.ones(count - 1, np.bool_), {}
        if qpos is None or qvel is None:
            seen = self._task.state_from(observations)
            qpos, qvel = seen[0] if qpos is None else qpos, seen[1] if qvel is None else qvel
            limit = self._task.velocity_limit
            if limit is not None:
                clipped = (np.abs(qvel) >= limit).any(axis=1)
                lost = clipped[:-1] | clipped[1:]
                usable &= ~lost
                reasons[f"a velocity is clipped at {limit:g} in the observation; log qvel"] = lost
        return Reading(states=np.concatenate([qpos, qvel], axis=1), usable=usable, reasons=reasons)

    @property
    def size(self) -> int:
        return self._nq + self._nv

    @property
    def places(self) -> Indices:
        """See ``LogReplay.places``; a rotation has one number of its quaternion."""
        of_dof = []
        for joint in range(self._model.njnt):
            first, kind = int(self._model.jnt_qposadr[joint]), int(self._model.jnt_type[joint])
            of_dof += [first + place for place in _PLACES.get(kind, (0,))]
        everything = np.array([*of_dof, *range(self._nq, self.size)], np.int64)
        return np.asarray(everything[self._kept])

    def add(self, states: Array, deltas: Array) -> Array:
        nq, nv = self._nq, self._nv
        full = np.zeros((len(states), 2 * nv))
        full[:, self._kept] = deltas
        moved = states.copy()
        moved[:, nq:] += full[:, nv:]
        if self._flat:
            moved[:, :nq] += full[:, :nv]
        else:
            for row, delta in zip(moved, full, strict=True):
                mujoco.mj_integratePos(self._model, row[:nq], delta[:nv], 1.0)
        return moved

    def difference(self, states: Array, origins: Array) -> Array:
        nq, nv = self._nq, self._nv
        full = np.zeros((len(states), 2 * nv))
        full[:, nv:] = states[:, nq:] - origins[:, nq:]
        if self._flat:
            full[:, :nv] = states[:, :nq] - origins[:, :nq]
        else:
            for row, before, after in zip(full, origins, states, strict=True):
                mujoco.mj_differentiatePos(self._model, row[:nv], 1.0, before[:nq], after[:nq])
        return self._shortest(full[:, self._kept])

    def _place(self, states: Array, phases: npt.NDArray[np.int64] | None) -> None:
        self._backend.engine.place(states[:, : self._nq], states[:, self._nq :])

    def _states(self) -> Array:
        engine: Any = self._backend.engine
        return np.concatenate([engine.qpos, engine.qvel], axis=1)


class ClosedFormLogReplay(MujocoLogReplay):
    """The same where compiled equations step the robot."""

    def _place(self, states: Array, phases: npt.NDArray[np.int64] | None) -> None:
        simulation: Any = self._backend.simulation
        padding = np.zeros((len(states), simulation.states(self._all[:1]).shape[1] - states.shape[1]))
        simulation.put(self._all, np.concatenate([states, padding], axis=1))

    def _states(self) -> Array:
        return np.asarray(self._backend.simulation.states(self._all)[:, : self.size])


def _named_dofs(model: Any) -> list[tuple[Coordinate, Coordinate]]:
    """Position and velocity of each degree of freedom."""
    found = []
    for joint in range(model.njnt):
        name, kind = model.joint(joint).name, model.jnt_type[joint]
        moved, turned = [], []  # names of positions, and of their velocities
        if kind == _JOINT.mjJNT_SLIDE:
            moved = [(name, f"{name} velocity")]
        elif kind == _JOINT.mjJNT_HINGE:
            turned = [(name, f"{name} velocity")]
        else:
            moved = [(f"{name} {k}", f"{name} {k} velocity") for k in _AXES] if kind == _JOINT.mjJNT_FREE else []
            turned = [(f"{name} rotation about {k}", f"{name} angular velocity about {k}") for k in _AXES]
        angle = bool(kind == _JOINT.mjJNT_HINGE)  # a full turn changes nothing
        found += [(Coordinate(name=a, unit="m"), Coordinate(name=b, unit="m/s")) for a, b in moved]
        found += [(Coordinate(name=a, unit="rad", angle=angle), Coordinate(name=b, unit="rad/s")) for a, b in turned]
    return found
