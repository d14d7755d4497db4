"""Environments of custom robots: single ones, and many with one backend."""

from __future__ import annotations

from typing import Any, cast

import mujoco  # type: ignore[import-untyped]
import numpy as np
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from gymnasium.spaces import Box
from gymnasium.utils import EzPickle
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.env import RENDERED
from gym_dr.envs.mujoco.reference import quiet_compiler
from gym_dr.envs.mujoco.robot_task import RobotTask
from gym_dr.envs.mujoco.robots import ROBOTS
from gym_dr.envs.mujoco.space import ModelSpace, space_of_env
from gym_dr.envs.mujoco.wrapper import RandomizeMujoco
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.errors import RobotError, located, unknown_name
from gym_dr.randomization.presets import resolve


class RobotEnv(MujocoEnv, EzPickle):
    """One robot with nominal values, like Gymnasium's own environments."""

    metadata: dict[str, Any] = RENDERED

    def __init__(self, robot: str, **kwargs: Any) -> None:
        """Compiles the model and tries the functions.

        Args:
            robot: The robot's id.
            **kwargs: Keywords of ``MujocoEnv``: ``render_mode``, ``width``, ``height``, ``camera_name``, ...

        Raises:
            UnknownNameError: There is no such robot, field of ``MjData`` or camera, or the model lacks a preset's
                parameter.
            RobotError: The model cannot be compiled or driven, or a function returns invalid values.
            RandomizationError: A range of a preset is impossible.
        """
        EzPickle.__init__(self, robot, **kwargs)
        chosen = ROBOTS.get(robot)
        self.space_name, self._history = robot, chosen.actuator_history
        try:
            with quiet_compiler():
                super().__init__(str(chosen.model), chosen.frame_skip, None, **kwargs)
        except ValueError as error:  # MuJoCo's
            raise RobotError(f"Robot {robot!r}: {chosen.model} cannot be compiled: {error}") from None
        _check_model(robot, self.model, kwargs.get("camera_name"))
        for name, randomization in chosen.presets.items():
            with located(f"Robot {robot!r}: preset {name!r}"):
                resolve(randomization, space_of_env(self))
        self.metadata = {**self.metadata, "render_fps": int(np.round(1.0 / self.dt))}
        self.task = RobotTask(chosen, self.model, self.data)
        self.observation_space = Box(-np.inf, np.inf, (self.task.size,), np.float64)

    def _initialize_simulation(self) -> tuple[Any, Any]:
        """Compiles the model, with a longer history of controls if the robot asks for one.

        Raises:
            RobotError: This MuJoCo knows no delays.
        """
        model, data = super()._initialize_simulation()
        if self._history is None:
            return model, data
        if not hasattr(model, "actuator_delay"):
            raise RobotError(f"actuator_history: expected MuJoCo 3.5 or later, got {mujoco.__version__}.")
        spec = mujoco.MjSpec.from_file(self.fullpath)
        for actuator in spec.actuators:
            actuator.nsample = max(actuator.nsample, self._history)
        longer = spec.compile()
        longer.vis.global_.offwidth, longer.vis.global_.offheight = self.width, self.height
        return longer, mujoco.MjData(longer)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        before = self.task.state(self._field, copied=True)
        self.do_simulation(action, self.frame_skip)
        after = self.task.state(self._field)
        observations, rewards = self.task.observations(after), self.task.rewards(before, after)
        self.task.check(after.qpos, observations, rewards)
        return observations[0], float(rewards[0]), bool(self.task.terminations(after)[0]), False, {}

    def reset_model(self) -> Any:
        cast(Any, self).set_state(*self.task.first_state(self.np_random))
        state = self.task.state(self._field)
        observations = self.task.observations(state)
        self.task.check(state.qpos, observations)
        return observations[0]

    def _field(self, name: str) -> Array:
        return np.asarray(getattr(self.data, name))[None]


def _check_model(robot: str, model: Any, camera: str | None) -> None:
    """Refuses a model without joints or actuators, or with an actuator without a range.

    Raises:
        RobotError: The model is refused.
        UnknownNameError: The model has no such camera.
    """
    for number, what in ((model.njnt, "joint"), (model.nu, "actuator")):
        if not number:
            raise RobotError(f"Robot {robot!r}: expected a model with at least one {what}, got none.")
    free = [i for i in range(model.nu) if not model.actuator_ctrllimited[i]]
    if free:
        names = ", ".join(model.actuator(i).name or f"number {i}" for i in free)
        raise RobotError(
            f"Robot {robot!r}: expected a ctrlrange for each actuator, which sets the bounds of actions, got none for "
            f"{names}."
        )
    cameras = [model.camera(i).name for i in range(model.ncam)]
    if camera is not None and camera not in cameras:
        raise unknown_name(f"camera of robot {robot!r}:", camera, cameras)


def space_of(env_id: str) -> ModelSpace:
    """The parameters of a robot, whose environment is made, with the errors of ``RobotEnv``."""
    return space_of_env(RobotEnv(**ENVIRONMENTS.get(env_id).kwargs))


def make(
    robot: str, *, randomization: Any = "default", context: str = "info", context_params: Any = None, **kwargs: Any
) -> RandomizeMujoco:
    """Makes a robot and randomizes its model.

    Args:
        robot: The robot's id.
        randomization: See ``RandomizeMujoco``, as for ``context`` and ``context_params``.
        context: Who may see the draw.
        context_params: Which parameters the observation shows.
        **kwargs: Keywords of ``MujocoEnv``.
    """
    return RandomizeMujoco(RobotEnv(robot, **kwargs), randomization, context, context_params)


make.metadata = RENDERED  # type: ignore[attr-defined]  # as in ``env.make``


class RobotVectorEnv(NativeVectorEnv, VectorEnv[Any, Any, Any]):
    """Many copies of a robot with randomized physics."""

    def _make_backend(self, render_mode: str | None, robot: str = "", **kwargs: Any) -> MujocoBackend:
        env = RobotEnv(robot, render_mode=render_mode, **kwargs)
        return MujocoBackend(env, env.task)
