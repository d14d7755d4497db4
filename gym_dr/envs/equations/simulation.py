"""Compiled equations behind a plain Python interface: arrays, and calls into machine code."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.compiled.pcg64 import STREAM
from gym_dr.compiled.play import StepBuffers
from gym_dr.compiled.structs import Struct, job_of
from gym_dr.envs.backend import EnvState
from gym_dr.envs.equations.equations import Bounds, Equations, fields_of, spread_of
from gym_dr.envs.equations.functions import not_compiled
from gym_dr.envs.equations.kernels import LANES, EquationsArrays, content_of, kernels_of
from gym_dr.envs.stepper import Stepper
from gym_dr.errors import EquationsError

CHUNK = 16 * LANES  # sub-environments that a thread takes at a time
LEAST = 32 * LANES  # of a thread in a step


class Simulation:
    """Steps many environments of one kind.

    Attributes:
        stepper: Steps them.
        params: Shape ``(parameters, num_envs)``, the parameters of new episodes.
        streams: Shape ``(num_envs, STREAM)``, the random streams.
    """

    def __init__(self, equations: Equations, num_envs: int, num_threads: int = 1) -> None:
        """Makes the arrays and compiles the equations, or loads them from the cache.

        Raises:
            EquationsError: Numba cannot compile them.
        """
        self.equations, self.num_envs = equations, num_envs
        seen, numbers = equations.observation_space, equations.action_space.shape  # the latter () if discrete
        buffers = StepBuffers(
            discrete=np.zeros(num_envs, np.int64),
            continuous=np.zeros((num_envs, *(numbers or (0,)))),
            fresh=np.zeros(num_envs, np.int64),
            observations=np.zeros((num_envs, *seen.shape), seen.dtype),
            rewards=np.zeros(num_envs),
            terminations=np.zeros(num_envs, np.bool_),
        )
        self.streams = np.zeros((num_envs, STREAM), np.uint64)
        self.params = np.zeros((len(fields_of(equations.params)), num_envs))
        kernels = kernels_of(equations)
        self._blocks: Array = np.zeros((-(-num_envs // LANES), kernels.fields, LANES))
        self._all: Indices = np.arange(num_envs)
        self._bounds: Array = np.array([spread_of(each) for each in equations.start.values()]).reshape(-1, 2)
        self._world = EquationsArrays(
            self._blocks.reshape(-1), self.params, self.streams, buffers, self._bounds.copy(), self._all.copy()
        )
        self._state_at = kernels.state
        self._state_fields = slice(kernels.state, kernels.state + len(fields_of(equations.state)))
        self._group = Struct(self._world)
        name = re.sub(r"\W+", "_", equations.name)[:60]
        given = f"the native {equations.name}", name, content_of(equations)
        try:
            self._begin, step = (job_of(kernel, self._group.kind, *given) for kernel in (kernels.begin, kernels.step))
        except Exception as error:  # numba raises many types
            raise not_compiled(equations, error) from error
        self.stepper = Stepper(step, [self._world] * num_threads, buffers, chunk=CHUNK, least=LEAST)

    def begin(self, envs: Indices, bounds: Bounds | None = None) -> None:
        """Begins episodes with ``params``.

        Args:
            envs: The sub-environments.
            bounds: Of the random numbers; None for those of the equations.
        """
        self._world.envs[: len(envs)] = envs
        try:
            if bounds is not None:
                self._world.bounds[:] = np.array(bounds).reshape(-1, 2)
            with self.located():
                self._begin(self._group, 0, len(envs))
        finally:
            self._world.bounds[:] = self._bounds

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Adds the name of the equations to an error of a compiled function.

        Raises:
            EquationsError: A function has raised an error.
        """
        try:
            yield
        except Exception as error:
            raise EquationsError(
                f"Equations {self.equations.name!r}: a compiled function raised {type(error).__name__}: {error}. It "
                "may read a tuple beyond its end."
            ) from error

    def state(self, env: int) -> Array:
        """The state of a sub-environment, a view: shape ``(fields,)``."""
        return self._blocks[env // LANES, self._state_fields, env % LANES]

    def states(self, envs: Indices) -> Array:
        """The states of some sub-environments: shape ``(len(envs), fields)``, a copy."""
        return np.asarray(self._blocks[envs // LANES, self._state_fields, envs % LANES])

    def put(self, envs: Indices, states: Array) -> None:
        """Sets the states of some sub-environments, shape ``(len(envs), fields)``."""
        self._blocks[envs // LANES, self._state_fields, envs % LANES] = states

    def physics(self, env: int) -> Any:
        """The constants of a sub-environment's current episode, a named tuple."""
        return self.equations.physics(*self._blocks[env // LANES, : self._state_at, env % LANES].tolist())

    def get_state(self) -> EnvState:
        """States, constants of episodes and random streams of all sub-environments."""
        return {
            "state": self.states(self._all),
            "constants": self._blocks[self._all // LANES, : self._state_at, self._all % LANES],
            "streams": self.streams.copy(),
        }

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        """Restores the rows of some sub-environments."""
        self.put(envs, state["state"][envs])
        self._blocks[envs // LANES, : self._state_at, envs % LANES] = state["constants"][envs]
        self.streams[envs] = state["streams"][envs]

    def push(self, velocities: Array, envs: Indices) -> None:
        """Adds velocities, shape ``(len(envs), len(pushed))``."""
        for column, name in zip(velocities.T, self.equations.pushed, strict=True):
            field = self._state_at + fields_of(self.equations.state).index(name)
            self._blocks[envs // LANES, field, envs % LANES] += column
