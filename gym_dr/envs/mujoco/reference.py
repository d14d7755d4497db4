"""Gymnasium's own environments, and facts about models that need MuJoCo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco  # type: ignore[import-untyped]

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


def pushed_dofs(model: Any) -> list[int]:
    """The degrees of freedom that a push moves: x and y of a model that floats freely, otherwise the first one."""
    return [0, 1] if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else [0]
