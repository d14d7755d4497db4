"""The common part of the tasks of Gymnasium's environments.

Weights, ranges and spaces come from an instance of Gymnasium's class, so keywords mean the same as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.envs.mujoco.engine import Engine
from gym_dr.envs.mujoco.fields import field_array
from gym_dr.envs.mujoco.task import Task


class ReferenceTask(Task):
    """A task of Gymnasium's; episodes begin at the model's state with uniform noise, unless overridden."""

    normal_velocities = False  # whether the noise of velocities is normal

    def __init__(self, env: Any) -> None:
        """Keeps an instance of Gymnasium's class, which has the weights and ranges."""
        self.env = env
        self.init_qpos, self.init_qvel = env.init_qpos.copy(), env.init_qvel.copy()
        self.nq, self.nv = int(env.model.nq), int(env.model.nv)
        # once for all simulations; rendering changes the model
        self._nominal = {name: field_array(env.model, name)[None] for name in ("body_mass", "timestep")}

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        scale, normal = self.env._reset_noise_scale, self.normal_velocities
        noise = rng.uniform(-scale, scale, self.nq + (0 if normal else self.nv))  # as in a call for each
        velocities = scale * rng.standard_normal(self.nv) if normal else noise[self.nq :]
        return self.init_qpos + noise[: self.nq], self.init_qvel + velocities

    def model_field(self, engine: Engine, name: str) -> Array:
        """``body_mass`` or ``timestep`` of each simulation, or once for all: ``(N or 1, ...)``."""
        return engine.written.get(name, self._nominal[name])

    def _fallen(self, healthy: Mask) -> Mask:
        """Which episodes end, if being unhealthy ends them."""
        return ~healthy if self.env._terminate_when_unhealthy else np.zeros_like(healthy)


def squares(actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum of the squares of each sub-environment's actions, in their own precision."""
    return np.asarray(np.square(actions).sum(axis=1))


def finite(engine: Engine) -> Mask:
    """Whether all positions and velocities of each sub-environment are finite."""
    return np.asarray(np.isfinite(engine.qpos).all(axis=1) & np.isfinite(engine.qvel).all(axis=1))


def length(vectors: Array) -> Array:
    """Euclidean length of each row."""
    return np.asarray(np.sqrt(np.square(vectors).sum(axis=1)))
