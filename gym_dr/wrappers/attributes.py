"""Randomizes any Gymnasium environment whose physical parameters are plain attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym

from gym_dr.envs.classic_control.params import KNOWN_ATTRIBUTES
from gym_dr.errors import RandomizationError, shortened
from gym_dr.randomization.episode import RandomizedWrapper
from gym_dr.randomization.space import ParamSpace
from gym_dr.wrappers.attribute_path import AttributePath


class RandomizeAttributes(RandomizedWrapper):
    """Sets attributes of the unwrapped environment at each reset, always starting from the nominal values.

    Parameters are named like the attributes, or with their path: ``sim.mass``, ``kp[0]``, ``config["speed"]``. After
    the environment's own reset, they must still have the values of the draw.

    An environment that builds its world in ``reset`` needs ``apply``, which sets the values afterwards. The observation
    that ``reset`` returns is then that of the world before, unless the values do not change it.

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
        derive: Callable[[Any], None] | None = None,
        context: str = "info",
        context_params: Any = None,
        *,
        apply: Callable[[Any, dict[str, float]], None] | None = None,
        read: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        """Wraps an environment, which may be in another ``RandomizeAttributes`` or ``RandomizeMujoco`` already.

        Args:
            env: The environment; the attributes are those of ``env.unwrapped``.
            randomization: A preset of the space, a mapping of names to distributions, a ``Randomization`` or a path.
            space: The parameters that may vary, named like the attributes. Not needed for CartPole and Pendulum.
            derive: Called with ``env.unwrapped`` after the values are set, to recompute what depends on them.
            context: Who may see the draw; see ``NativeVectorEnv``.
            context_params: Which parameters the observation shows; see ``NativeVectorEnv``.
            apply: Called with ``env.unwrapped`` and the values, name -> float, after the environment's own reset, to
                set them in any way; names need not be attributes. None to set attributes before it.
            read: Called with ``env.unwrapped`` after all this; returns what the physics has, name -> number, which must
                equal the values to 1e-6. None to compare attributes, or nothing if there is ``apply``.

        Raises:
            UnknownNameError: A parameter is not an attribute, or the randomization names an unknown parameter.
            RandomizationError: A range is impossible, there is no space for this environment, an attribute is no
                number, cannot be set or is shared by environments, or a layer inside varies a parameter, too.
            ConfigError: ``context_params`` without ``context="observation"``, or observations have no place for them.
        """
        gym.Wrapper.__init__(self, env)
        known_space, known_derive = KNOWN_ATTRIBUTES.get(type(env.unwrapped).__name__, (None, None))
        given, space = space, space or known_space
        for name, function in {"derive": derive, "apply": apply, "read": read}.items():
            if function is not None and not callable(function):
                raise RandomizationError(f"{name}: expected a function, got {shortened(function)}.")
        if space is None:
            raise RandomizationError(
                f"Expected space=ParamSpace(...) for {type(env.unwrapped).__name__}, got none. Only "
                f"{', '.join(sorted(KNOWN_ATTRIBUTES))} have a built-in space."
            )
        self._derive, self._apply, self._read = derive or known_derive, apply, read
        self._paths = {name: AttributePath(env.unwrapped, name) for name in (() if apply else space)}
        # the environment may have been made with values other than the space's
        actual = {name: path.get(env.unwrapped) for name, path in self._paths.items()}
        params = [replace(param, nominal=actual.get(param.name, param.nominal)) for param in space.values()]
        arguments = {"space": given, "derive": derive, "apply": apply, "read": read}
        self._wrap(ParamSpace(space.name, params), randomization, context, context_params, **arguments)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters; ``options={"params": {...}}`` sets exact values for it.

        Raises:
            RandomizationError: The environment does not have the values after its own ``reset``.
        """
        rest = self._begin_episode(seed, options)
        if self._apply is None:
            self._set()
        self._note_attributes()
        observation, info = self.env.reset(seed=seed, options=rest)
        if self._apply is not None:
            self._set()
        self._note_attributes()
        env = self.unwrapped
        found = (
            {name: path.get(env) for name, path in self._paths.items()} if self._read is None else self._read(env) or {}
        )
        drawn = self._own if self._read is not None or self._paths else {}  # otherwise nobody knows
        # some environments compute in float32
        wrong = [n for n, v in drawn.items() if not math.isclose(found.get(n, math.nan), v, rel_tol=1e-6)]
        if wrong:
            raise RandomizationError(
                f"{f'reset of {type(env).__name__} sets' if self._apply is None else 'apply does not set'} "
                f"{', '.join(wrong)}{', too' if self._apply is None else ''}, so a draw would have no effect: "
                f"{', '.join(f'{name} is {found.get(name)}, not {drawn[name]:g}' for name in wrong)}. Set the nominal "
                "value in the constructor, and leave it alone in reset; or set it with apply=, a function of the "
                "environment and its values that is called after reset."
            )
        return self._visible(observation, info)

    def _set(self) -> None:
        """Gives the environment the values of the episode."""
        if self._apply is not None:
            self._apply(self.unwrapped, dict(self._own))
        for name, value in self._own.items():
            if name in self._paths:
                self._paths[name].set(self.unwrapped, value, self.param_space[name].kind)
        if self._derive is not None:
            self._derive(self.unwrapped)
