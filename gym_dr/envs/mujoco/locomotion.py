"""Gymnasium's robots that swim, walk, run or stand up: observations, rewards and ends.

Sums follow Gymnasium's order, since the last digits of floating-point sums depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.envs.backend import Info
from gym_dr.envs.mujoco.engine import Engine
from gym_dr.envs.mujoco.reference_task import ReferenceTask, finite, length, squares
from gym_dr.envs.mujoco.task import Feedback, Rows


class _Roamer(ReferenceTask):
    """A robot that moves along x, or in the plane of x and y; observes its state, its place only on request.

    It is rewarded for its forward velocity and never falls, unless a subclass overrides this.
    """

    unseen: Sequence[int] = (0, 1)

    def before(self, engine: Engine) -> Any:
        return self._place(engine).copy()

    def _place(self, engine: Engine) -> Array:
        """The place of each robot, ``(N, 1)`` or ``(N, 2)``."""
        return np.asarray(engine.qpos[:, : len(self.unseen)])

    def _forward(self, engine: Engine, before: Array) -> tuple[Array, Array]:
        """The velocity of the place, and the reward for its x component."""
        duration = self.model_field(engine, "timestep")[:, None] * self.env.frame_skip
        velocity = (self._place(engine) - before) / duration
        return velocity, self.env._forward_reward_weight * velocity[:, 0]

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        velocity, forward = self._forward(engine, before)
        cost = self.env._ctrl_cost_weight * squares(actions)
        return forward - cost, np.zeros(len(cost), np.bool_), self._report(engine, velocity, forward, cost)

    def _report(self, engine: Engine, velocity: Array, forward: Array, cost: Array) -> Info:
        velocities = {f"{axis}_velocity": velocity[:, k] for k, axis in enumerate("xy"[: velocity.shape[1]])}
        return {**self.reset_info(engine), **velocities, "reward_forward": forward, "reward_ctrl": -cost}

    def _survived(self, engine: Engine, before: Any, healthy: Mask, cost: Array, contact: Array | None) -> Feedback:
        """The outcome with a reward for health, and with costs of controls and, unless None, of contacts."""
        velocity, forward = self._forward(engine, before)
        alive = healthy * self.env._healthy_reward
        info = {**self._report(engine, velocity, forward, cost), "reward_survive": alive}
        if contact is not None:
            cost, info["reward_contact"] = cost + contact, -contact
        return forward + alive - cost, self._fallen(healthy), info

    def observe(self, engine: Engine, rows: Rows) -> Array:
        return np.concatenate(self._state(engine, rows), axis=1)

    def _state(self, engine: Engine, rows: Rows) -> list[Array]:
        """Positions and velocities, as they are observed."""
        qvel, limit = engine.qvel[rows], self.velocity_limit
        return [engine.qpos[rows, self._hidden :], qvel if limit is None else qvel.clip(-limit, limit)]

    def state_from(self, observations: Array) -> tuple[Array, Array]:
        end = self.nq - self._hidden
        where = np.zeros((len(observations), self._hidden))  # does not matter
        return np.concatenate([where, observations[:, :end]], axis=1), observations[:, end : end + self.nv]

    @property
    def _hidden(self) -> int:
        """Positions that are not observed, the first ones."""
        return len(self.unseen) * int(self.env._exclude_current_positions_from_observation)


class HalfCheetah(_Roamer):
    """Two legs in a plane."""

    unseen = (0,)
    normal_velocities = True

    def reset_info(self, engine: Engine) -> Info:
        return {"x_position": engine.qpos[:, 0].copy()}


class Walker2d(_Roamer):
    """Two legs in a plane; ends when it falls."""

    unseen = (0,)
    velocity_limit = 10.0

    def _healthy(self, engine: Engine) -> Mask:
        low_z, high_z = self.env._healthy_z_range
        low_angle, high_angle = self.env._healthy_angle_range
        z, angle = engine.qpos[:, 1], engine.qpos[:, 2]
        return np.asarray((low_z < z) & (z < high_z) & (low_angle < angle) & (angle < high_angle))

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        cost = self.env._ctrl_cost_weight * squares(actions)
        return self._survived(engine, before, self._healthy(engine), cost, None)

    def reset_info(self, engine: Engine) -> Info:
        x, z = engine.qpos[:, 0].copy(), engine.qpos[:, 1] - self.init_qpos[1]
        return {"x_position": x, "z_distance_from_origin": z}


class Hopper(Walker2d):
    """One leg in a plane; ends when it falls, or when its state leaves a range."""

    def _healthy(self, engine: Engine) -> Mask:
        low, high = self.env._healthy_state_range
        state = np.concatenate([engine.qpos[:, 2:], engine.qvel], axis=1)
        return np.asarray(super()._healthy(engine) & ((low < state) & (state < high)).all(axis=1))


class Swimmer(_Roamer):
    """Three links in a fluid."""

    def reset_info(self, engine: Engine) -> Info:
        xy = engine.qpos[:, :2]
        return {"x_position": xy[:, 0].copy(), "y_position": xy[:, 1].copy(), "distance_from_origin": length(xy)}


class Ant(Swimmer):
    """Four legs; observes contact forces; ends when it falls."""

    fields = ("cfrc_ext", "xpos")
    contact_forces = True
    normal_velocities = True

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._body = env.data.body(env._main_body).id

    def _place(self, engine: Engine) -> Array:
        return np.asarray(engine.field("xpos")[:, self._body, :2])

    def _state(self, engine: Engine, rows: Rows) -> list[Array]:
        if not self.env._include_cfrc_ext_in_observation:
            return super()._state(engine, rows)
        forces = self._forces(engine, rows)
        return [*super()._state(engine, rows), forces[:, 1:].reshape(len(forces), -1)]

    def _forces(self, engine: Engine, rows: Rows) -> Array:
        return np.asarray(np.clip(engine.field("cfrc_ext")[rows], *self.env._contact_force_range))

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        low, high = self.env._healthy_z_range
        healthy = finite(engine) & (low <= engine.qpos[:, 2]) & (engine.qpos[:, 2] <= high)
        cost = self.env._ctrl_cost_weight * squares(actions)
        forces = self._forces(engine, slice(None)).reshape(len(cost), -1)
        contact = self.env._contact_cost_weight * np.square(forces).sum(axis=1)
        return self._survived(engine, before, healthy, cost, contact)


class _Humanlike(_Roamer):
    """A humanoid; observes inertia, velocities and forces of its bodies too."""

    fields: tuple[str, ...] = ("cinert", "cvel", "qfrc_actuator", "cfrc_ext", "ten_length", "ten_velocity")
    contact_forces = True

    def _state(self, engine: Engine, rows: Rows) -> list[Array]:
        env, parts = self.env, super()._state(engine, rows)
        for name, included, first in (  # the world is body 0; a free joint has the first six forces
            ("cinert", env._include_cinert_in_observation, 1),
            ("cvel", env._include_cvel_in_observation, 1),
            ("qfrc_actuator", env._include_qfrc_actuator_in_observation, 6),
            ("cfrc_ext", env._include_cfrc_ext_in_observation, 1),
        ):
            if included is True:
                values = engine.field(name)[rows]
                parts.append(values[:, first:].reshape(len(values), -1))
        return parts

    def reset_info(self, engine: Engine) -> Info:
        tendons = {f"tendon_{name}": engine.field(f"ten_{name}").copy() for name in ("length", "velocity")}
        return {"x_position": engine.qpos[:, 0].copy(), "y_position": engine.qpos[:, 1].copy(), **tendons}

    def _control_cost(self, engine: Engine) -> Array:
        return np.asarray(self.env._ctrl_cost_weight * np.square(engine.ctrl).sum(axis=1))

    def _force_cost(self, engine: Engine, weight: float, bounds: tuple[float, float]) -> Array:
        forces = engine.field("cfrc_ext").reshape(len(engine.qpos), -1)
        return np.asarray(np.clip(weight * np.square(forces).sum(axis=1), *bounds))


class Humanoid(_Humanlike):
    """Walks; ends when it falls."""

    fields = (*_Humanlike.fields, "xipos")

    def _place(self, engine: Engine) -> Array:
        """The center of mass in the plane, ``(N, 2)``."""
        places = engine.field("xipos")[:, :, :2]
        mass = np.broadcast_to(self.model_field(engine, "body_mass"), places.shape[:2])
        return np.asarray(np.einsum("nb,nbj->nj", mass, places) / mass.sum(axis=1, keepdims=True))

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        env, z = self.env, engine.qpos[:, 2]
        low, high = env._healthy_z_range
        healthy = (low < z) & (z < high)
        cost = self._control_cost(engine)
        contact = self._force_cost(engine, env._contact_cost_weight, env._contact_cost_range)
        return self._survived(engine, before, healthy, cost, contact)

    def reset_info(self, engine: Engine) -> Info:
        return {**super().reset_info(engine), "distance_from_origin": length(engine.qpos[:, :2])}


class HumanoidStandup(_Humanlike):
    """Stands up; only the step limit ends it."""

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: Any) -> Feedback:
        env = self.env
        height = engine.qpos[:, 2] / self.model_field(engine, "timestep")
        cost = self._control_cost(engine)
        impact = self._force_cost(engine, env._impact_cost_weight, env._impact_cost_range)
        rewards = {"reward_linup": height, "reward_quadctrl": -cost, "reward_impact": -impact}
        return height - cost - impact + 1, np.zeros(len(cost), np.bool_), {**self.reset_info(engine), **rewards}

    def reset_info(self, engine: Engine) -> Info:
        return {**super().reset_info(engine), "z_distance_from_origin": engine.qpos[:, 2] - self.init_qpos[2]}
