"""The meaning of the observations and actions of Gymnasium's MuJoCo environments, from their models."""

from __future__ import annotations

import functools
from typing import Any

import mujoco  # type: ignore[import-untyped]

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.envs.mujoco.reference import make_reference

_JOINT = mujoco.mjtJoint
_AXES = ("x", "y", "z")
_CLIPPED = "clipped to [-10, 10]"


@functools.cache  # each sub-environment may ask, and making an environment takes a tenth of a second
def interface(env_id: str) -> Interface:
    """The meaning of the observations and actions of an id."""
    reference = ENVIRONMENTS.get(env_id).reference
    env = make_reference(reference)
    observed = _OBSERVED[reference.removesuffix("-v5")](env)
    return Interface(observation=tuple(observed), actions=tuple(_actuators(env.model)))


# --- observations ---


def positions(model: Any) -> list[Quantity]:
    """The meaning of each number of ``qpos``."""
    found = []
    for joint in map(model.joint, range(model.njnt)):
        if joint.type[0] == _JOINT.mjJNT_FREE:
            body = model.body(int(joint.bodyid[0])).name
            found += [Quantity(f"{axis} position of {body}", "m", name=f"{body}.{axis}") for axis in _AXES]
            parts = [(f"orientation of {body}, quaternion {part}", f"{body}.q{part}") for part in ("w", *_AXES)]
            found += [Quantity(meaning, name=name) for meaning, name in parts]
        else:
            what, unit = ("position", "m") if joint.type[0] == _JOINT.mjJNT_SLIDE else ("angle", "rad")
            found.append(Quantity(f"{what} of joint {joint.name}", unit, name=joint.name))
    return found


def velocities(model: Any, note: str = "") -> list[Quantity]:
    """The meaning of each number of ``qvel``."""
    found, end = [], f", {note}" if note else ""
    for joint in map(model.joint, range(model.njnt)):
        if joint.type[0] == _JOINT.mjJNT_FREE:
            body = model.body(int(joint.bodyid[0])).name
            found += [Quantity(f"{k} velocity of {body}{end}", "m/s", name=f"{body}.{k}_dot") for k in _AXES]
            turns = [(f"angular velocity of {body} about its {k} axis{end}", f"{body}.angle_{k}_dot") for k in _AXES]
            found += [Quantity(meaning, "rad/s", name=name) for meaning, name in turns]
        else:
            slides = joint.type[0] == _JOINT.mjJNT_SLIDE
            what, unit = ("velocity", "m/s") if slides else ("angular velocity", "rad/s")
            found.append(Quantity(f"{what} of joint {joint.name}{end}", unit, name=f"{joint.name}_dot"))
    return found


def _state(env: Any, *, hidden: int = 0, note: str = "") -> list[Quantity]:
    """Positions, without the first ones unless the user wants them, and velocities."""
    skipped = hidden if getattr(env, "_exclude_current_positions_from_observation", False) else 0
    return [*positions(env.model)[skipped:], *velocities(env.model, note)]


def _bodies(env: Any, each: int, meaning: str, name: str) -> Quantity:
    """``each`` numbers of every body but the world, under MuJoCo's name for the field."""
    names = ", ".join(env.model.body(k).name or f"body {k}" for k in range(1, env.model.nbody))
    return Quantity(f"{meaning}, of {names}", "", each * (env.model.nbody - 1), name)


def _double_pendulum(env: Any) -> list[Quantity]:
    slide, *hinges = (env.model.joint(k).name for k in range(env.model.njnt))
    return [
        Quantity(f"position of joint {slide}", "m", name=slide),
        *(Quantity(f"sine of the angle of joint {name}", name=f"sin_{name}") for name in hinges),
        *(Quantity(f"cosine of the angle of joint {name}", name=f"cos_{name}") for name in hinges),
        *velocities(env.model, _CLIPPED),
        Quantity(f"force of constraints on joint {slide}, {_CLIPPED}", "N", name=f"{slide}_force"),
    ]


def _ant(env: Any) -> list[Quantity]:
    low, high = env._contact_force_range
    forces = f"torque x, y, z (N m) and force x, y, z (N) of contacts, clipped to [{low:g}, {high:g}]"
    return [*_state(env, hidden=2), _bodies(env, 6, forces, "cfrc_ext")]


def _humanoid(env: Any) -> list[Quantity]:
    inertia = "moments of inertia (6, kg m^2), mass times offset (3, kg m) and mass (kg)"
    speeds = "angular velocity x, y, z (rad/s) and velocity x, y, z (m/s)"
    joints = [env.model.joint(k) for k in range(1, env.model.njnt)]
    return [
        *_state(env, hidden=2),
        _bodies(env, 10, inertia, "cinert"),
        _bodies(env, 6, speeds, "cvel"),
        *(Quantity(f"torque of the motor of joint {j.name}", "N m", name=f"{j.name}_torque") for j in joints),
        _bodies(env, 6, "torque x, y, z (N m) and force x, y, z (N) of contacts", "cfrc_ext"),
    ]


def _reacher(env: Any) -> list[Quantity]:
    arm = [env.model.joint(k).name for k in range(2)]
    return [
        *(Quantity(f"cosine of the angle of joint {name}", name=f"cos_{name}") for name in arm),
        *(Quantity(f"sine of the angle of joint {name}", name=f"sin_{name}") for name in arm),
        *(Quantity(f"{axis} position of the target", "m", name=f"target.{axis}") for axis in _AXES[:2]),
        *velocities(env.model)[:2],
        *(Quantity(f"{axis} distance from the target to the fingertip", "m", name=f"to_tip.{axis}") for axis in "xy"),
    ]


def _pusher(env: Any) -> list[Quantity]:
    places = {"the tip of the arm": "tip", "the object": "object", "the goal": "goal"}
    return [
        *positions(env.model)[:7],
        *velocities(env.model)[:7],
        *(Quantity(f"{k} position of {place}", "m", name=f"{n}.{k}") for place, n in places.items() for k in _AXES),
    ]


_OBSERVED: dict[str, Any] = {
    "InvertedPendulum": _state,
    "InvertedDoublePendulum": _double_pendulum,
    "Hopper": lambda env: _state(env, hidden=1, note=_CLIPPED),
    "Walker2d": lambda env: _state(env, hidden=1, note=_CLIPPED),
    "HalfCheetah": lambda env: _state(env, hidden=1),
    "Swimmer": lambda env: _state(env, hidden=2),
    "Ant": _ant,
    "Humanoid": _humanoid,
    "HumanoidStandup": _humanoid,
    "Reacher": _reacher,
    "Pusher": _pusher,
}


# --- actions ---


def _actuators(model: Any) -> list[Quantity]:
    found = []
    for k in range(model.nu):
        joint, gear = model.joint(int(model.actuator_trnid[k, 0])), model.actuator_gear[k, 0]
        push, unit = ("force", "N") if joint.type[0] == _JOINT.mjJNT_SLIDE else ("torque", "N m")
        found.append(Quantity(f"{push} on joint {joint.name}", unit if gear == 1 else f"{gear:g} {unit}"))
    return found
