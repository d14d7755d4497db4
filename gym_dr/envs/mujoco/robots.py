"""Custom robots: a model file and a few functions, registered as an environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.envs.family import EnvFamily, EnvId, origin_of, read_presets, register_own, takes_arguments
from gym_dr.envs.mujoco.family import ROBOT_DEFAULTS
from gym_dr.envs.mujoco.presets import robot_presets
from gym_dr.envs.mujoco.robot_state import RobotState
from gym_dr.envs.vector_arguments import check_optional_number, check_whole_number
from gym_dr.errors import RobotError, as_path, located, shortened
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, all_or_nothing

_MODULE = "gym_dr.envs.mujoco.robot_env"


@dataclass(frozen=True, kw_only=True)
class Robot:
    """A model and its task; see ``register_robot``."""

    id: str
    model: Path
    observe: Callable[[RobotState], Array]
    reward: Callable[[RobotState, RobotState], Array]
    terminated: Callable[[RobotState], Mask] | None
    state_from: Callable[[Array], tuple[Array, Array]] | None
    reset: Callable[[np.random.Generator, Any], tuple[Array, Array]]
    frame_skip: int
    fields: tuple[str, ...]
    presets: Mapping[str, Randomization]  # its own, checked against the model when an environment is made
    actuator_history: int | None  # simulation steps


ROBOTS: Registry[Robot] = Registry("robot")  # by id


def register_robot(
    id: str,  # as in gymnasium.register
    *,
    model: str | Path,
    observe: Callable[[RobotState], Array],
    reward: Callable[[RobotState, RobotState], Array],
    reset: Callable[[np.random.Generator, Any], tuple[Array, Array]],
    terminated: Callable[[RobotState], Mask] | None = None,
    fields: Sequence[str] = (),
    frame_skip: int = 1,
    max_episode_steps: int = 1000,
    reward_threshold: float | None = None,
    presets: Mapping[str, Any] | None = None,
    camera: str | None = None,
    state_from: Callable[[Array], tuple[Array, Array]] | None = None,
    actuator_history: int | None = None,
) -> None:
    """Registers an environment: a MuJoCo model, and functions that define observations and rewards.

    The functions get n simulations at once as a ``RobotState``: ``state.qpos`` is ``(n, nq)``, and so on. Row i of
    their result may depend only on row i; n is 1 in a single environment and ``num_envs`` in a native one. Registering
    an id again in the same file replaces its robot in environments that are made afterwards.

    Args:
        id: Id of the environment: "Cart-v0", or "mine/Cart-v0".
        model: An MJCF or URDF file; a relative path starts at the folder of the file that defines ``observe``, or in a
            notebook at the current folder.
        observe: State -> observations ``(n, size)``.
        reward: States before and after a step (the latter has the actions as ``ctrl``) -> rewards ``(n,)``.
        reset: A sub-environment's generator and the nominal ``MjModel`` -> the initial state of one episode, positions
            ``(nq,)`` and velocities ``(nv,)``.
        terminated: State after a step -> which episodes end, ``(n,)`` bool; None if only the step limit ends them.
        fields: Fields of ``MjData`` that the functions read besides ``qpos``, ``qvel``, ``ctrl`` and ``sensordata``,
            such as "xpos".
        frame_skip: Simulation steps per environment step.
        max_episode_steps: Steps after which an episode is truncated.
        reward_threshold: Return at which the task counts as solved.
        presets: Name -> randomization, as a mapping or a ``Randomization``; checked against the model when an
            environment is made. The presets of our robots ("default", "wide", "random" and "extreme") exist too, unless
            given here.
        camera: A camera of the model for rendering; None for the one called "track", or a view of everything.
        state_from: Observations ``(n, size)`` -> the positions ``(n, nq)`` and velocities ``(n, nv)`` that they
            determine, to fit parameters to logs. None if observations begin with positions and velocities, or if
            logs have them.
        actuator_history: Simulation steps for which each actuator remembers controls, the longest ``actuator_delay``
            (MuJoCo 3.5 or later); None for the model's own ``nsample``.

    Raises:
        RobotError: There is no such file, a function is not callable or takes other arguments, or the id is malformed
            or belongs to another environment or another file's robot.
        ConfigError: A number is impossible.
        RandomizationError: A preset is impossible.
    """
    with located(f"Robot {id!r}"):
        functions = {"observe(state)": observe, "reward(before, after)": reward, "reset(rng, model)": reset}
        optional = {"terminated(state)": terminated, "state_from(observations)": state_from}
        for form, function in (functions | {form: f for form, f in optional.items() if f is not None}).items():
            _check_function(form, function)
        path = _model_file(model, observe)
        own = read_presets({} if presets is None else presets)
        robot = Robot(
            id=id,
            model=path,
            observe=observe,
            reward=reward,
            terminated=terminated,
            state_from=state_from,
            reset=reset,
            frame_skip=check_whole_number("frame_skip", frame_skip),
            fields=tuple(fields),
            presets=own,
            actuator_history=None
            if actuator_history is None
            else check_whole_number("actuator_history", actuator_history),
        )
        limit = check_whole_number("max_episode_steps", max_episode_steps)
        threshold = check_optional_number("reward_threshold", reward_threshold)
    env = EnvId(
        id=id,
        entry_point=f"{_MODULE}:make",
        vector_entry_point=f"{_MODULE}:RobotVectorEnv",
        discrete=False,
        max_episode_steps=limit,
        reward_threshold=threshold,
        kwargs={"robot": id} if camera is None else {"robot": id, "camera_name": camera},
    )
    family = EnvFamily(
        name=id,
        ids=(env,),
        space=f"{_MODULE}:space_of",
        presets={**robot_presets("geom_friction"), **own},
        camera="gym_dr.envs.mujoco.camera:follow",
        defaults=ROBOT_DEFAULTS,
        origin=origin_of(observe),
    )
    with located(f"Robot {id!r}"), all_or_nothing(ROBOTS):
        ROBOTS.remove(id)
        ROBOTS.add(id, robot, observe.__module__)
        register_own(family, RobotError)  # last, since it undoes only its own changes


def _check_function(form: str, function: Any) -> None:
    """Refuses a function that cannot be called like a form such as "reset(rng, model)"."""
    name = form.partition("(")[0]
    if not callable(function):
        raise RobotError(f"expected {name} to be a function, got {function!r}.")
    if not takes_arguments(function, len(form.split(","))):
        raise RobotError(f"expected {form}, got {name}{inspect.signature(function)}.")


def _model_file(model: str | Path, observe: Callable[..., Any]) -> Path:
    """The full path of a model.

    Raises:
        RobotError: There is no such file.
    """
    file = Path(origin_of(observe)[1]).resolve()
    path = (file.parent if file.is_file() else Path.cwd()) / as_path(model)
    if not isfile(path):  # unlike Path.is_file, accepts text that is too long for a path
        raise RobotError(f"expected a model file, got {shortened(str(path))}, which does not exist.")
    return path
