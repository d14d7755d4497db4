"""Facts about Gymnasium's models that need MuJoCo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco  # type: ignore[import-untyped]

# warnings after which MuJoCo resets a simulation; it continues after others (a full contact buffer, ...)
BAD_STATE = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC")]


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Keeps MuJoCo's messages about Gymnasium's models (deprecations) out of MUJOCO_LOG.TXT."""
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(handler)


def pushed_dofs(model: Any) -> list[int]:
    """The degrees of freedom that a push moves: x and y of a model that floats freely, otherwise the first one."""
    return [0, 1] if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else [0]
