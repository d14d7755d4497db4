"""Environment classes derived on demand from Gymnasium's classes."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, cast

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator


def class_of(
    name: str,
    suffix: str,
    module: str,
    known: Container[str],
    parts: Callable[[str], tuple[tuple[type[Any], ...], Mapping[str, Any]]],
) -> Any:
    """Makes a class that a module's ``__getattr__`` was asked for, such as ``HopperDR``.

    Args:
        name: Name of the class.
        suffix: Follows the environment's name in it.
        module: Name of the module.
        known: Names of environments.
        parts: Environment's name -> base classes, and attributes by name.

    Raises:
        AttributeError: There is no such environment.
    """
    env = name.removesuffix(suffix)
    if env == name or env not in known:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    bases, attributes = parts(env)
    return type(name, bases, {"__doc__": f"{env} with randomized physics.", "__module__": module, **attributes})


def stock_class(env_id: str) -> type[Any]:
    """Gymnasium's class of an environment such as "Hopper-v5"."""
    creator: Any = load_env_creator(str(gym.spec(env_id).entry_point))
    return cast(type[Any], creator)
