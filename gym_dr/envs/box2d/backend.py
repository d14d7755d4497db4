"""The common part of the Box2D backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numba import types

from gym_dr.arrays import Array, Indices
from gym_dr.compiled.cache import Part
from gym_dr.compiled.play import StepBuffers
from gym_dr.compiled.structs import job_of, kind_of
from gym_dr.envs.backend import CompiledBackend, EnvState, check_within
from gym_dr.envs.box2d.arrays import Environments
from gym_dr.envs.box2d.solver import contacts, impacts, manifolds
from gym_dr.envs.box2d.solver.island import Topology
from gym_dr.envs.box2d.solver.layout import (
    BODY,
    C_BODY,
    C_GROUND,
    C_POINTS,
    S_BOXES,
    S_CONTACTS,
    S_FRESH,
    VELOCITY_X,
    VELOCITY_Y,
)
from gym_dr.envs.stepper import Stepper, threads_for
from gym_dr.errors import EnvStateError

CHUNK = 512  # sub-environments that a thread takes at a time; the solver is slower with fewer
LEAST = 32  # of a thread in a step


class Box2DBackend(CompiledBackend):
    """Many small worlds in compiled code."""

    push_size = 2
    name: ClassVar[str]
    bodies: ClassVar[int]  # bodies per world
    kernel: ClassVar[Any]  # compiled ``step(group, first, last)``
    topology: ClassVar[Topology]
    arrays: Environments  # of all sub-environments
    envs: Indices  # (N,) in the order in which the next step takes them

    def _allocate(self, num_envs: int) -> tuple[Environments, npt.NDArray[Any]]:
        """The family's arrays of sub-environments, and the numbers of continuous actions ``(num_envs, size)``."""
        raise NotImplementedError

    def _group(self, buffers: StepBuffers) -> Any:
        """Everything that a step reads and writes on one thread."""
        raise NotImplementedError

    @property
    def bytes_each(self) -> int:
        arrays, _ = self._allocate(1)
        return sum(array.nbytes for array in (*arrays.world, *arrays[1:]) if isinstance(array, np.ndarray))

    def allocate(self, num_envs: int, num_threads: int | None) -> Array:
        self.arrays, numbers = self._allocate(num_envs)
        self.observations, self.streams = self.arrays.observations, self.arrays.streams
        results = self.observations, self.arrays.rewards, self.arrays.terminations
        buffers = StepBuffers(np.zeros(num_envs, np.int64), numbers, self.arrays.world.status[:, S_FRESH], *results)
        self.envs = np.arange(num_envs)
        self.num_threads = threads_for(num_envs, num_threads)
        groups = [self._group(buffers) for _ in range(self.num_threads)]
        parts = tuple(parts_of(self.topology, groups[0]))
        job = job_of(type(self).kernel, kind_of(groups[0]), f"the native {self.name}", self.name, parts=parts)
        self.stepper = Stepper(job, groups, buffers, chunk=CHUNK, least=LEAST)
        self._begun: Indices | None = None  # marked, but not yet stepped
        return self.arrays.params.T

    def reset(self, envs: Indices, options: Any = None) -> None:
        """See ``Backend.reset``; as in Gymnasium, an episode begins with a step without an action, to be made later."""
        self.stepper.buffers.fresh[envs], self._begun = 1, envs

    def observe(self) -> npt.NDArray[Any]:
        if self._begun is not None:
            self.envs[: len(self._begun)] = self._begun
            self.stepper.job(self.stepper.groups[0], 0, len(self._begun))
            self.envs[:] = np.arange(len(self.envs))
            self._begun = None
        return super().observe()

    def push(self, velocities: Array, envs: Indices) -> None:
        """Pushes all bodies equally."""
        rows = self.arrays.world.rows
        for body in range(self.bodies):
            for axis, place in enumerate((VELOCITY_X, VELOCITY_Y)):
                # rounded once, like numbers that Box2D gets from Python
                rows[envs, body * BODY + place] = rows[envs, body * BODY + place] + velocities[:, axis]

    def get_state(self) -> EnvState:
        return {name: array.copy() for name, array in self._arrays().items()}

    def check_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """See ``Backend.check_state``; compiled code indexes its arrays with these numbers."""
        super().check_state(state)
        world, status, contacts = self.arrays.world, state["world.status"], state["world.contact_ints"]
        boxes, edges = world.boxes.shape[1], world.edges.shape[1]
        for name, values, high in (
            ("contacts", status[:, S_CONTACTS], world.contact_ints.shape[1]),
            ("fresh", status[:, S_FRESH], 1),
            ("boxes", status[:, S_BOXES], boxes),
            ("body", contacts[..., C_BODY], self.bodies - 1),
            ("ground", contacts[..., C_GROUND], boxes + edges - 1),
            ("points", contacts[..., C_POINTS], 2),
        ):
            check_within(f"physics/world, {name}", values, 0, high)
        for name, values in state.items():
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise EnvStateError(f"State 'physics/{name}': expected numbers, got nan.")

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        for name, array in self._arrays().items():
            array[envs] = state[name][envs]

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of all sub-environments by name, except observations, and parameters, which the table has."""
        arrays = self.arrays._asdict()
        world = {f"world.{name}": value for name, value in arrays.pop("world")._asdict().items()}
        fixed = ("world.shapes", "world.edge_width", "params", "observations")
        return {name: value for name, value in {**world, **arrays}.items() if name not in fixed}


def parts_of(topology: Topology, group: Any) -> list[Part]:
    """The parts of a step that may be compiled on their own, those last that take longest.

    Args:
        topology: The family's.
        group: Everything that a step reads and writes on one thread.
    """
    world, scratch, number = kind_of(group.arrays.world), kind_of(group.scratch), types.int64
    floats = types.Array(types.float32, 1, "C")
    return [
        (topology.update_boxes, (floats,)),
        (topology.solve_joint_positions, (floats,)),
        (contacts.solve_position, (floats, floats, floats, floats, types.float32)),
        (topology.solve_joints, (floats, number)),
        (topology.solve_joint_pair, (floats, number)),
        (contacts.solve_velocity, (floats, floats)),
        (contacts.prepare, (floats, floats)),
        (topology.prepare_joints, (floats,)),
        (manifolds.update, (world, number, number, scratch)),
        (impacts.resolve, (world, number, scratch)),
    ]
