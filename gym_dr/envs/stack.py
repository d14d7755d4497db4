"""The wrappers around a vector environment, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gymnasium.vector import VectorEnv, VectorWrapper


def stack_of(envs: VectorEnv[Any, Any, Any]) -> Iterator[Any]:
    """A vector environment's wrappers, the outermost first, and at last the environment itself."""
    while isinstance(envs, VectorWrapper):
        yield envs
        envs = envs.env
    yield envs
