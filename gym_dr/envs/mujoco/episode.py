"""Shared by the single environments and the wrapper for any MuJoCo environment: one model, edited at each reset."""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gym_dr.envs.core import warn_diverged
from gym_dr.envs.mujoco.editor import ModelEditor
from gym_dr.envs.mujoco.space import model_space
from gym_dr.envs.vector_arguments import check_numbers
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.randomization.episode import RandomizedEnv
from gym_dr.randomization.space import ParamSpace

# MuJoCo logs a warning to MUJOCO_LOG.TXT if its counter is 0; starting from 1 counts as well, but quietly
QUIET = 1


class RandomizedModel(RandomizedEnv):
    """A mixin that precedes a class with ``reset`` and ``step``: Gymnasium's, or ``gym.Wrapper``."""

    _observation: Any = None  # the latest one; None before the first reset
    _model: Any = None  # that of the current episode; None before the first reset

    def _take_model(self, name: str) -> ParamSpace:
        """Takes over the environment's model, which must have nominal values.

        Args:
            name: Name under which presets are registered.

        Returns:
            The model's parameters.
        """
        from gym_dr.envs.mujoco.stock import BAD_STATE  # heavy: mujoco

        env = cast(Any, self).unwrapped
        space = model_space(name, env.model)
        self._editor = ModelEditor(space, env.model)
        self._bad_state = BAD_STATE
        self._actions_shape = cast(Any, self).action_space.shape  # not from the model: it may have no actuators
        return space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters.

        Args:
            seed: Reseeds the environment's generator and restarts the sequence of draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode.

        Raises:
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible value in ``options``; nothing has changed. Or the environment's own
                ``reset`` makes a new model.
        """
        rest = self._begin_episode(seed, options)
        env = cast(Any, self).unwrapped
        self._model = env.model
        self._warnings: npt.NDArray[np.int32] = env.data.warning.number  # a live view, (number of kinds,)
        self._editor.apply(self._model, self.episode.current)
        observation, info = cast(Any, super()).reset(seed=seed, options=rest)
        if env.model is not self._model:
            raise RandomizationError(
                f"reset of {type(env).__name__} makes a new model, with nominal values. Make it in the constructor."
            )
        self._note(observation)
        return self._visible(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Advances the simulation; truncates the episode if it diverges.

        MuJoCo resets a diverged simulation. Its last step returns the previous observation and reward 0, and
        ``info["diverged"]`` is True.

        Args:
            action: Finite numbers of the action space's shape; MuJoCo clips them to the control range.

        Raises:
            EnvStateError: There was no reset yet, or none since the environment was copied.
            InvalidActionError: The action has the wrong shape or type or is not finite; nothing has changed.
        """
        check_numbers(action, self._actions_shape)
        self._check_begun("step")
        env = cast(Any, self).unwrapped
        if env.model is not self._model:
            raise EnvStateError("Expected reset() before step(): a copy begins with a new model and nominal values.")
        self._warnings[:] = QUIET
        with np.errstate(over="ignore"):  # a huge action may overflow its cost; an error would leave half a step
            observation, reward, terminated, truncated, info = cast(Any, super()).step(action)
        if (self._warnings[self._bad_state] != QUIET).any():
            observation, reward, terminated, truncated = self._observation, 0.0, False, True
            info = {**info, "diverged": True}
            warn_diverged(type(env).__name__, env.np_random_seed, self.draw_index, self.episode.current)
        self._note(observation)
        observation, info = self._visible(observation, info)
        return observation, reward, terminated, truncated, info

    def _visible(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """As in the base class; before Gymnasium 1.4 a humanoid's info has views of its tendons, so copy them."""
        info = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in info.items()}
        return super()._visible(observation, info)

    def _note(self, observation: Any) -> None:
        """Stores a copy of the latest observation, since callers may write into theirs."""
        copied = copy.copy if isinstance(observation, np.ndarray) else copy.deepcopy
        self._observation = copied(observation)
