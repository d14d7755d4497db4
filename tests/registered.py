"""Registrations that a test makes, and that others must not meet."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

from gym_dr.envs.family import ENVIRONMENTS, FAMILIES
from gym_dr.envs.mujoco.robots import ROBOTS
from gym_dr.randomization.presets import PRESETS
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.registry import Registry
from gym_dr.runs.loggers import LOGGERS
from gym_dr.training.registry import ALGORITHMS


@contextlib.contextmanager
def forgotten_afterwards() -> Iterator[None]:
    """Takes back what a block registers."""
    registries: tuple[Registry[Any], ...] = (ALGORITHMS, FAMILIES, ENVIRONMENTS, SAMPLERS, PRESETS, ROBOTS, LOGGERS)
    before, registered = [dict(registry._entries) for registry in registries], dict(gym.registry)
    try:
        yield
    finally:
        for registry, entries in zip(registries, before, strict=True):
            registry._entries = entries
        gym.registry.clear()
        gym.registry.update(registered)


@contextlib.contextmanager
def registered_anew(module: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Imports a module again, which registers ids for a block."""
    monkeypatch.delitem(sys.modules, module, raising=False)
    with forgotten_afterwards():
        importlib.import_module(module)
        yield
