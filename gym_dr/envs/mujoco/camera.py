"""The camera for MuJoCo's pictures, and a way to draw them without a display."""

from __future__ import annotations

import os
import sys
from ctypes.util import find_library
from typing import Any

import gymnasium as gym

from gym_dr.errors import ConfigError

_DISPLAYS = frozenset({"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"})  # variables that say how to draw


def draw(env: Any) -> Any:
    """One frame by Gymnasium's renderer.

    Raises:
        ConfigError: There is no display and no library to do without.
    """
    find_renderer()
    try:
        return env.render()
    except gym.error.ResetNeeded:
        raise
    except Exception as error:  # without a display, graphics libraries raise all kinds of errors
        raise ConfigError(f"{error}: MuJoCo needs a display, or MUJOCO_GL=egl and libEGL.") from error


def find_renderer() -> None:
    """Without a display, sets MUJOCO_GL to EGL or, where that is not installed, OSMesa, unless something is set.

    It sets nothing without such a library: with MUJOCO_GL=egl, MuJoCo could not even be imported.
    """
    if sys.platform == "linux" and not _DISPLAYS & os.environ.keys():
        for library in ("EGL", "OSMesa"):
            # the other variable is set once something has been drawn
            if os.environ.get("PYOPENGL_PLATFORM", library.lower()) == library.lower() and find_library(library):
                os.environ["MUJOCO_GL"] = library.lower()
                break


def follow(env: gym.Env[Any, Any]) -> None:
    """Renders a robot from its model's camera "track", if there is one; Gymnasium's default view lets it walk away.

    See also ``find_renderer``, since a robot of Gymnasium is not drawn by ``draw``.
    """
    inner: Any = env.unwrapped
    if not hasattr(inner, "mujoco_renderer"):
        return
    find_renderer()
    cameras = [inner.model.camera(number).name for number in range(inner.model.ncam)]
    if inner.camera_name is None and "track" in cameras:  # the user has chosen none
        inner.mujoco_renderer.camera_id = cameras.index("track")
