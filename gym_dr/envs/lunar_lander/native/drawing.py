"""Pictures of native landers: Gymnasium's own drawing, of a Box2D environment that is put into their state."""

from __future__ import annotations

from typing import Any

from gym_dr.envs.lunar_lander.env import LunarLanderDR
from gym_dr.envs.lunar_lander.native.memory import Environments
from gym_dr.envs.lunar_lander.native.state import to_box2d


class Canvas:
    """One Box2D environment that is only drawn, never stepped."""

    def __init__(self) -> None:
        self._env = LunarLanderDR(randomization="none", render_mode="rgb_array")
        self._env.reset(seed=0)

    def draw(self, memory: Environments, index: int) -> Any:
        """An array ``(400, 600, 3)`` uint8 of sub-environment ``index``."""
        to_box2d(memory, index, self._env)
        return self._env.render()  # type: ignore[no-untyped-call]  # Gymnasium's

    def close(self) -> None:
        """Frees the drawing surface."""
        self._env.close()  # type: ignore[no-untyped-call]  # Gymnasium's
