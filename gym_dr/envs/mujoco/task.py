"""A task on a MuJoCo model: where episodes begin, what is observed and rewarded, and when episodes end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.envs.backend import Info
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
    nq: int  # numbers of qpos
    nv: int  # numbers of qvel

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """The initial state of one episode, ``(nq,)`` and ``(nv,)``, from its environment's generator."""
        raise NotImplementedError

    def first_states(self, rngs: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """The initial states of some episodes, ``(n, nq)`` and ``(n, nv)``."""
        qpos, qvel = zip(*map(self.first_state, rngs), strict=True)
        return np.array(qpos), np.array(qvel)

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

    def reset_info(self, engine: Engine) -> Info:
        """What ``info`` reports at a reset."""
        return {}

    def check(self, qpos: Array, observations: Array, rewards: Array | None = None) -> None:
        """Refuses impossible results; ``rewards`` are None after a reset."""
