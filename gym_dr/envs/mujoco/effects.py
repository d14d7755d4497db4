"""What the parameters of a model need to have an effect: a direction to move in, a contact, a medium.

This follows from the model alone. What depends on the task does not: nothing may ever touch a body that could move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.mujoco.fields import XYZ
from gym_dr.randomization.conditions import Condition, Exceeds, Lacking, NotZero

_POSES = 3  # random ones, in which motions are looked for
_STILL = 1e-9  # motions below this, m or rad per unit of joint velocity, are rounding errors
_MEDIUM = NotZero(("density", "viscosity"))
_MOVES = Lacking("a joint that moves this body's center of mass")
_TURNS = Lacking("a joint that turns this body about another axis")
_DIRECTION = Lacking("a joint that moves something in this direction")
_CONTACT = Lacking("another geom that this one can touch")
_FRICTION = {  # component -> dimensions of a contact in which it acts, what a geom lacks without them
    "slide": (3, Lacking("a contact with friction (condim 3, 4 or 6)")),
    "spin": (4, Lacking("a contact with torsional friction (condim 4 or 6)")),
    "roll": (6, Lacking("a contact with rolling friction (condim 6)")),
}

Numbers = dict[str, list[Condition | None]]  # field -> the condition of each of its numbers, flattened


def number_conditions(model: Any, geoms: list[str]) -> Numbers:
    """The conditions of the numbers of a model's fields; those of a field that is missing have none.

    Args:
        model: An ``MjModel`` with its nominal values.
        geoms: Names of its geoms.
    """
    moving, turning, shifting = _motions(model)  # (bodies, 3) each
    anything = moving.any(axis=0)
    directions: list[Condition | None] = [None if moved else _DIRECTION for moved in anything]
    return {
        "gravity": directions,
        "wind": [found or _MEDIUM for found in directions],
        "body_mass": [None if moved else _MOVES for moved in moving.any(axis=1)],
        "body_inertia": [
            None if turned else _MEDIUM if moved else _MOVES  # drag depends on moments of inertia
            for turns, moved in zip(turning, moving.any(axis=1), strict=True)
            for turned in turns
        ],
        "body_ipos": [None if shifted else _TURNS for shifted in shifting.flat],
        "geom_friction": [found for i in range(model.ngeom) for found in _friction(model, i, geoms)],
    }


def factor_condition(conditions: Sequence[Condition | None], nominal: Array, names: Sequence[str]) -> Condition | None:
    """The condition of a factor.

    Args:
        conditions: Of the numbers that it multiplies.
        nominal: Those numbers.
        names: Their names.
    """
    free = [k for k, condition in enumerate(conditions) if not isinstance(condition, Lacking)]
    if not free:
        return conditions[0]
    if nominal[free].any():
        return None if None in conditions or not isinstance(conditions[free[0]], NotZero) else conditions[free[0]]
    called = f"a {names[free[0]].partition(':')[0]}" if len(free) > len(XYZ) else ""
    return NotZero(tuple(names[k] for k in free), called)


def _motions(model: Any) -> Mask:
    """In which directions bodies can move, shape ``(3, bodies, 3)``.

    First whether the center of mass moves along x, y and z, then whether the body turns about each of its principal
    axes, then whether a shift of its center of mass along each axis of its frame changes how that moves.
    """
    import mujoco  # type: ignore[import-untyped]

    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    found = np.zeros((3, model.nbody, 3), np.bool_)
    along, about = np.zeros((2, 3, model.nv))
    for _ in range(_POSES):
        mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for body in range(1, model.nbody):
            mujoco.mj_jacBodyCom(model, data, along, about, body)
            turned = data.ximat[body].reshape(3, 3).T @ about
            # shape (3 axes, 3, nv): the cross products of rotations with the axes of the body's frame
            shifted = np.cross(about.T[None], data.xmat[body].reshape(3, 3).T[:, None])
            for kind, motion in enumerate((along, turned, shifted.reshape(3, -1))):
                found[kind, body] |= (np.abs(motion) > _STILL).any(axis=1)
    return found


def _friction(model: Any, geom: int, geoms: list[str]) -> list[Condition | None]:
    """The conditions of the friction components of a geom: a contact takes the larger value of its two geoms."""
    partners = _partners(model, geom)
    if not len(partners):
        return [_CONTACT] * len(_FRICTION)
    priority, own = model.geom_priority[partners], model.geom_priority[geom]
    wider = np.maximum(model.geom_condim[partners], model.geom_condim[geom])
    dimensions = np.where(priority < own, model.geom_condim[geom], wider)
    found: list[Condition | None] = []
    for axis, (needed, lacking) in _FRICTION.items():
        acts = (dimensions >= needed) & (priority <= own)  # of two geoms, the one with the higher priority counts
        alone = bool((acts & (priority < own)).any())
        others = tuple(f"geom_friction:{geoms[i]}.{axis}" for i in partners[acts])
        found.append(None if alone else Exceeds(others) if others else lacking)
    return found


def _partners(model: Any, geom: int) -> Indices:
    """The geoms that a geom can touch, by MuJoCo's rules (pairs in the XML have friction of their own)."""
    bodies, weld = model.geom_bodyid, model.body_weldid
    own, others = weld[bodies[geom]], weld[bodies]
    touches = (model.geom_contype[geom] & model.geom_conaffinity) | (model.geom_contype & model.geom_conaffinity[geom])
    parents = weld[model.body_parentid[others]], weld[model.body_parentid[own]]
    family = ((parents[0] == own) & (own != 0)) | ((others == parents[1]) & (others != 0))
    signatures = (bodies[geom] << 16) + bodies, (bodies << 16) + bodies[geom]
    excluded = np.isin(signatures[0], model.exclude_signature) | np.isin(signatures[1], model.exclude_signature)
    chosen: Indices = np.flatnonzero((touches != 0) & (own != others) & ~family & ~excluded)
    return chosen
