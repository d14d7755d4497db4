"""Randomizes any Gymnasium environment on MuJoCo, also those of ``gym_dr/HopperDR-v5`` and other ids."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs

from gym_dr.envs.core import warn_diverged
from gym_dr.envs.mujoco.camera import draw
from gym_dr.envs.mujoco.editor import ModelEditor
from gym_dr.envs.mujoco.space import space_of_env
from gym_dr.envs.vector_arguments import check_finite
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.randomization.episode import RandomizedEnv, check_not_randomized


class RandomizeMujoco(RandomizedEnv, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Edits the model of a MuJoCo environment at each reset, always starting from the nominal values.

    Parameters are named after MuJoCo's fields: ``body_mass:torso``, ``geom_friction:floor.slide``, ``gravity.z``.
    ``body_mass:*`` draws a value for each body; ``body_mass`` alone is one factor for all. ``params`` and
    ``info["params"]`` report the randomized parameters and those set by hand, since a model has hundreds.

    Example:
        >>> import gymnasium as gym
        >>> from gym_dr import RandomizeMujoco, Scale
        >>> env = RandomizeMujoco(gym.make("Hopper-v5"), {"body_mass:*": Scale((0.5, 2.0)), "gravity.z": (-12, -8)})
        >>> _, info = env.reset(seed=1)
        >>> sorted(info["params"])
        ['body_mass:foot', 'body_mass:leg', 'body_mass:thigh', 'body_mass:torso', 'gravity.z']
    """

    _observation: Any = None  # the latest one; None before the first reset
    _model: Any = None  # that of the current episode; None before the first reset

    def __init__(
        self, env: gym.Env[Any, Any], randomization: Any, context: str = "info", context_params: Any = None
    ) -> None:
        """Wraps an environment.

        Args:
            env: An environment on MuJoCo: ``env.unwrapped`` has a ``model`` and a ``data``, and its ``reset`` keeps
                both, as in ``gymnasium.envs.mujoco.MujocoEnv``.
            randomization: A preset (``Hopper-v5`` has those of ``gym_dr/HopperDR-v5``; for your own environments see
                ``gym_dr.add_preset``), a mapping of names to distributions, a ``Randomization`` or a path.
            context: Who may see the draw; see ``NativeVectorEnv``.
            context_params: Which parameters the observation shows; see ``NativeVectorEnv``.

        Raises:
            UnknownNameError: A preset, body, geom, context or other name is unknown.
            RandomizationError: A range is impossible, or the environment does not run on MuJoCo or is randomized
                already.
            ConfigError: ``context_params`` without ``context="observation"``, or observations have no place for them.
        """
        gym.Wrapper.__init__(self, env)
        check_not_randomized(env)
        self._inner: Any = env.unwrapped
        if not (hasattr(self._inner, "model") and hasattr(self._inner, "data")):
            raise RandomizationError(
                f"Expected an environment with a MuJoCo model and data, got {type(self._inner).__name__}. "
                "If its parameters are plain attributes, use RandomizeAttributes."
            )
        from gym_dr.envs.mujoco.reference import BAD_STATE, QUIET, base_of  # heavy: mujoco

        space = space_of_env(self._inner)
        self._editor = ModelEditor(space, self._inner.model)
        self._bad_state, self._quiet = BAD_STATE, QUIET
        self._base, self._pushed = base_of(self._inner.model)
        self._actions_shape: Any = self.action_space.shape  # not from the model: it may have no actuators
        self._randomize(space, randomization, context, context_params)
        RecordConstructorArgs.__init__(
            self, randomization=self.randomization.to_dict(), context=context, context_params=context_params
        )
        self.observation_space = self.context.extend_space(env.observation_space)

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]  # an attribute of environments, a property of wrappers
        """The wrapper's spec; that of our id if it made this wrapper."""
        made = self.env.spec
        of_ours = made is not None and str(made.entry_point).startswith(f"{__package__}.")
        return made if of_ours else super().spec

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
        self._model = self._inner.model
        self._warnings: npt.NDArray[np.int32] = self._inner.data.warning.number  # a live view, (number of kinds,)
        self._editor.apply(self._model, self._values)
        observation, info = self.env.reset(seed=seed, options=rest)
        if self._inner.model is not self._model:
            raise RandomizationError(
                f"reset of {type(self._inner).__name__} makes a new model, with nominal values. "
                "Make it in the constructor."
            )
        self._observation = copy.deepcopy(observation)  # callers may write into theirs
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
        check_finite(action, self._actions_shape)
        self._check_begun("step")
        if self._inner.model is not self._model:
            raise EnvStateError("Expected reset() before step(): a copy begins with a new model and nominal values.")
        self._warnings[:] = self._quiet
        with np.errstate(over="ignore"):  # a huge action may overflow its cost; an error would leave half a step
            observation, reward, terminated, truncated, info = self.env.step(action)
        if (self._warnings[self._bad_state] != self._quiet).any():
            observation, reward, terminated, truncated = self._observation, 0.0, False, True
            info = {**info, "diverged": True}
            warn_diverged(type(self._inner).__name__, self.np_random_seed, self.draw_index, self._values)
        self._observation = copy.deepcopy(observation)
        observation, info = self._visible(observation, info)
        return observation, reward, terminated, truncated, info

    @property
    def push_size(self) -> int:
        """Size of a push: 6 if the robot has a floating base, otherwise 1."""
        return len(self._pushed)

    def push(self, velocity: npt.NDArray[np.float64]) -> None:
        """Changes the velocity of the floating base instantly, like an impact (of the first joint if there is none).

        Args:
            velocity: Added to the velocity, m/s or rad/s, shape ``(push_size,)``; of a floating base along x, y and z
                of the world, then about its own axes.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The velocity has the wrong shape or type, or is not finite; nothing has changed.
        """
        self._check_begun("push")
        self._inner.data.qvel[self._pushed] += check_finite(velocity, (self.push_size,), "velocities")

    def apply_wrench(self, wrench: npt.NDArray[np.float64]) -> None:
        """Lets a force and a torque act on the floating base, until others do or the environment's reset removes them.

        Args:
            wrench: Force (N) and torque (N m) along and about x, y and z of the world, shape ``(6,)``.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The wrench has the wrong shape or type, or is not finite; nothing has changed.
        """
        self._check_begun("apply_wrench")
        self._inner.data.xfrc_applied[self._base] = check_finite(wrench, (6,), "wrench")

    def render(self) -> Any:
        """Renders the robot; without a render mode, warns and returns None.

        Raises:
            ConfigError: There is no display.
        """
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        return draw(self.env)
