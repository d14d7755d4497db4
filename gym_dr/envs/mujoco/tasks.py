"""The tasks of Gymnasium's environments by id; here, the pendulums and the robots that move something to a goal.

Sums follow Gymnasium's order, since the last digits of floating-point sums depend on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.mujoco.engine import Engine
from gym_dr.envs.mujoco.locomotion import Ant, HalfCheetah, Hopper, Humanoid, HumanoidStandup, Swimmer, Walker2d
from gym_dr.envs.mujoco.reference_task import ReferenceTask, finite, length, squares
from gym_dr.envs.mujoco.task import Feedback, Rows
from gym_dr.errors import EnvStateError


class InvertedPendulum(ReferenceTask):
    """A pole on a cart."""

    def observe(self, engine: Engine, rows: Rows) -> Array:
        return np.concatenate([engine.qpos[rows], engine.qvel[rows]], axis=1)

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        terminated = ~finite(engine) | (np.abs(engine.qpos[:, 1]) > 0.2)
        reward = (~terminated).astype(np.int64)
        return reward.astype(np.float64), terminated, {"reward_survive": reward}


class InvertedDoublePendulum(ReferenceTask):
    """Two poles on a cart."""

    fields = ("site_xpos", "qfrc_constraint")
    normal_velocities = True
    velocity_limit = 10.0

    def state_from(self, observations: Array) -> tuple[Array, Array]:
        angles = np.arctan2(observations[:, 1:3], observations[:, 3:5])
        return np.concatenate([observations[:, :1], angles], axis=1), observations[:, 5:8]

    def observe(self, engine: Engine, rows: Rows) -> Array:
        qpos = engine.qpos[rows]
        parts = [
            qpos[:, :1],
            np.sin(qpos[:, 1:]),
            np.cos(qpos[:, 1:]),
            np.clip(engine.qvel[rows], -10, 10),
            np.clip(engine.field("qfrc_constraint")[rows], -10, 10)[:, :1],
        ]
        return np.concatenate(parts, axis=1)

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        tip = engine.field("site_xpos")[:, 0]
        x, y = tip[:, 0], tip[:, 2]
        terminated = y <= 1
        distance = 0.01 * x**2 + (y - 2) ** 2
        velocity = 1e-3 * engine.qvel[:, 1] ** 2 + 5e-3 * engine.qvel[:, 2] ** 2
        alive = self.env._healthy_reward * (~terminated).astype(np.int64)
        info = {"reward_survive": alive, "distance_penalty": -distance, "velocity_penalty": -velocity}
        return alive - distance - velocity, terminated, info


class _Manipulator(ReferenceTask):
    """Moves something to a goal; observes positions of bodies."""

    fields = ("xpos",)

    def _position(self, engine: Engine, body: str, rows: Rows) -> Array:
        return engine.field("xpos")[rows, self.env.data.body(body).id]


class Reacher(_Manipulator):
    """An arm of two links."""

    still = (2, 3)  # the target

    def state_from(self, observations: Array) -> tuple[Array, Array]:
        angles = np.arctan2(observations[:, 2:4], observations[:, :2])
        qpos = np.concatenate([angles, observations[:, 4:6]], axis=1)
        return qpos, np.concatenate([observations[:, 6:8], np.zeros((len(observations), 2))], axis=1)

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        qpos = rng.uniform(-0.1, 0.1, self.nq) + self.init_qpos
        goal = rng.uniform(-0.2, 0.2, 2)
        while np.linalg.norm(goal) >= 0.2:
            goal = rng.uniform(-0.2, 0.2, 2)
        qpos[-2:] = goal
        qvel = self.init_qvel + rng.uniform(-0.005, 0.005, self.nv)
        qvel[-2:] = 0
        return qpos, qvel

    def _gap(self, engine: Engine, rows: Rows) -> Array:
        return self._position(engine, "fingertip", rows) - self._position(engine, "target", rows)

    def observe(self, engine: Engine, rows: Rows) -> Array:
        qpos, qvel = engine.qpos[rows], engine.qvel[rows]
        angles = qpos[:, :2]
        parts = [np.cos(angles), np.sin(angles), qpos[:, 2:], qvel[:, :2], self._gap(engine, rows)[:, :2]]
        return np.concatenate(parts, axis=1)

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        distance = -length(self._gap(engine, slice(None))) * self.env._reward_dist_weight
        cost = -squares(actions) * self.env._reward_control_weight
        return distance + cost, np.zeros(len(cost), np.bool_), {"reward_dist": distance, "reward_ctrl": cost}


class Pusher(_Manipulator):
    """An arm of seven joints and a cylinder."""

    still = (9, 10)  # the goal

    def state_from(self, observations: Array) -> tuple[Array, Array]:
        raise EnvStateError(
            "The observation has no velocity of the cylinder. Log qpos and qvel, both of shape (T + 1, 11), "
            "beside observations."
        )

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        qpos = self.init_qpos.copy()
        while True:
            cylinder = np.concatenate([rng.uniform(-0.3, 0, 1), rng.uniform(-0.2, 0.2, 1)])
            if np.linalg.norm(cylinder) > 0.17:
                break
        qpos[-4:-2] = cylinder
        qpos[-2:] = 0
        qvel = self.init_qvel + rng.uniform(-0.005, 0.005, self.nv)
        qvel[-4:] = 0
        return qpos, qvel

    def observe(self, engine: Engine, rows: Rows) -> Array:
        bodies = [self._position(engine, body, rows) for body in ("tips_arm", "object", "goal")]
        return np.concatenate([engine.qpos[rows, :7], engine.qvel[rows, :7], *bodies], axis=1)

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        everything = slice(None)
        thing = self._position(engine, "object", everything)
        near = -length(thing - self._position(engine, "tips_arm", everything)) * self.env._reward_near_weight
        distance = -length(thing - self._position(engine, "goal", everything)) * self.env._reward_dist_weight
        cost = -squares(actions) * self.env._reward_control_weight
        info = {"reward_dist": distance, "reward_ctrl": cost, "reward_near": near}
        return distance + cost + near, np.zeros(len(cost), np.bool_), info


TASKS: dict[str, type[ReferenceTask]] = {  # by Gymnasium's id
    f"{task.__name__}-v5": task
    for task in (
        InvertedPendulum,
        InvertedDoublePendulum,
        HalfCheetah,
        Walker2d,
        Hopper,
        Swimmer,
        Ant,
        Humanoid,
        HumanoidStandup,
        Reacher,
        Pusher,
    )
}
