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
from gym_dr.envs.mirror import Mirror
from gym_dr.envs.mujoco.family import ROBOT_DEFAULTS
from gym_dr.envs.mujoco.presets import robot_presets
from gym_dr.envs.mujoco.robot_state import RobotState
from gym_dr.envs.vector_arguments import check_optional_number, check_whole_number
from gym_dr.errors import RobotError, as_path, located, shortened
from gym_dr.randomization.keyed import KeyedRandom
from gym_dr.randomization.space import Param
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, all_or_nothing

_MODULE = "gym_dr.envs.mujoco.robot_env"
Observe = Callable[[RobotState], Array | Mapping[str, Array]]
Reward = Callable[[RobotState, RobotState], Array | Mapping[str, Array]]
Reset = Callable[[RobotState, KeyedRandom], tuple[Array, Array]]
Bounds = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Robot:
    """A model and its task; see ``register_robot``."""

    id: str
    model: Any  # a Path, XML, an MjSpec, or a function
    observe: Observe
    reward: Reward
    terminated: Callable[[RobotState], Mask] | None
    state_from: Callable[[Array], tuple[Array, Array]] | None
    reset: Reset
    update: Callable[[RobotState, KeyedRandom], None] | None
    action: Callable[[RobotState], Array] | None
    critic: Callable[[RobotState], Array] | None
    memory: Mapping[str, tuple[int, ...]]
    parameters: tuple[Param, ...]
    action_size: int | None
    substep_action: bool
    mirror: Mapping[str, Mirror] | None
    steer: Mapping[str, Bounds]
    keyframe: str | None
    frame_skip: int
    fields: tuple[str, ...]
    presets: Mapping[str, Randomization]  # its own, checked against the model when an environment is made
    actuator_history: int | None  # simulation steps


ROBOTS: Registry[Robot] = Registry("robot")  # by id


def no_reward(before: RobotState, after: RobotState) -> Array:
    """The reward of a robot that is only fitted to logs."""
    return np.zeros(len(after.qpos))


def at_rest(state: RobotState, rng: KeyedRandom) -> tuple[Array, Array]:
    """The first states of a robot that is only fitted to logs: those of the keyframe."""
    return state.qpos, state.qvel


