"""Randomizes any Gymnasium environment that runs on MuJoCo."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from gym_dr.envs.mujoco.episode import RandomizedModel
from gym_dr.errors import RandomizationError
from gym_dr.randomization.episode import check_not_randomized


class RandomizeMujoco(RandomizedModel, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Edits the model of a MuJoCo environment at each reset, always starting from the nominal values.

    Parameters are named after MuJoCo's fields: ``body_mass:torso``, ``geom_friction:floor.slide``, ``gravity.z``.
    ``body_mass:*`` draws a value for each body; ``body_mass`` alone is one factor for all. ``params`` and
    ``info["params"]`` report the randomized parameters and those set by hand.

    Example:
        >>> import gymnasium as gym
        >>> from gym_dr import RandomizeMujoco, Scale
        >>> env = RandomizeMujoco(gym.make("Hopper-v5"), {"body_mass:*": Scale((0.5, 2.0)), "gravity.z": (-12, -8)})
        >>> _, info = env.reset(seed=1)
        >>> sorted(info["params"])
        ['body_mass:foot', 'body_mass:leg', 'body_mass:thigh', 'body_mass:torso', 'gravity.z']
    """

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
            ConfigError: ``context_params`` without ``context="observation"``, or observations are not a flat box.
        """
        RecordConstructorArgs.__init__(
            self, randomization=randomization, context=context, context_params=context_params
        )
        gym.Wrapper.__init__(self, env)
        check_not_randomized(env)
        unwrapped: Any = env.unwrapped
        if not (hasattr(unwrapped, "model") and hasattr(unwrapped, "data")):
            raise RandomizationError(
                f"Expected an environment with a MuJoCo model and data, got {type(unwrapped).__name__}. "
                "If its parameters are plain attributes, use RandomizeAttributes."
            )
        name = type(unwrapped).__name__.removesuffix("Env").removesuffix("DR")
        self._randomize(self._take_model(name), randomization, context, context_params)
        self.observation_space = self.context.extend_space(env.observation_space)
