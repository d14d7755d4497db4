"""MuJoCo's viewer, which shows a robot in real time and tells which keys are pressed."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gym_dr.errors import ConfigError

_KEYS = "up down, 7 9, left right, space: steer\n- =: first value"


@contextlib.contextmanager
def open_viewer(env: Any, press: Callable[[int], None]) -> Iterator[Callable[[Sequence[str]], bool]]:
    """Opens a window, and yields a function that shows the present state in real time.

    The function takes lines of text, and returns whether the window is still open.

    Args:
        env: A single environment without wrappers.
        press: Called with GLFW's code of each key, in a thread of the window.

    Raises:
        ConfigError: The window cannot be opened.
    """
    import mujoco.viewer  # type: ignore[import-untyped]  # heavy; asks for GLFW

    if not mujoco.viewer.glfw.init():  # the viewer would wait forever
        raise ConfigError("The display cannot be opened; write a video with `video=FILE.gif` instead.")
    viewer = mujoco.viewer.launch_passive(
        env.model, env.data, key_callback=press, show_left_ui=False, show_right_ui=False
    )
    if env.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:  # it moves about
        viewer.cam.type, viewer.cam.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, env.model.jnt_bodyid[0]
    due = itertools.count(time.perf_counter(), env.dt)

    def show(lines: Sequence[str]) -> bool:
        if hasattr(viewer, "set_texts"):  # since MuJoCo 3.3.1
            viewer.set_texts((None, None, "\n".join([_KEYS, *lines]), None))
        viewer.sync()
        time.sleep(max(0.0, next(due) - time.perf_counter()))
        return bool(viewer.is_running())

    with viewer:
        yield show