def register_robot(
    id: str,  # as in gymnasium.register
    *,
    model: Any,
    observe: Observe,
    reward: Reward = no_reward,
    reset: Reset = at_rest,
    terminated: Callable[[RobotState], Mask] | None = None,
    memory: Mapping[str, int | tuple[int, ...]] | None = None,
    update: Callable[[RobotState, KeyedRandom], None] | None = None,
    action: Callable[[RobotState], Array] | None = None,
    action_size: int | None = None,
    substep_action: bool = False,
    critic: Callable[[RobotState], Array] | None = None,
    mirror: Mapping[str, Mirror] | None = None,
    parameters: Sequence[Param] = (),
    steer: Mapping[str, Bounds] | None = None,
    keyframe: str | None = None,
    fields: Sequence[str] = (),
    frame_skip: int = 1,
    max_episode_steps: int = 1000,
    reward_threshold: float | None = None,
    presets: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
    camera: str | None = None,
    state_from: Callable[[Array], tuple[Array, Array]] | None = None,
    actuator_history: int | None = None,
) -> None:
    """Registers an environment: a MuJoCo model, and functions that define observations and rewards.

    The functions get n simulations at once as a ``RobotState``: ``state.qpos`` is ``(n, nq)``, and so on. Row i of
    their result may depend only on row i; n is 1 in a single environment and at most ``num_envs`` in a native one.
    A step calls ``action``, the physics, ``reward``, ``terminated``, ``update``, and then ``observe`` and ``critic``.
    Registering an id again in the same file replaces its robot in environments that are made afterwards.

    Args:
        id: Id of the environment: "Cart-v0", or "mine/Cart-v0".
        model: An MJCF or URDF file, where a relative path starts at the folder of the file that defines ``observe``, or
            in a notebook at the current folder; XML; an ``MjSpec``; or a function that returns an ``MjSpec`` or an
            ``MjModel``. ``gym.make(id, model=...)`` takes another one, or what a function with an argument makes of it.
        observe: State -> observations ``(n, size)``, or its parts by name, ``(n, size of the part)`` each, which become
            sensors.
        reward: States before and after a step -> rewards ``(n,)``, or the terms of their sum by name, which ``info``
            reports as "reward_NAME". Without it, all rewards are 0: enough to fit parameters to logs.
        reset: State and random numbers -> initial positions ``(n, nq)`` and velocities ``(n, nv)`` of episodes. The
            state has those of the keyframe, where episodes begin without it; its memory is 0 and may be written.
        terminated: State after a step -> which episodes end, ``(n,)`` bool; None if only the step limit ends them.
        memory: What the task remembers in each sub-environment: name -> shape.
        update: State after a step and random numbers; writes ``state.memory``.
        action: State with ``state.action`` in [-1, 1] -> controls ``(n, nu)``; None if actions are the controls.
        action_size: Numbers of an action; None for as many as there are controls.
        substep_action: Whether ``action`` is called before each simulation step, not only the first, for controllers
            outside the model.
        critic: State -> observations for the critic alone, ``(n, numbers)``; ``info`` reports them as "critic".
        mirror: How parts of the observation ("observation" if they have no names) and the "action" change when left and
            right change places; policies are then averaged with their mirror image.
        parameters: The task's own parameters, which vary like those of the model; see ``state.params``.
        steer: Memory that ``gymdr play`` changes with keys: name -> lowest and highest values.
        keyframe: Where episodes begin, with its controls; None for the model's own state.
        fields: Fields of ``MjData`` that the functions read besides ``qpos``, ``qvel``, ``ctrl`` and ``sensordata``,
            such as "xpos".
        frame_skip: Simulation steps per environment step.
        max_episode_steps: Steps after which an episode is truncated.
        reward_threshold: Return at which the task counts as solved.
        presets: Name -> randomization, as a mapping or a ``Randomization``; checked against the model when an
            environment is made. The presets of our robots ("default", "wide", "random" and "extreme") exist too, unless
            given here. Disturbances in them apply where ``Disturb`` or ``DisturbVector`` is used, as in training.
        defaults: Options that replace an algorithm's own defaults: algorithm -> name -> value.
        camera: A camera of the model for rendering; None for the one called "track", or a view of everything.
        state_from: Observations ``(n, size)`` -> the positions ``(n, nq)`` and velocities ``(n, nv)`` that they
            determine, with nan for the others, to fit parameters to logs. None if observations begin with positions
            and velocities, or if logs have them.
        actuator_history: Simulation steps for which each actuator remembers controls, the longest ``actuator_delay``
            (MuJoCo 3.5 or later); None for the model's own ``nsample``.

    Raises:
        RobotError: There is no such file, a function is not callable or takes other arguments, or the id is malformed
            or belongs to another environment or another file's robot.
        ConfigError: A number is impossible.
        RandomizationError: A preset is impossible.
    """
    with located(f"Robot {id!r}"):
        functions = {"observe(state)": observe, "reward(before, after)": reward, "reset(state, rng)": reset}
        optional = {
            "terminated(state)": terminated,
            "update(state, rng)": update,
            "action(state)": action,
            "critic(state)": critic,
            "state_from(observations)": state_from,
        }
        for form, function in (functions | {form: f for form, f in optional.items() if f is not None}).items():
            _check_function(form, function)
        source = _model_source(model, observe)
        shapes = {name: (shape,) if isinstance(shape, int) else tuple(shape) for name, shape in (memory or {}).items()}
        own = read_presets({} if presets is None else presets)
        robot = Robot(
            id=id,
            model=source,
            observe=observe,
            reward=reward,
            terminated=terminated,
            state_from=state_from,
            reset=reset,
            update=update,
            action=action,
            critic=critic,
            memory=shapes,
            parameters=tuple(parameters),
            action_size=None if action_size is None else check_whole_number("action_size", action_size),
            substep_action=substep_action,
            mirror=mirror,
            steer=_check_steering(steer or {}, shapes),
            keyframe=keyframe,
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
    chosen = ROBOT_DEFAULTS | dict(defaults or {})
    family = EnvFamily(
        name=id,
        ids=(env,),
        space=f"{_MODULE}:space_of",
        presets={**robot_presets("geom_friction"), **own},
        camera="gym_dr.envs.mujoco.camera:follow",
        defaults={name: ROBOT_DEFAULTS.get(name, {}) | dict(more) for name, more in chosen.items()},
        interface=f"{_MODULE}:interface",
        origin=origin_of(observe),
    )
    with located(f"Robot {id!r}"), all_or_nothing(ROBOTS):
        ROBOTS.remove(id)
        ROBOTS.add(id, robot, observe.__module__)
        register_own(family, RobotError)  # last, since it undoes only its own changes


def _check_function(form: str, function: Any) -> None:
    """Refuses a function that cannot be called like a form such as "reset(state, rng)"."""
    name = form.partition("(")[0]
    if not callable(function):
        raise RobotError(f"expected {name} to be a function, got {function!r}.")
    if not takes_arguments(function, len(form.split(","))):
        raise RobotError(f"expected {form}, got {name}{inspect.signature(function)}.")


def _check_steering(steer: Mapping[str, Bounds], memory: Mapping[str, tuple[int, ...]]) -> Mapping[str, Bounds]:
    """Refuses to steer what is not in memory, or bounds of another shape."""
    for name, bounds in steer.items():
        if name not in memory or {np.shape(bound) for bound in bounds} != {memory[name]} or len(bounds) != 2:
            expected = f"lowest and highest values of {', '.join(memory) or 'a memory'}"
            raise RobotError(f"steer: expected {expected}, of its shape, got {name!r}: {shortened(bounds)}.")
    return steer


def _model_source(model: Any, observe: Callable[..., Any]) -> Any:
    """A model as its full path, XML, an ``MjSpec`` or a function.

    Raises:
        RobotError: There is no such file.
    """
    if callable(model) or hasattr(model, "compile") or (isinstance(model, str) and model.lstrip().startswith("<")):
        return model
    file = Path(origin_of(observe)[1]).resolve()
    path = (file.parent if file.is_file() else Path.cwd()) / as_path(model)
    if not isfile(path):  # unlike Path.is_file, accepts text that is too long for a path
        raise RobotError(f"expected a model file, got {shortened(str(path))}, which does not exist.")
    return path
