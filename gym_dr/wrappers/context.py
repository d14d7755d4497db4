"""Privileged observations, or a hidden draw, in vector environments made without the keyword ``context``."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from gym_dr.arrays import Array, Mask
from gym_dr.envs.stack import stack_of
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.options import is_number
from gym_dr.randomization.context import OBSERVATION, Context
from gym_dr.wrappers.base import ViewWrapper
from gym_dr.wrappers.vector_params import spaces_of


class DrawContext(ViewWrapper):
    """Shows the draw to the policy, or hides it from everything outside this wrapper.

    The values come from ``info["params"]``; when hiding, put wrappers that need them (``RecordEpisodes``) inside.

    Attributes:
        ranges: The parameters that the observation shows; empty in the other modes.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/HopperDR-v5", num_envs=4, randomization={"body_mass:torso": (3, 4)})
        >>> envs = gym_dr.DrawContext(envs, "observation")
        >>> observations, info = envs.reset(seed=1)
        >>> observations.shape
        (4, 12)
        >>> envs.close()
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], context: str, context_params: Any = None, span: float = 1.0
    ) -> None:
        """Wraps a vector environment.

        Args:
            env: A native environment, or a sync or async one of randomized sub-environments; may already be wrapped.
            context: "hidden" (``info`` has no parameters), "info" (as without this wrapper) or "observation" (a
                privileged observation, which includes the draw, in [-1, 1]: at the end of a flat box, as the key
                "context" of a dictionary, or as one more element of a tuple).
            context_params: Which parameters the observation shows, as names or as name -> (low, high); None for all
                that vary.
            span: Maps the ranges to [-span, span] instead of [-1, 1]. Small inputs (0.25) keep a network from
                memorizing single draws.

        Raises:
            UnknownNameError: There is no such context or parameter.
            ConfigError: ``context_params`` or a span without ``context="observation"``, an impossible span, or
                observations to which it cannot be added, such as images.
            RandomizationError: There is nothing to show, or a parameter has no finite range.
        """
        if not (is_number(span) and span > 0) or (span != 1 and context != OBSERVATION):
            raise ConfigError(f"Expected a finite span above 0, and only with context='observation', got {span!r}.")
        super().__init__(env)
        self.context = Context(context, context_params, *spaces_of(env), float(span))
        # current values of what the policy sees
        self._params: dict[str, Array] = {r.name: np.full(self.num_envs, r.nominal) for r in self.context.ranges}
        if self.context.ranges:
            self.single_observation_space = self.context.extend_space(env.single_observation_space)
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _view(
        self,
        observations: Any,
        info: dict[str, Any],
        reported: Mask | None,
        begun: Mask | None,
        rewards: Array | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        if begun is not None and self.context.ranges:
            self._learn(info, begun)
        return self.context.extend(observations, self._params), self.context.visible_info(info)

    def _learn(self, info: dict[str, Any], begun: Mask) -> None:
        """Stores the values of new episodes.

        Raises:
            RandomizationError: The environment hides them.
        """
        if "params" not in info:
            raise RandomizationError(
                "Expected info['params'] from the environment, to show it in the observation, got none. The "
                "environment was made with context='hidden', or a wrapper inside DrawContext hides it."
            )
        params = info["params"]
        for r in self.context.ranges:
            values = np.where(params.get(f"_{r.name}", False), params.get(r.name, 0.0), r.nominal)
            self._params[r.name] = np.where(begun, values, self._params[r.name])


def shown_columns(env: VectorEnv[Any, Any, Any]) -> int:
    """Number of draws at the end of an observation, appended by a wrapper or a native environment."""
    shown = (vars(layer).get("context") for layer in stack_of(env))
    return sum(len(context.ranges) for context in shown if isinstance(context, Context))
