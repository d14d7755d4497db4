"""Our model of a robot against a stock model of it, at random configurations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np
from scipy.linalg import eigh

from gym_dr.arrays import Array

HALF_TURN = np.pi  # rad; configurations of a joint without limits
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A point on a robot."""

    kind: str  # "body", "site" or "geom"
    name: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m, in its own frame

    def at(self, data: Any) -> Array:
        frame = getattr(data, self.kind)(self.name)
        return np.asarray(frame.xpos + frame.xmat.reshape(3, 3) @ self.offset)


@dataclass(frozen=True, kw_only=True)
class Differences:
    """How far our model is from the stock one: the largest difference over all configurations."""

    inertia: float  # of the kinetic energy of any velocity, as a part of it
    places: dict[str, float]  # m
    ranges: dict[str, float]  # rad or m, of the limits of each joint


def differences(
    ours: Any,
    stock: Any,
    *,
    joints: Mapping[str, str] | None = None,
    places: Mapping[str, tuple[Place, Place]],
    configurations: int = 100,
    armature: bool = True,
) -> Differences:
    """Compares two compiled models.

    Args:
        ours: Our ``MjModel``.
        stock: The stock one, with the same joints and no others (see ``only_joints``).
        joints: Name of each joint of ours -> its name in the stock model; None if they are the same.
        places: Name -> the same point in ours and in the stock model.
        configurations: How many are drawn, from the limits of our joints and all directions of a free one.
        armature: Whether the inertia counts that of the motors' rotors, which some models leave out.

    Raises:
        ValueError: A joint is in one model alone.
    """
    pairs = [(joint.name, (joints or {}).get(joint.name, joint.name)) for joint in map(ours.joint, range(ours.njnt))]
    unmatched = {stock.joint(i).name for i in range(stock.njnt)} ^ {name for _, name in pairs}
    if unmatched:
        raise ValueError(f"Expected the same joints in both models, got {sorted(unmatched)} in one of them.")
    degrees = np.concatenate([stock.joint(name).dofadr[0] + np.arange(_velocities(stock, name)) for _, name in pairs])
    data, other = mujoco.MjData(ours), mujoco.MjData(stock)
    rng = np.random.default_rng(0)
    inertia, apart = 0.0, dict.fromkeys(places, 0.0)
    for _ in range(configurations):
        for joint, name in pairs:
            data.joint(joint).qpos = other.joint(name).qpos = _drawn(rng, ours.joint(joint))
        for model, current in ((ours, data), (stock, other)):
            mujoco.mj_forward(model, current)
        our, their = _inertia(ours, data, armature), _inertia(stock, other, armature)[np.ix_(degrees, degrees)]
        inertia = max(inertia, np.abs(eigh(our, their, eigvals_only=True) - 1).max())
        for name, (place, same) in places.items():
            apart[name] = max(apart[name], float(np.linalg.norm(place.at(data) - same.at(other))))
    limited = [(a, b) for a, b in pairs if ours.joint(a).limited[0] and stock.joint(b).limited[0]]
    ranges = {a: float(np.abs(ours.joint(a).range - stock.joint(b).range).max()) for a, b in limited}
    return Differences(inertia=inertia, places=apart, ranges=ranges)


def only_joints(spec: Any, names: Collection[str]) -> Any:
    """Fixes all other joints of an ``MjSpec`` and removes its keyframes and what drives or measures."""
    for part in (*spec.actuators, *spec.sensors, *spec.equalities, *spec.tendons, *spec.keys):
        spec.delete(part)
    for joint in list(spec.joints):
        if joint.name not in names and joint.type != mujoco.mjtJoint.mjJNT_FREE:
            spec.delete(joint)
    return spec


def _velocities(model: Any, joint: str) -> int:
    return {FREE: 6, BALL: 3}.get(int(model.joint(joint).type[0]), 1)


def _drawn(rng: np.random.Generator, joint: Any) -> Array:
    """A configuration of one joint."""
    if joint.type[0] in (FREE, BALL):
        turn = rng.normal(size=4)
        turn = turn / np.linalg.norm(turn)
        return np.asarray(turn if joint.type[0] == BALL else np.concatenate([rng.uniform(-1, 1, 3), turn]))
    low, high = joint.range if joint.limited[0] else (-HALF_TURN, HALF_TURN)
    return rng.uniform(float(low), float(high), size=1)


def _inertia(model: Any, data: Any, armature: bool) -> Array:
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    return full if armature else full - np.diag(model.dof_armature)
