"""Randomizes any Gymnasium environment whose physical parameters are plain attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from gym_dr.envs.classic_control.params import KNOWN_ATTRIBUTES
from gym_dr.errors import RandomizationError, unknown_name
from gym_dr.randomization.episode import RandomizedEnv, check_not_randomized
from gym_dr.randomization.space import ParamSpace

Derive = Callable[[Any], None]

_TYPES: dict[str, type] = {"float": float, "int": int, "bool": bool}  # of attributes, by kind of parameter


class RandomizeAttributes(RandomizedEnv, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Sets attributes of the unwrapped environment at each reset, always starting from the nominal values.

    Example:
        >>> import gymnasium as gym
        >>> from gym_dr import RandomizeAttributes, Scale
        >>> env = RandomizeAttributes(gym.make("CartPole-v1"), {"length": Scale((0.5, 2.0)), "gravity": (8, 12)})
        >>> _, info = env.reset(seed=1)
        >>> 0.25 <= info["params"]["length"] <= 1.0
        True
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        randomization: Any,
        space: ParamSpace | None = None,
        derive: Derive | None = None,
        context: str = "info",
        context_params: Any = None,
    ) -> None:
        """Wraps an environment.

        Args:
            env: The environment; the attributes are those of ``env.unwrapped``.
            randomization: A preset of the space, a mapping of names to distributions, a ``Randomization`` or a path.
            space: The parameters that may vary, named like the attributes. Not needed for CartPole and Pendulum.
            derive: Called with ``env.unwrapped`` after the attributes are set, to recompute what depends on them.
            context: Who may see the draw; see ``NativeVectorEnv``.
            context_params: Which parameters the observation shows; see ``NativeVectorEnv``.

        Raises:
            UnknownNameError: A parameter is not an attribute, or the randomization names an unknown parameter.
            RandomizationError: A range is impossible, there is no space for this environment, or an attribute is no
                number.
            ConfigError: ``context_params`` without ``context="observation"``, or observations have no place for them.
        """
        gym.Wrapper.__init__(self, env)
        check_not_randomized(env)
        known_space, known_derive = KNOWN_ATTRIBUTES.get(type(env.unwrapped).__name__, (None, None))
        given, space = space, space or known_space
        if space is None:
            raise RandomizationError(
                f"Expected space=ParamSpace(...) for {type(env.unwrapped).__name__}, got none. Only "
                f"{', '.join(sorted(KNOWN_ATTRIBUTES))} have a built-in space."
            )
        for name in space:
            if not hasattr(env.unwrapped, name):
                attributes = [key for key in vars(env.unwrapped) if not key.startswith("_")]
                raise unknown_name(f"attribute of {type(env.unwrapped).__name__}:", name, attributes)
        # the environment may have been made with values other than the space's
        actual = [replace(param, nominal=getattr(env.unwrapped, param.name)) for param in space.values()]
        space = ParamSpace(space.name, actual)
        self._derive = derive or known_derive
        self._randomize(space, randomization, context, context_params)
        visible = {"context": context, "context_params": context_params}
        rules = self.randomization.to_dict()  # JSON keeps it as it is, so that the environment's spec can be compared
        RecordConstructorArgs.__init__(self, randomization=rules, space=given, derive=derive, **visible)
        self.observation_space = self.context.extend_space(env.observation_space)

    def __getstate__(self) -> dict[str, Any]:
        self._pin_written()
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._note_attributes()  # numbers of a pickle are other objects, which nobody has written

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters; ``options={"params": {...}}`` sets exact values for it.

        Raises:
            RandomizationError: The environment's own ``reset`` sets one of the attributes, too.
        """
        rest = self._begin_episode(seed, options)
        env = self.env.unwrapped
        for name, value in self._values.items():
            setattr(env, name, _TYPES[self.param_space[name].kind](value))
        if self._derive is not None:
            self._derive(env)
        given = {name: getattr(env, name) for name in self._values}
        self._note_attributes()
        observation, info = self.env.reset(seed=seed, options=rest)
        if undone := [name for name, value in given.items() if getattr(env, name) != value]:
            raise RandomizationError(
                f"reset of {type(env).__name__} sets {', '.join(undone)}, too, so a draw would have no effect. Set the "
                "nominal value in the constructor, and leave it alone in reset."
            )
        return self._visible(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment; ``info`` contains the current values."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._visible(observation, info)
        return observation, reward, terminated, truncated, info
