"""A task on a MuJoCo model: where episodes begin, what is observed and rewarded, and when episodes end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.backend import EnvState, Info
from gym_dr.envs.mujoco.engine import Engine

Rows = slice | npt.NDArray[np.int64]
Feedback = tuple[Array, Mask, Info]  # rewards (N,), terminations (N,), info


class Task:
    """The functions of a task, for all N sub-environments at once."""

    fields: tuple[str, ...] = ()  # of MjData, besides qpos, qvel and ctrl
    contact_forces = False  # whether the task needs fields that a batch does not compute, such as cfrc_ext
    velocity_limit: float | None = None  # bound to which observed velocities are clipped
    unseen: Sequence[int] = ()  # degrees of freedom whose position is not observed and does not matter
    still: Sequence[int] = ()  # those that never move
    parameters: Sequence[str] = ()  # of the task itself, which are not in the model
    keyframe = -1  # of the model, where episodes begin; -1 for its own state
    nq: int  # numbers of qpos
    nv: int  # numbers of qvel

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """The initial state of one episode, ``(nq,)`` and ``(nv,)``, from its environment's generator."""
        raise NotImplementedError

    def first_states(self, rngs: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """The initial states of some episodes, ``(n, nq)`` and ``(n, nv)``."""
        qpos, qvel = zip(*map(self.first_state, rngs), strict=True)
        return np.array(qpos), np.array(qvel)

    def allocate(self, num_envs: int) -> None:
        """Makes what a task remembers."""

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        """Restarts the task's own random numbers in some sub-environments."""

    def begin(
        self, engine: Engine, envs: Indices, rngs: Sequence[np.random.Generator], drawn: Mapping[str, Array]
    ) -> None:
        """Begins episodes.

        Args:
            engine: The simulations.
            envs: Their sub-environments ``(n,)``.
            rngs: The generators of these.
            drawn: The values of ``parameters``, each ``(n,)``.
        """
        engine.start(envs, *self.first_states(rngs))

    def advance(self, engine: Engine, actions: npt.NDArray[Any], envs: Indices | None, substeps: int) -> None:
        """Moves some sub-environments, or all (None), by one step."""
        rows = slice(None) if envs is None else envs
        engine.ctrl[rows] = actions[rows]
        engine.step(envs, substeps)

    def observe(self, engine: Engine, rows: Rows) -> Array:
        """Observations of some sub-environments, ``(n, size)``."""
        raise NotImplementedError

    def state_from(self, observations: Array) -> tuple[Array, Array]:
        """Positions ``(n, nq)`` and velocities ``(n, nv)`` that observations ``(n, size)`` determine, nan for others.

        Raises:
            EnvStateError: An observation does not determine the state.
        """
        return observations[:, : self.nq], observations[:, self.nq : self.nq + self.nv]

    def before(self, engine: Engine) -> Any:
        """A copy of the values before a step that the reward needs."""

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        """Rewards, terminations and ``info`` of a step; ``before`` is the result of ``before``."""
        raise NotImplementedError

    def finish(self, engine: Engine, envs: Indices | None) -> Info:
        """Changes what the task remembers after a step of some sub-environments, or all; more for ``info``."""
        return {}

    def get_state(self) -> EnvState:
        """What the task remembers: name -> ``(N, ...)``, new arrays."""
        return {}

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices, drawn: Mapping[str, Array]) -> None:
        """Restores the rows of some sub-environments; ``drawn`` as in ``begin``."""

    def reset_info(self, engine: Engine) -> Info:
        """What ``info`` reports at a reset."""
        return {}

    def check(self, qpos: Array, observations: Array, rewards: Array | None = None) -> None:
        """Refuses impossible results; ``rewards`` are None after a reset."""
