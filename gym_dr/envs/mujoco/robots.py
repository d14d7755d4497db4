"""Custom robots: a model file and a few functions, registered as an environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import parse_env_id

from gym_dr.arrays import Array, Mask
from gym_dr.envs.family import ENVIRONMENTS, FAMILIES, EnvFamily, EnvId, add_family, remove_family
from gym_dr.envs.mujoco.family import ROBOT_DEFAULTS
from gym_dr.envs.mujoco.presets import robot_presets
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import RobotError
from gym_dr.randomization.presets import PRESETS
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, all_or_nothing

if TYPE_CHECKING:  # mujoco is heavy
    from gym_dr.envs.mujoco.robot_env import RobotState

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
) -> None:
    """Registers an environment: a MuJoCo model, and functions that define observations and rewards.

    The functions get n simulations at once as a ``RobotState``: ``state.qpos`` is ``(n, nq)``, and so on. Row i of
    their result may depend only on row i; n is 1 in a single environment and ``num_envs`` in a native one. Registering
    an id again replaces its robot in environments that are made afterwards.

    Args:
        id: Id of the environment: "Cart-v0", or "mine/Cart-v0".
        model: An MJCF or URDF file; a relative path starts at the folder of the file that defines ``observe``.
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
        presets: Name -> randomization, as a mapping or a ``Randomization``. The presets of our robots ("default",
            "wide", "random" and "extreme") exist too, unless given here.
        camera: A camera of the model for rendering; None for the one called "track", or a view of everything.
        state_from: Observations ``(n, size)`` -> the positions ``(n, nq)`` and velocities ``(n, nv)`` that they
            determine, to fit parameters to logs. None if observations begin with positions and velocities, or if
            logs have them.

    Raises:
        RobotError: There is no such file, a function is not callable, or the id is malformed or already taken.
        ConfigError: A number is not a whole number above 0.
        RandomizationError: A preset is impossible.
    """
    path = _folder(observe) / model
    if not path.is_file():
        raise RobotError(f"Robot {id!r}: expected a model file, got {str(path)!r}, which does not exist.")
    functions: dict[str, Any] = {"observe": observe, "reward": reward, "reset": reset}
    functions |= {"terminated": terminated, "state_from": state_from}
    for name, function in functions.items():
        if not (callable(function) or (function is None and name in ("terminated", "state_from"))):
            raise RobotError(f"Robot {id!r}: expected a function as {name}, got {function!r}.")
    try:
        parse_env_id(id)
    except gym.error.Error as error:
        raise RobotError(f"Robot {id!r}: expected an id such as 'Cart-v0' or 'mine/Cart-v0': {error}") from None
    if id in gym.registry and id not in ROBOTS:
        raise RobotError(f"Robot {id!r}: another environment is already registered with this id. Choose another id.")
    robot = Robot(
        id=id,
        model=path,
        observe=observe,
        reward=reward,
        terminated=terminated,
        state_from=state_from,
        reset=reset,
        frame_skip=check_whole_number("frame_skip", frame_skip),
        fields=(fields,) if isinstance(fields, str) else tuple(fields),
    )
    own = {name: Randomization.from_dict(given) for name, given in (presets or {}).items()}
    # nothing is left to decide, so a model without contacts or damping brings no warnings
    usual = {name: Randomization(given, switched_on=()) for name, given in robot_presets("geom_friction").items()}
    env = EnvId(
        id=id,
        entry_point=f"{_MODULE}:RobotDR",
        vector_entry_point=f"{_MODULE}:RobotVectorEnv",
        discrete=False,
        max_episode_steps=check_whole_number("max_episode_steps", max_episode_steps),
        reward_threshold=reward_threshold,
        kwargs={"robot": id} if camera is None else {"robot": id, "camera_name": camera},
    )
    family = EnvFamily(
        name=id,
        ids=(env,),
        space=f"{_MODULE}:space_of",
        presets={**usual, **own},
        camera="gym_dr.envs.mujoco.camera:follow",
        defaults=ROBOT_DEFAULTS,
    )
    with all_or_nothing(ROBOTS, FAMILIES, ENVIRONMENTS, PRESETS):
        if id in ROBOTS:
            remove_family(FAMILIES.get(id))
            ROBOTS.remove(id)
        add_family(family, observe.__module__)
        ROBOTS.add(id, robot, observe.__module__)


def _folder(function: Any) -> Path:
    """The folder of a function's file; the current folder if it has none."""
    try:
        return Path(inspect.getfile(inspect.unwrap(function))).resolve().parent
    except TypeError:  # a callable object, or not a function at all, which is refused later
        return Path.cwd()
