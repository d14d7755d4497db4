"""Where MuJoCo's pictures are taken from."""

from __future__ import annotations

import os
import sys
from typing import Any

import gymnasium as gym


def follow(env: gym.Env[Any, Any]) -> None:
    """Draws a robot from its model's camera "track", where there is one; Gymnasium's view lets it walk away.

    Without a display, for which MuJoCo would ask, it draws through EGL; what is set stays. That comes after the
    environment is made: with a library that is missing MuJoCo cannot even be imported.
    """
    inner: Any = env.unwrapped
    if not hasattr(inner, "mujoco_renderer"):
        return
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        os.environ.setdefault("MUJOCO_GL", "egl")
    if inner.camera_name is not None:  # somebody has chosen
        return
    for number in range(inner.model.ncam):
        if inner.model.camera(number).name == "track":
            inner.mujoco_renderer.camera_id = number
