"""The camera for MuJoCo's pictures."""

from __future__ import annotations

import os
import sys
from typing import Any

import gymnasium as gym


def follow(env: gym.Env[Any, Any]) -> None:
    """Renders a robot from its model's camera "track", if there is one; Gymnasium's default view lets it walk away.

    Without a display it renders through EGL, unless something else is set. Call it after the environment is made: with
    MUJOCO_GL=egl and a missing library MuJoCo cannot even be imported.
    """
    inner: Any = env.unwrapped
    if not hasattr(inner, "mujoco_renderer"):
        return
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        os.environ.setdefault("MUJOCO_GL", "egl")
    if inner.camera_name is not None:  # the user has chosen one
        return
    for number in range(inner.model.ncam):
        if inner.model.camera(number).name == "track":
            inner.mujoco_renderer.camera_id = number
