"""What is asked of MuJoCo about Gymnasium's models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco  # type: ignore[import-untyped]

# what MuJoCo resets a simulation for; the others (a full contact buffer, ...) leave it running
BAD_STATE = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC")]


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Keeps what MuJoCo says while it compiles Gymnasium's models (deprecations) out of MUJOCO_LOG.TXT."""
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(handler)


def pushed_dofs(model: Any) -> list[int]:
    """The degrees of freedom that a push moves: x and y of a model that floats freely, else the first one alone."""
    return [0, 1] if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else [0]
