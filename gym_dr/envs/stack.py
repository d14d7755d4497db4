"""The wrappers around an environment, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv, VectorWrapper


def stack_of(env: VectorEnv[Any, Any, Any] | gym.Env[Any, Any]) -> Iterator[Any]:
    """The wrappers of an environment or vector environment, the outermost first, and at last the environment itself."""
    while isinstance(env, VectorWrapper | gym.Wrapper):
        yield env
        env = env.env
    yield env


def pushed_layer(env: gym.Env[Any, Any]) -> Any:
    """The layer that takes pushes, a wrapper or the environment; the environment if none does."""
    return next((layer for layer in stack_of(env) if hasattr(layer, "push_size")), env.unwrapped)
