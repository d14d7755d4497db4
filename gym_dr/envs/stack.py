"""The wrappers around an environment, one by one, and what they can do beyond Gymnasium's interface."""

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


def floats(layer: Any) -> bool:
    """Whether a layer that takes pushes is a robot with a floating base, which also takes wrenches."""
    return bool(getattr(getattr(layer, "param_space", None), "floats", False))


def supports(envs: VectorEnv[Any, Any, Any], capability: str) -> bool:
    """Whether an environment and all wrappers around it support a capability, a method that replaces ``step``.

    An environment declares the capability with an attribute ``supports_...``, a wrapper by defining the method.
    Gymnasium's wrappers do not count: they forward unknown names and would skip their own ``step``. Nor do subclasses
    that override only ``step``.

    Args:
        envs: The vector environment.
        capability: Name of the method, such as "rollout".
    """
    *wrappers, base = stack_of(envs)
    declared = bool(getattr(base, f"supports_{capability}", False))
    return declared and all(_keeps_up(type(wrapper), capability) for wrapper in wrappers)


def _keeps_up(wrapper: type, capability: str) -> bool:
    """Whether a class defines or inherits the method, and no class below the definition overrides ``step``."""
    for cls in wrapper.__mro__:
        if capability in vars(cls):
            return True
        if "step" in vars(cls):
            return False
    return False
