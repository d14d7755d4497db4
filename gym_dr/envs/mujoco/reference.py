"""Gymnasium's own environments, and facts about models that need MuJoCo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from gym_dr.envs.family import ENVIRONMENTS, reference_class
from gym_dr.envs.mujoco.space import ModelSpace, space_of_env

# warnings after which MuJoCo resets a simulation; after others (a full contact buffer, ...) it continues
BAD_STATE = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC")]

# MuJoCo logs a warning to MUJOCO_LOG.TXT if its counter is 0; a counter that starts at 1 counts quietly
QUIET = 1


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Keeps MuJoCo's messages about models (deprecations) out of MUJOCO_LOG.TXT."""
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(handler)


def make_reference(env_id: str, **kwargs: Any) -> Any:
    """One of Gymnasium's environments, such as "Hopper-v5", without wrappers."""
    with quiet_compiler():
        return reference_class(env_id)(**kwargs)


def space_of(env_id: str) -> ModelSpace:
    """The parameters of an id, from Gymnasium's environment, which is made."""
    return space_of_env(make_reference(ENVIRONMENTS.get(env_id).reference))


def base_of(model: Any) -> tuple[int, list[int]]:
    """What pushes move: the floating base of a robot; of a model without a free joint, its first joint.

    If there are several free joints, the base is the heaviest with actuators on its bodies, or the first if none has.

    Returns:
        The body, and its degrees of freedom: x, y, z and three rotations of a floating base, one of another joint, none
        of a model without joints.
    """
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    joints = free if len(free) else np.arange(model.njnt)
    if len(free) > 1:
        data = mujoco.MjData(model)
        for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_tendon, mujoco.mj_transmission):
            stage(model, data)
        driven = model.body_rootid[model.dof_bodyid[data.moment_colind[: data.moment_rownnz.sum()]]]
        bodies = model.jnt_bodyid[free]
        joints = joints[np.argmax(model.body_subtreemass[bodies] * np.isin(bodies, driven)) :]
    first = model.jnt_dofadr[joints[:1]].tolist()
    return int(model.jnt_bodyid[joints[:1]].sum()), [k + axis for k in first for axis in range(6 if len(free) else 1)]
