"""The common part of the single environments on Box2D."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gym_dr.envs.vector_arguments import check_finite
from gym_dr.randomization.episode import BuiltEnv

with warnings.catch_warnings():  # with -W error, Box2D's warnings about itself would end the interpreter
    warnings.simplefilter("ignore")
    import Box2D

Observation = npt.NDArray[np.float32]


class Box2DEnv(BuiltEnv):
    """A mixin that precedes Gymnasium's class."""

    push_size = 2  # velocities in a push
    listener_class: ClassVar[Any]  # Gymnasium's contact listener
    bodies: Any  # hull and legs, made by ``_build_bodies``
    prev_shaping: Any  # Gymnasium initializes it to None

    def reset(
        self: Any, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode with new parameters in a new world.

        Args:
            seed: Seeds what the environment draws, such as its terrain, and restarts the sequence of draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode.

        Raises:
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible value in ``options``; nothing has changed.
        """
        self._begin_episode(seed, options)
        self._destroy()
        self.world = Box2D.b2World(gravity=(0, self._values["gravity"]))
        self._listener = self.world.contactListener = self.listener_class(self)  # the world keeps no reference
        self.game_over = False
        self.prev_shaping = None
        self._build_bodies()
        if self.render_mode == "human":
            self.render()
        observation, _, _, _, info = self.step(np.zeros(self.action_space.shape, self.action_space.dtype))
        return observation, info

    def _growth(self, potential: float) -> float:
        """How much the potential that shapes rewards has grown since the last step; 0 in the first."""
        before, self.prev_shaping = self.prev_shaping, potential
        return 0.0 if before is None else potential - before

    def _seen(
        self: Any, state: Sequence[float], reward: float, terminated: bool
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """What ``step`` returns."""
        if self.render_mode == "human":
            self.render()
        observation, info = self._visible(np.array(state, np.float32), {})
        return observation, reward, terminated, False, info

    def push(self, velocity: npt.NDArray[np.float64]) -> None:
        """Changes the velocity of hull and legs instantly, like an impact.

        Args:
            velocity: Added to their velocities, m/s, shape ``(2,)``.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The velocity has the wrong shape or type, or is not finite; nothing has changed.
        """
        self._check_begun("push")
        x, y = check_finite(velocity, (self.push_size,), "velocities").tolist()
        for body in self.bodies:
            before = body.linearVelocity
            body.linearVelocity = before.x + x, before.y + y
