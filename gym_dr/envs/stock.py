"""Environment classes derived on demand from Gymnasium's classes."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, cast

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

Parts = Callable[[str], tuple[tuple[type[Any], ...], Mapping[str, Any]]]


def class_of(name: str, module: str, known: Container[str], kinds: Mapping[str, Parts]) -> Any:
    """Makes a class that a module's ``__getattr__`` was asked for, such as ``HopperDR``.

    Args:
        name: Name of the class.
        module: Name of the module.
        known: Names of environments.
        kinds: What follows the environment's name -> environment's name -> base class, and attributes by name.

    Raises:
        AttributeError: There is no such environment or kind.
    """
    for suffix, parts in kinds.items():
        env = name.removesuffix(suffix)
        if env != name and env in known:
            bases, attributes = parts(env)
            return type(name, bases, {"__doc__": f"{env} with randomized physics.", "__module__": module, **attributes})
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def stock_class(env_id: str) -> type[Any]:
    """Gymnasium's class of an environment such as "Hopper-v5"."""
    creator: Any = load_env_creator(str(gym.spec(env_id).entry_point))
    return cast(type[Any], creator)
