"""Environments of custom robots: single ones, and many with one backend."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import mujoco  # type: ignore[import-untyped]
import numpy as np
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from gymnasium.spaces import Box
from gymnasium.utils import EzPickle
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array, Indices
from gym_dr.envs.family import ENVIRONMENTS, takes_arguments
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.engine import reset_data
from gym_dr.envs.mujoco.env import RENDERED
from gym_dr.envs.mujoco.reference import quiet_compiler
from gym_dr.envs.mujoco.robot_task import RobotTask
from gym_dr.envs.mujoco.robots import ROBOTS
from gym_dr.envs.mujoco.space import ModelSpace, space_of_env
from gym_dr.envs.mujoco.viewer import open_viewer
from gym_dr.envs.mujoco.wrapper import RandomizeMujoco
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.errors import RobotError, located, unknown_name
from gym_dr.randomization.presets import resolve

_ONLY = np.zeros(1, np.int64)


class _Simulation:
    """The simulation of a single environment as an engine with one."""

    def __init__(self, env: Any) -> None:
        self._env, self.diverged = env, np.zeros(1, np.bool_)  # the wrapper looks at warnings

    @property
    def ctrl(self) -> Array:
        """The controls of the next step, ``(1, nu)``, a view."""
        return np.asarray(self._env.data.ctrl[None])

    def field(self, name: str) -> Array:
        """A field of ``MjData``, ``(1, ...)``."""
        return np.asarray(getattr(self._env.data, name))[None]

    def start(self, envs: Indices, qpos: Array, qvel: Array) -> None:
        """Begins an episode."""
        reset_data(self._env.model, self._env.data, self._env.task.keyframe)
        self._env.set_state(qpos[0], qvel[0])

    def step(self, envs: Indices | None, substeps: int) -> None:
        """Advances the simulation."""
        self._env.do_simulation(self._env.data.ctrl, substeps)


class RobotEnv(MujocoEnv, EzPickle):
    """One robot with nominal values, like Gymnasium's own environments.

    Attributes:
        task: Its task.
        mirror: How observations and actions change when left and right change places; None if the robot does not tell.
        critic_size: Numbers that the critic alone observes.
        memory: What the task remembers: name -> ``(1, *shape)``; may be written.
        steer: Memory that a person may steer: name -> lowest and highest values.
        drawn: The values of the task's own parameters in the next episode, each ``(1,)``; those left out are nominal.
        held: Memory that a person steers, name -> entries: it is written again before each observation.
    """

    metadata: dict[str, Any] = RENDERED
    open_viewer = open_viewer

    def __init__(self, robot: str, model: Any = None, **kwargs: Any) -> None:
        """Compiles the model and tries the functions.

        Args:
            robot: The robot's id.
            model: A model in place of the robot's own, see ``register_robot``; None for its own.
            **kwargs: Keywords of ``MujocoEnv``: ``render_mode``, ``width``, ``height``, ``camera_name``, ...

        Raises:
            UnknownNameError: There is no such robot, field of ``MjData``, keyframe or camera, or the model lacks a
                preset's parameter.
            RobotError: The model cannot be compiled or driven, or a function returns invalid values.
            RandomizationError: A range of a preset is impossible.
        """
        EzPickle.__init__(self, robot, model, **kwargs)
        chosen = ROBOTS.get(robot)
        self.space_name, self._robot, self._source = robot, chosen, chosen.model
        if model is not None:
            takes_it = callable(chosen.model) and takes_arguments(chosen.model, 1)
            self._source = partial(chosen.model, model) if takes_it else model
        with quiet_compiler(), located(f"Robot {robot!r}"):
            # Gymnasium wants a file that exists; ours is read in ``_initialize_simulation``
            super().__init__(os.path.abspath(__file__), chosen.frame_skip, None, **kwargs)
        _check_model(robot, self.model, kwargs.get("camera_name"), chosen.action is None)
        self.own_parameters = chosen.parameters
        self.checked_space = space_of_env(self)  # see there
        for name in chosen.presets:
            with located(f"Robot {robot!r}: preset {name!r}"):
                resolve(name, self.checked_space)
        self.metadata = {**self.metadata, "render_fps": int(np.round(1.0 / self.dt))}
        self.task, self._simulation = RobotTask(chosen, self.model, self.data), cast(Any, _Simulation(self))
        self.task.allocate(1)
        self.mirror, self.critic_size = self.task.mirror, self.task.critic_size
        self.memory, self.steer = self.task.memory, chosen.steer
        self.observation_space = Box(-np.inf, np.inf, (self.task.size,), np.float64)
        if chosen.action is not None:
            self.action_space = Box(-1.0, 1.0, (self.task.action_size,), np.float32)
        self.drawn: Mapping[str, Array] = {}
        self.held: dict[str, Array] = {}

    def _initialize_simulation(self) -> tuple[Any, Any]:
        """Compiles the model, with a longer history of controls if the robot asks for one.

        Raises:
            RobotError: The model cannot be made or compiled, or this MuJoCo knows no delays.
        """
        history, source = self._robot.actuator_history, self._source
        if history is not None and not hasattr(mujoco.MjModel, "actuator_history"):
            raise RobotError(f"actuator_history: expected MuJoCo 3.5 or later, got {mujoco.__version__}.")
        try:
            made = source() if callable(source) else source
            if isinstance(made, str | os.PathLike):
                text = os.fspath(made)
                made = (mujoco.MjSpec.from_string if text.lstrip().startswith("<") else mujoco.MjSpec.from_file)(text)
            if history is not None and isinstance(made, mujoco.MjModel):
                raise RobotError("actuator_history: expected an MjSpec, got an MjModel: return it uncompiled.")
            if history is not None and hasattr(made, "compile"):
                for actuator in made.actuators:
                    actuator.nsample = max(actuator.nsample, history)
            model = made.compile() if hasattr(made, "compile") else made
        except (ValueError, OSError, AttributeError, TypeError) as error:  # MuJoCo's, or of a later one
            raise RobotError(f"{source} cannot be compiled with MuJoCo {mujoco.__version__}: {error}") from error
        if not isinstance(model, mujoco.MjModel):
            raise RobotError(f"expected model to be a file, XML, an MjSpec or an MjModel, got {model!r}.")
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)
        return model, mujoco.MjData(model)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        task, simulation = self.task, self._simulation
        actions, before = np.asarray(action)[None], task.before(simulation)
        task.advance(simulation, actions, None, self.frame_skip)
        rewards, terminations, info = task.outcome(simulation, actions, before)
        info |= task.finish(simulation, None)
        observations = self._observe()
        task.check(simulation.field("qpos"), observations, rewards)
        first = {name: values[0] for name, values in info.items()}
        return observations[0], float(rewards[0]), bool(terminations[0]), False, first

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.np_random  # noqa: B018  makes a seed if there is none
        if seed is not None or self.task.episode[0] < 0:
            known = self.np_random_seed if seed is None else seed
            self.task.seed((0,), (known if known >= 0 else int(self.np_random.integers(2**63)),))
        return cast(tuple[Any, dict[str, Any]], super().reset(seed=seed, options=options))

    def reset_model(self) -> Any:
        task, simulation = self.task, self._simulation
        task.begin(simulation, _ONLY, (), self.drawn)
        observations = self._observe()
        task.check(simulation.field("qpos"), observations)
        return observations[0]

    def _observe(self) -> Array:
        for name, entries in self.held.items():
            self.memory[name][:] = entries.reshape(self.memory[name].shape)
        return self.task.observe(self._simulation, slice(None))

    def _get_reset_info(self) -> dict[str, Any]:
        return {name: values[0] for name, values in self.task.reset_info(self._simulation).items()}


def _check_model(robot: str, model: Any, camera: str | None, bounded: bool) -> None:
    """Refuses a model without joints or actuators, or with an actuator without a range that bounds actions.

    Raises:
        RobotError: The model is refused.
        UnknownNameError: The model has no such camera.
    """
    for number, what in ((model.njnt, "joint"), (model.nu, "actuator")):
        if not number:
            raise RobotError(f"Robot {robot!r}: expected a model with at least one {what}, got none.")
    free = [i for i in range(model.nu) if not model.actuator_ctrllimited[i]]
    if free and bounded:
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


def interface(env_id: str) -> Interface:
    """The parts of observations and actions of a robot, whose environment is made, with the errors of ``RobotEnv``."""
    env = RobotEnv(**ENVIRONMENTS.get(env_id).kwargs)
    return Interface(
        observation=tuple(  # "observation" is no part
            Quantity(name, size=size, name=name if name.isidentifier() and name != "observation" else "")
            for name, size in env.task.parts.items()
        ),
        actions=tuple(Quantity(f"number {k} of the action") for k in range(env.task.action_size)),
    )


class _RandomizedRobot(RandomizeMujoco):
    """Tells the task its own parameters, and lets a person who watches change the model."""

    def change(self, values: Mapping[str, float]) -> None:
        """Changes the model in the running episode; what is not of the model waits for the next reset."""
        self._editor.apply(self._model, {**self._own, **{n: v for n, v in values.items() if n in self.param_space}})

    def _note_values(self) -> None:
        super()._note_values()
        task = self._inner.task
        self._inner.drawn = {name: np.array([v]) for name, v in self._own.items() if name in task.parameters}


def make(
    robot: str, *, randomization: Any = "default", context: str = "info", context_params: Any = None, **kwargs: Any
) -> RandomizeMujoco:
    """Makes a robot and randomizes its model.

    Args:
        robot: The robot's id.
        randomization: See ``RandomizeMujoco``, as for ``context`` and ``context_params``.
        context: Who may see the draw.
        context_params: Which parameters the observation shows.
        **kwargs: ``model`` in place of the robot's own, and keywords of ``MujocoEnv``.
    """
    return _RandomizedRobot(RobotEnv(robot, **kwargs), randomization, context, context_params)


make.metadata = RENDERED  # type: ignore[attr-defined]  # as in ``env.make``


class RobotVectorEnv(NativeVectorEnv, VectorEnv[Any, Any, Any]):
    """Many copies of a robot with randomized physics."""

    def _make_backend(self, render_mode: str | None, robot: str = "", **kwargs: Any) -> MujocoBackend:
        env = RobotEnv(robot, render_mode=render_mode, **kwargs)
        self.mirror, self.critic_size = env.mirror, env.critic_size
        return MujocoBackend(env, env.task)
