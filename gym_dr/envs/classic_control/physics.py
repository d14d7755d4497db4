"""The compiled physics of one task behind a plain Python interface: memory and the calls into machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_dr.arrays import Array, Floats, Indices
from gym_dr.compiled.pcg64 import STREAM
from gym_dr.compiled.pointers import Address, entry_point
from gym_dr.compiled.policy import SmallPolicy
from gym_dr.compiled.rollout import Exchange, rollout
from gym_dr.compiled.steps import Steps
from gym_dr.envs.classic_control.kernels import LANES, World, fields_of, kernels_of
from gym_dr.envs.classic_control.task import Bounds, Task


class Physics:
    """Steps ``num_envs`` environments of a task.

    Attributes:
        exchange: What a step takes and leaves.
        params: Shape ``(parameters and options, num_envs)``, of the episodes that begin.
        streams: Shape ``(num_envs, STREAM)``, the random streams.
    """

    def __init__(
        self, task: Task, num_envs: int, *, observation: int, numbers: int, options: tuple[float, ...]
    ) -> None:
        """Allocates memory and compiles, or loads what was compiled before.

        Args:
            task: What to compile.
            num_envs: Number of sub-environments.
            observation: Numbers in an observation.
            numbers: Numbers in a continuous action; 0 for choices.
            options: Values of the task's options.
        """
        self.task, self.num_envs = task, num_envs
        self.exchange = Exchange(
            choices=np.zeros(num_envs, np.int64),
            numbers=np.zeros((num_envs, numbers)),
            fresh=np.zeros(num_envs, np.int64),
            observations=np.zeros((num_envs, observation), np.float32),
            rewards=np.zeros(num_envs),
            terminations=np.zeros(num_envs, np.bool_),
        )
        self.streams = np.zeros((num_envs, STREAM), np.uint64)
        self.params = np.zeros((len(fields_of(task.params)), num_envs))
        self.params[len(task.space) :] = np.array(options)[:, None]
        kernels = kernels_of(task)
        blocks = -(-num_envs // LANES)
        self._memory: Array = np.zeros((blocks, kernels.fields, LANES))
        self._world = World(self._memory.reshape(-1), self.params, self.streams, self.exchange)
        self._all: Indices = np.arange(num_envs)
        self._bounds: Array = np.array(task.start)
        self._state_at = kernels.state
        no_one = np.zeros(0, np.int64)
        kernels.begin(self._world, no_one, self._bounds)
        kernels.step(self._world, no_one, 0, 0)
        self._begin, self._step = entry_point(kernels.begin), entry_point(kernels.step)
        self._step_address = Address(kernels.step)

    def begin(self, envs: Indices, bounds: Bounds | None = None) -> None:
        """Begins episodes with ``params``; the next step leaves these sub-environments at their first state.

        Args:
            envs: The sub-environments.
            bounds: Of the numbers that they begin with; None for the task's.
        """
        self._begin(self._world, envs, self._bounds if bounds is None else np.array(bounds))

    def step(self) -> None:
        """Steps all sub-environments but those whose episode has just begun, by way of ``exchange``."""
        self._step(self._world, self._all, 0, self.num_envs)

    def rollout(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, elapsed: Indices, max_steps: int, rows: tuple[int, int]
    ) -> int:
        """Fills rows of ``steps`` until an episode ends; see ``compiled.rollout``."""
        play: Any = rollout
        row: int = play(self._step_address, self._world, self.exchange, policy, noise, steps, elapsed, max_steps, rows)
        return row

    def state(self, env: int) -> Array:
        """The state of a sub-environment, in memory: shape ``(fields,)``."""
        fields = slice(self._state_at, self._state_at + len(fields_of(self.task.state)))
        return self._memory[env // LANES, fields, env % LANES]

    def values(self, env: int) -> dict[str, float]:
        """What the parameters of a sub-environment's episode have made of its physics, by name."""
        numbers = self._memory[env // LANES, : self._state_at, env % LANES].tolist()
        return dict(zip(fields_of(self.task.physics), numbers, strict=True))

    def push(self, velocities: Array, envs: Indices) -> None:
        """Adds velocities ``(len(envs), len(task.pushed))``."""
        for column, name in zip(velocities.T, self.task.pushed, strict=True):
            field = self._state_at + fields_of(self.task.state).index(name)
            self._memory[envs // LANES, field, envs % LANES] += column
