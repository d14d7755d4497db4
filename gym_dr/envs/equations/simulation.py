"""Compiled equations behind a plain Python interface: arrays, and calls into machine code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Floats, Indices
from gym_dr.compiled.pcg64 import STREAM
from gym_dr.compiled.pointers import Address, entry_point
from gym_dr.compiled.rollout import UNFINISHED, StepBuffers
from gym_dr.compiled.rollout import rollout as play_rollout
from gym_dr.envs.backend import EnvState
from gym_dr.envs.equations.equations import Bounds, Equations, fields_of, spread_of
from gym_dr.envs.equations.functions import not_compiled
from gym_dr.envs.equations.kernels import LANES, EquationsArrays, kernels_of
from gym_dr.errors import EquationsError

if TYPE_CHECKING:
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps


class Simulation:
    """Steps many environments of one kind.

    Attributes:
        buffers: Inputs and outputs of a step.
        params: Shape ``(parameters, num_envs)``, the parameters of new episodes.
        streams: Shape ``(num_envs, STREAM)``, the random streams.
    """

    def __init__(self, equations: Equations, num_envs: int) -> None:
        """Makes the arrays and compiles the equations, or loads them from the cache.

        Raises:
            EquationsError: Numba cannot compile them.
        """
        self.equations, self.num_envs = equations, num_envs
        seen, numbers = equations.observation_space, equations.action_space.shape  # the latter () if discrete
        self.buffers = StepBuffers(
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
        blocks = -(-num_envs // LANES)
        self._blocks: Array = np.zeros((blocks, kernels.fields, LANES))
        self._world = EquationsArrays(self._blocks.reshape(-1), self.params, self.streams, self.buffers)
        self._all: Indices = np.arange(num_envs)
        self._bounds: Array = np.array([spread_of(each) for each in equations.start.values()]).reshape(-1, 2)
        self._state_at = kernels.state
        self._state_fields = slice(kernels.state, kernels.state + len(fields_of(equations.state)))
        no_one = np.zeros(0, np.int64)
        try:
            kernels.begin(self._world, no_one, self._bounds)
            kernels.step(self._world, no_one, 0, 0)
        except Exception as error:  # numba raises many types
            raise not_compiled(equations, error) from error
        self._begin, self._step = entry_point(kernels.begin), entry_point(kernels.step)
        self._play = partial(play_rollout, Address(kernels.step), self._world, self.buffers)

    def begin(self, envs: Indices, bounds: Bounds | None = None) -> None:
        """Begins episodes with ``params``.

        Args:
            envs: The sub-environments.
            bounds: Of the random numbers; None for those of the equations.
        """
        try:
            self._begin(self._world, envs, self._bounds if bounds is None else np.array(bounds).reshape(-1, 2))
        except Exception as error:
            raise self._named(error) from error

    def step(self, skip: Indices | None = None) -> None:
        """Steps all sub-environments except those in ``skip``, through ``buffers``."""
        if skip is not None:
            self.buffers.fresh[skip] = 1
        try:
            self._step(self._world, self._all, 0, self.num_envs)
        except Exception as error:
            raise self._named(error) from error

    def rollout(
        self,
        policy: SmallPolicy,
        noise: Floats,
        steps: Steps,
        elapsed: Indices,
        max_steps: int,
        rows: tuple[int, int],
        skip: Indices | None,
    ) -> int:
        """Plays many steps in one call, see ``PlayRollout``.

        Raises:
            EquationsError: A function has raised an error.
        """
        if skip is not None:
            self.buffers.fresh[skip] = 1
        last = int(self._play(policy, noise, steps, elapsed, max_steps, rows))
        if (steps.rewards[last - 1] == UNFINISHED).any():
            self.step()  # again, since only a call from Python passes the error on
        return last

    def _named(self, error: Exception) -> EquationsError:
        """An error of a compiled function, with the name of the equations."""
        return EquationsError(
            f"Equations {self.equations.name!r}: a compiled function raised {type(error).__name__}: {error}. It may "
            "read a tuple beyond its end."
        )

    def state(self, env: int) -> Array:
        """The state of a sub-environment, a view: shape ``(fields,)``."""
        return self._blocks[env // LANES, self._state_fields, env % LANES]

    def states(self, envs: Indices) -> Array:
        """The states of some sub-environments: shape ``(len(envs), fields)``, a copy."""
        states: Array = self._blocks[envs // LANES, self._state_fields, envs % LANES]
        return states

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
