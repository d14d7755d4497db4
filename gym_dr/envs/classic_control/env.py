"""Gymnasium's classic control environments with parameters that change from episode to episode.

Gymnasium's classes (MIT license) provide the spaces and the rendering. Steps are those of the native environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.utils import EzPickle

from gym_dr.arrays import Array
from gym_dr.compiled import pcg64
from gym_dr.envs.classic_control.family import STOCK, TASKS
from gym_dr.envs.classic_control.task import Task
from gym_dr.envs.equations.kernels import fields_of
from gym_dr.envs.equations.physics import Physics
from gym_dr.envs.stock import class_of, stock_class
from gym_dr.envs.vector_arguments import check_numbers
from gym_dr.errors import EnvStateError, InvalidActionError
from gym_dr.randomization.episode import RandomizedEnv

Observation = npt.NDArray[np.float32]

_ONLY = np.zeros(1, np.int64)  # index of the only environment


class ClassicControl(RandomizedEnv, gym.Env[Any, Any], EzPickle):
    """A mixin that precedes Gymnasium's class.

    Attributes:
        options: Values of the task's options.
        state: As in Gymnasium's class; may be set.
    """

    task: Task
    options: tuple[float, ...]
    state: Any

    def __init__(
        self,
        *,
        randomization: Any = "default",
        render_mode: str | None = None,
        context: str = "info",
        context_params: Any = None,
        **kwargs: Any,
    ) -> None:
        """Builds the environment.

        Args:
            randomization: See ``NativeVectorEnv``, as for ``context`` and ``context_params``.
            render_mode: None, "human" or "rgb_array".
            context: Who may see the draw.
            context_params: Which parameters the observation shows.
            **kwargs: Keywords of Gymnasium's class; one that is a parameter sets its nominal value.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
            ConfigError: ``context_params`` without ``context="observation"``.
        """
        space, self.options = self.task.with_keywords(kwargs)
        self._randomize(space, randomization, context, context_params)
        super().__init__(render_mode=render_mode, **kwargs)
        numbers = (self.action_space.shape or (0,))[0]
        observations = np.zeros((1, *(self.observation_space.shape or ())), np.float32)
        self._physics = Physics(self.task, observations, numbers=numbers)
        self._physics.params[len(space) :, 0] = self.options
        self.state = None
        self.observation_space = self.context.extend_space(self.observation_space)
        made_with = {"randomization": randomization, "render_mode": render_mode, **kwargs}
        EzPickle.__init__(self, **made_with, context=context, context_params=context_params)

    @property
    def push_size(self) -> int:
        """Size of a push."""
        return len(self.task.pushed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode with new parameters.

        Args:
            seed: Seeds the initial states, and restarts the sequence of draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode; Gymnasium's own options set the
                bounds of its initial state.

        Raises:
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible value in ``options``; nothing has changed.
        """
        bounds = self.task.bounds(options or {}, self.task.start)
        self._begin_episode(seed, options)
        bits = self.np_random.bit_generator
        self._physics.streams[0] = pcg64.pack(bits.state)
        self._physics.params[: len(self.param_space), 0] = list(self.episode.current.values())
        self._physics.begin(_ONLY, bounds)
        self._physics.exchange.fresh[0] = 0
        bits.state = cast(Any, pcg64.unpack(self._physics.streams[0]))
        self.show(self._physics.state(0), {**self.episode.current, **self._physics.values(0)})
        if self.render_mode == "human":
            self.render()
        return self._visible(self._physics.exchange.observations[0].copy(), {})

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Advances the physics by one step.

        Args:
            action: As in Gymnasium.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The action is not in the action space.
        """
        exchange = self._physics.exchange
        if isinstance(self.action_space, gym.spaces.Discrete):
            if not self.action_space.contains(action):
                raise InvalidActionError(f"Expected an action from {self.action_space}, got {action!r}.")
            exchange.choices[0] = action
        else:
            exchange.numbers[0] = check_numbers(action, self.action_space.shape or ())
        self._check_begun("step")
        self._physics.state(0)[: len(self.state)] = self.state  # a user may have set it
        self._physics.step()
        self._take(self._physics.state(0))
        if self.render_mode == "human":
            self.render()
        observation, info = self._visible(exchange.observations[0].copy(), {})
        return observation, float(exchange.rewards[0]), bool(exchange.terminations[0]), False, info

    def push(self, velocity: Array) -> None:
        """Changes velocities instantly, like an impact.

        Args:
            velocity: Added to the velocities, m/s or rad/s, shape ``(push_size,)``.

        Raises:
            EnvStateError: There was no reset yet.
        """
        self._check_begun("push")
        self._physics.push(velocity[None], _ONLY)
        self._take(self._physics.state(0))

    def show(self, state: Array, values: Mapping[str, float]) -> None:
        """Takes over a state, and values that Gymnasium's class has attributes for, so that it renders both."""
        self._take(state)
        for name, value in values.items():
            for attribute in (name, name.upper()):
                if hasattr(self, attribute):
                    setattr(self, attribute, value)

    def _take(self, state: Array) -> None:
        self.state = state.copy()
        for name in self.task.attributes:
            value = float(state[fields_of(self.task.state).index(name)])
            setattr(self, name, None if np.isnan(value) else value)

    def _check_begun(self, call: str) -> None:
        if self.state is None:
            raise EnvStateError(f"Expected reset() before {call}(): there is no episode yet.")


def class_named(env: str) -> type[ClassicControl]:
    """The class of an environment such as "CartPole"."""
    made: type[ClassicControl] = __getattr__(f"{env}DR")
    return made


@cache
def __getattr__(name: str) -> Any:
    """The class of an environment, such as ``CartPoleDR``, derived on demand from Gymnasium's class."""
    return class_of(
        name, "DR", __name__, TASKS, lambda env: ((ClassicControl, stock_class(STOCK[env])), {"task": TASKS[env]})
    )
