"""What the contract tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer


@pytest.fixture(autouse=True)
def frames_without_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every machine can draw MuJoCo's scenes; that it is asked to is what counts here."""

    def render(self: Any, render_mode: str | None) -> Any:
        if render_mode is None:
            raise AttributeError("Unexpected mode: None")  # as Gymnasium's
        return np.resize(self.data.qpos, (4, 5, 3)).astype(np.uint8)

    monkeypatch.setattr(MujocoRenderer, "render", render)
