"""Pictures of robots, with and without a display."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes.util import find_library
from typing import Any

import gymnasium as gym
import pytest

import gym_dr  # noqa: F401  registers the environments
from gym_dr.errors import ConfigError

HOPPER = "gym_dr/HopperDR-v5"
DRAWS = f"""
import gymnasium as gym, gym_dr, os
env, envs = gym.make("{HOPPER}", render_mode="rgb_array"), gym.make_vec("{HOPPER}", 1, render_mode="rgb_array")
env.reset(seed=1), envs.reset(seed=1)
assert (env.render() == envs.render()[0]).all() and env.render().any()
print(os.environ["MUJOCO_GL"])
"""


@pytest.mark.skipif(sys.platform != "linux" or find_library("EGL") is None, reason="EGL is not installed")
def test_robots_are_drawn_without_a_display_and_without_a_setting() -> None:
    silent = {"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"}
    env = {name: value for name, value in os.environ.items() if name not in silent}
    assert subprocess.run([sys.executable, "-c", DRAWS], env=env, check=True, capture_output=True).stdout == b"egl\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of Gymnasium's half-made viewer
def test_what_the_user_has_set_is_kept_and_one_error_tells_that_it_does_not_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = [gym.make(HOPPER, render_mode="rgb_array"), gym.make_vec(HOPPER, 1, render_mode="rgb_array")]
    monkeypatch.setenv("MUJOCO_GL", "paper")
    for env in made:
        env.reset(seed=1)
        with pytest.raises(ConfigError, match="paper"):
            env.render()
    assert os.environ["MUJOCO_GL"] == "paper"


def test_without_a_display_and_egl_robots_are_drawn_in_software_where_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = []
    env: Any = gym.make(HOPPER, render_mode="rgb_array", disable_env_checker=True)
    env.reset(seed=1)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(env.unwrapped.mujoco_renderer, "render", lambda mode: drawn.append(os.environ.get("MUJOCO_GL")))
    for installed in ({"EGL", "OSMesa"}, {"OSMesa"}, set()):
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("gym_dr.envs.mujoco.camera.find_library", lambda name, found=installed: name in found)
        env.render()
    assert drawn == ["egl", "osmesa", None]
