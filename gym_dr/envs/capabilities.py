"""What a vector environment can do beyond Gymnasium's interface, through all wrappers around it."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv, VectorWrapper


def supports(envs: VectorEnv[Any, Any, Any], capability: str) -> bool:
    """Whether a capability, a method beside ``step``, can be used on an environment and all wrappers around it.

    The environment says so by an attribute ``supports_...``, and a wrapper by having the method. Gymnasium's wrappers
    pass unknown names on to what they wrap, which would leave out what they do in ``step``; so would a subclass that
    overrides ``step`` alone. Neither counts.

    Args:
        envs: The vector environment.
        capability: Such as "rollout".
    """
    while isinstance(envs, VectorWrapper):
        if not _keeps_up(type(envs), capability):
            return False
        envs = envs.env
    return bool(getattr(envs, f"supports_{capability}", False))


def _keeps_up(wrapper: type, capability: str) -> bool:
    """Whether a class, or one that it inherits from, has the method, and no class further down overrides ``step``."""
    for cls in wrapper.__mro__:
        if capability in vars(cls):
            return True
        if "step" in vars(cls):
            return False
    return False
