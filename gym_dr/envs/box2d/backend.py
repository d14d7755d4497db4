"""The part of the backend that all Box2D environments share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.envs.backend import CompiledBackend, Outcome, PlayRollout
from gym_dr.envs.box2d.memory import Environments
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
from gym_dr.envs.box2d.stepping import Stepper
from gym_dr.envs.states import EnvState, check_within
from gym_dr.errors import EnvStateError


class Box2DBackend(CompiledBackend):
    """Many small worlds in compiled code.

    Attributes:
        memory: Arrays of all sub-environments.
        stepper: Steps them.
    """

    push_size = 2
    bodies: ClassVar[int]  # bodies per world
    memory: Environments | Any = None  # made by ``allocate``
    stepper: Stepper | Any = None

    def _take(self, memory: Environments, stepper: Stepper) -> Array:
        """Stores what a subclass has allocated; returns memory for the parameters."""
        self.memory, self.stepper = memory, stepper
        self.num_threads = stepper.threads
        self.observations, self.streams = memory.observations, memory.streams
        params: Array = memory.params.T
        return params

    def _set_actions(self, actions: npt.NDArray[Any]) -> None:
        """Stores the actions of the next step."""
        raise NotImplementedError

    @property
    def rollout(self) -> PlayRollout | None:
        """See ``Backend.rollout``; threads share the work of one step, not of many."""
        return self.stepper.rollout if self.num_threads == 1 else None

    def reset(self, envs: Indices, options: Any = None) -> None:
        """See ``Backend.reset``; as in Gymnasium, an episode begins with a step without an action, to be made later."""
        self.stepper.begin(envs)

    def observe(self) -> npt.NDArray[Any]:
        self.stepper.finish()
        return self.observations.copy()

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        """See ``Backend.step``; those in ``skip`` make their first step together with the others."""
        self._set_actions(actions)
        self.stepper.step()
        return Outcome(self.memory.rewards.copy(), self.memory.terminations.copy(), {})

    def push(self, velocities: Array, envs: Indices) -> None:
        """Pushes all bodies equally."""
        rows = self.memory.world.rows
        for body in range(self.bodies):
            for axis, place in enumerate((VELOCITY_X, VELOCITY_Y)):
                # rounded once, like numbers that Box2D gets from Python
                rows[envs, body * BODY + place] = rows[envs, body * BODY + place] + velocities[:, axis]

    def get_state(self) -> EnvState:
        return {name: array.copy() for name, array in self._arrays().items()}

    def check_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """See ``Backend.check_state``; with these numbers compiled code finds its memory."""
        super().check_state(state)
        world, status, contacts = self.memory.world, state["world.status"], state["world.contact_ints"]
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
        """The memory of all sub-environments by name, without parameters, which the table has, and observations."""
        memory = self.memory._asdict()
        world = {f"world.{name}": value for name, value in memory.pop("world")._asdict().items()}
        fixed = ("world.shapes", "world.edge_width", "params", "observations")
        return {name: value for name, value in {**world, **memory}.items() if name not in fixed}

    def close(self) -> None:
        if self.stepper is not None:
            self.stepper.close()
