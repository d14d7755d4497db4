"""Randomizes any Gymnasium environment on MuJoCo, also those of ``gym_dr/HopperDR-v5`` and other ids."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec

from gym_dr.envs.core import warn_diverged
from gym_dr.envs.mujoco.camera import draw
from gym_dr.envs.mujoco.editor import ModelEditor
from gym_dr.envs.mujoco.space import space_of_env
from gym_dr.envs.vector_arguments import check_finite
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.randomization.episode import RandomizedWrapper


class RandomizeMujoco(RandomizedWrapper):
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
    _model: Any = None  # an ``MjModel``, that of the current episode; None before the first reset

    def __init__(
        self,
        env: gym.Env[Any, Any],
        randomization: Any,
        context: str = "info",
        context_params: Any = None,
        *,
        model: Callable[[Any], Any] | None = None,
        data: Callable[[Any], Any] | None = None,
        after_reset: bool = False,
    ) -> None:
        """Wraps an environment, which may be in another ``RandomizeMujoco`` or ``RandomizeAttributes`` already.

        Args:
            env: An environment on MuJoCo: ``env.unwrapped`` has a ``model`` and a ``data``, as
                ``gymnasium.envs.mujoco.MujocoEnv``, or dm_control's ``physics`` with both, as in shimmy. Its ``reset``
                keeps both, and writes nothing that is randomized.
            randomization: A preset (``Hopper-v5`` has those of ``gym_dr/HopperDR-v5``; for your own environments see
                ``gym_dr.add_preset``), a mapping of names to distributions, a ``Randomization`` or a path.
            context: Who may see the draw; see ``NativeVectorEnv``.
            context_params: Which parameters the observation shows; see ``NativeVectorEnv``.
            model: Finds the ``MjModel`` in ``env.unwrapped``, if it is somewhere else.
            data: Finds the ``MjData``.
            after_reset: Whether the model is edited after the environment's own ``reset``, which may then make a new
                model of the same elements, or write what is randomized. The observation that it returns is that of the
                physics before.

        Raises:
            UnknownNameError: A preset, body, geom, context or other name is unknown.
            RandomizationError: A range is impossible, the environment does not run on MuJoCo, or a layer inside varies
                a parameter, too.
            ConfigError: ``context_params`` without ``context="observation"``, or observations have no place for them.
        """
        gym.Wrapper.__init__(self, env)
        self._inner: Any = env.unwrapped
        self._find, self._after_reset = (model, data), after_reset
        from gym_dr.envs.mujoco.reference import BAD_STATE, QUIET, base_of  # heavy: mujoco

        nominal, _ = self._model_and_data()
        # all of dm_control's tasks have one class in shimmy
        task = self._inner.spec if hasattr(self._inner, "_env") else None
        space = space_of_env(self._inner, nominal, task.id if task else "")
        self._editor = ModelEditor(space)
        self._bad_state, self._quiet = BAD_STATE, QUIET
        self._base, self._pushed = base_of(nominal)
        self._actions_shape: Any = self.action_space.shape  # not from the model: it may have no actuators
        self._wrap(space, randomization, context, context_params, model=model, data=data, after_reset=after_reset)

    def __getstate__(self) -> dict[str, Any]:
        # a copy gets its own at its reset
        return {**super().__getstate__(), "_model": None, "_warnings": None}

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]  # an attribute of environments, a property of wrappers
        """The wrapper's spec; that of our id if it made this wrapper."""
        made = self.env.spec
        of_ours = self._inside is None and made is not None and str(made.entry_point).startswith(f"{__package__}.")
        return made if of_ours else super().spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters.

        Args:
            seed: Reseeds the environment's generator and restarts the sequence of draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode.

        Raises:
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible value in ``options``; nothing has changed. Or the environment's own
                ``reset`` makes a new model, or writes what is randomized.
        """
        rest = self._begin_episode(seed, options)
        self._model, _ = self._model_and_data()
        if not self._after_reset:
            self._editor.apply(self._model, self._own)
        observation, info = self.env.reset(seed=seed, options=rest)
        if self._inside is not None:  # it may have set attributes
            self._note_attributes()
        edited, (self._model, data) = self._model, self._model_and_data()
        self._warnings: npt.NDArray[np.int32] = data.warning.number  # a live view, (number of kinds,)
        if self._after_reset:
            import mujoco  # type: ignore[import-untyped]  # heavy

            self._editor.apply(self._model, self._own)
            mujoco.mj_forward(self._model, data)  # what depends on the model
        elif undone := self._editor.undone(self._model) if edited is self._model else list(self._own):
            raise RandomizationError(
                f"reset of {type(self._inner).__name__} makes a new model, or writes {', '.join(undone)}, too, so a "
                "draw would have no effect. Leave that out, or pass after_reset=True, which edits the model after "
                "reset."
            )
        self._observation = copy.deepcopy(observation)  # callers may write into theirs
        return self._visible(observation, info)

    def _model_and_data(self) -> tuple[Any, Any]:
        """The environment's ``MjModel`` and ``MjData``.

        Raises:
            RandomizationError: It has none.
        """
        found = [_found(self._inner, *pair) for pair in zip(("model", "data"), self._find, strict=True)]
        kinds = [type(one).__name__ for one in found]
        if kinds != ["MjModel", "MjData"]:
            raise RandomizationError(
                f"Expected an environment with a MuJoCo model and data, got {type(self._inner).__name__} with "
                f"{' and '.join(kinds)}. If it has them elsewhere, pass model=lambda env: ..., data=lambda env: .... "
                "If its parameters are plain attributes, use RandomizeAttributes."
            )
        return found[0], found[1]

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
        if self._model is None:
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
        self._model_and_data()[1].qvel[self._pushed] += check_finite(velocity, (self.push_size,), "velocities")

    def apply_wrench(self, wrench: npt.NDArray[np.float64]) -> None:
        """Lets a force and a torque act on the floating base, until others do or the environment's reset removes them.

        Args:
            wrench: Force (N) and torque (N m) along and about x, y and z of the world, shape ``(6,)``.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The wrench has the wrong shape or type, or is not finite; nothing has changed.
        """
        self._check_begun("apply_wrench")
        self._model_and_data()[1].xfrc_applied[self._base] = check_finite(wrench, (6,), "wrench")

    def render(self) -> Any:
        """Renders the robot; without a render mode, warns and returns None.

        Raises:
            ConfigError: There is no display.
        """
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        return draw(self.env)


def _found(env: Any, name: str, find: Callable[[Any], Any] | None) -> Any:
    """The model or data of an environment, or of dm_control's in it, whose wrappers of both have the original."""
    physics = getattr(env, "physics", getattr(getattr(env, "_env", None), "physics", None))
    found = getattr(env, name, getattr(physics, name, None)) if find is None else find(env)
    return getattr(found, "ptr", found)
