"""A single environment on compiled physics, also for sync and async, where Box2D is not installed."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle

from gym_dr.arrays import Array
from gym_dr.compiled import pcg64
from gym_dr.envs.box2d.backend import Box2DBackend
from gym_dr.errors import ConfigError, EnvStateError, InvalidActionError
from gym_dr.randomization.episode import RandomizedEnv

_ONLY = np.zeros(1, np.int64)  # index of the only environment


class CompiledEnv(RandomizedEnv, gym.Env[Any, Any], EzPickle):
    """A single environment on a backend, which a subclass makes."""

    push_size = 2  # size of a push
    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 50}
    backend_class: ClassVar[type[Box2DBackend]]

    def __init__(
        self,
        *,
        randomization: Any = "default",
        render_mode: str | None = None,
        context: str = "info",
        context_params: Any = None,
        **kwargs: Any,
    ) -> None:
        """Builds the environment. The first use on a machine compiles its physics, with a message on stderr.

        Args:
            randomization: See ``NativeVectorEnv``, as for ``context`` and ``context_params``.
            render_mode: None, "human" or "rgb_array".
            context: Who may see the draw.
            context_params: Which parameters the observation shows.
            **kwargs: The family's own keywords, those of Gymnasium's environment.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
            ConfigError: ``context_params`` without ``context="observation"``, or an unknown render mode.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"Expected render_mode None, human or rgb_array, got {render_mode!r}.")
        self._backend = self.backend_class(**kwargs)
        self._randomize(self._backend.space, randomization, context, context_params)
        self._backend.allocate(1, 1)
        self.render_mode = render_mode
        self.action_space = self._backend.action_space
        self.observation_space = self.context.extend_space(self._backend.observation_space)
        self._begun = False
        self._screen: Any = None
        made_with = {"randomization": randomization, "render_mode": render_mode, **kwargs}
        EzPickle.__init__(self, **made_with, context=context, context_params=context_params)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters.

        Args:
            seed: Seeds the environment's random numbers, and restarts the sequence of draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode.

        Raises:
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible value in ``options``; nothing has changed.
        """
        self._begin_episode(seed, options)
        self._backend.memory.params[0] = list(self.episode.current.values())
        self._take_stream()
        self._backend.reset(_ONLY, self.episode.table)
        self._give_stream()
        self._begun = True
        if self.render_mode == "human":
            self.render()
        return self._visible(self._backend.observations[0].copy(), {})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advances the physics by 1/50 s.

        Args:
            action: As in Gymnasium.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The action is not in the action space.
        """
        if isinstance(self.action_space, gym.spaces.Discrete) and not self.action_space.contains(action):
            raise InvalidActionError(f"Expected an action from {self.action_space}, got {action!r}.")
        try:
            actions = self._backend.check_actions(np.asarray(action)[None])
        except InvalidActionError:
            raise InvalidActionError(f"Expected an action from {self.action_space}, got {action!r}.") from None
        self._check_begun("step")
        self._take_stream()
        outcome = self._backend.step(actions, None, self.episode.table)
        self._give_stream()
        if self.render_mode == "human":
            self.render()
        observation, info = self._visible(self._backend.observations[0].copy(), {})
        return observation, float(outcome.rewards[0]), bool(outcome.terminations[0]), False, info

    def push(self, velocity: Array) -> None:
        """Changes the velocity of all bodies instantly, like an impact.

        Args:
            velocity: Added to their velocities, m/s, shape ``(2,)``.

        Raises:
            EnvStateError: There was no reset yet.
        """
        self._check_begun("push")
        self._backend.push(np.asarray(velocity)[None], _ONLY)

    def render(self) -> Any:
        """An array ``(400, 600, 3)`` uint8; None in mode "human", which shows a window, and without a mode."""
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        self._check_begun("render")
        picture = self._backend.render(0)
        if self.render_mode == "rgb_array":
            return picture
        self._show(picture)
        return None

    def close(self) -> None:
        """Closes the window, if there is one."""
        self._backend.close()
        if self._screen is not None:
            import pygame

            pygame.display.quit()
            self._screen = None

    def _show(self, picture: Any) -> None:
        import pygame

        if self._screen is None:
            pygame.display.init()
            self._screen = pygame.display.set_mode((picture.shape[1], picture.shape[0]))
            self._clock = pygame.time.Clock()
        pygame.surfarray.blit_array(self._screen, picture.transpose(1, 0, 2))
        pygame.event.pump()
        self._clock.tick(self.metadata["render_fps"])
        pygame.display.flip()

    def _take_stream(self) -> None:
        """Copies the state of the environment's generator, which a user may have set, to the backend."""
        self._backend.memory.streams[0] = pcg64.pack(self.np_random.bit_generator.state)

    def _give_stream(self) -> None:
        """Copies the state of the backend's generator to the environment."""
        self.np_random.bit_generator.state = cast(Any, pcg64.unpack(self._backend.memory.streams[0]))

    def _check_begun(self, call: str) -> None:
        if not self._begun:
            raise EnvStateError(f"Expected reset() before {call}(): there is no episode yet.")
