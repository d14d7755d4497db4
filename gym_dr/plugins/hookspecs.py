"""Hooks through which packages add algorithms, environments, samplers, presets and loggers to gym_dr.

A plugin is a module (or object) whose functions have the names below and the decorator
``@gym_dr.plugins.hookspecs.hookimpl``. Its package lists it in the entry-point group ``gym_dr``. The built-in parts use
the same hooks (``builtin.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from gym_dr.envs.family import EnvFamily
from gym_dr.randomization.sampler import Sampler
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.loggers import Logger
from gym_dr.training.api import Algorithm

PROJECT = "gym_dr"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def gym_dr_register_algorithms(register: Callable[[Algorithm], None]) -> None:
    """Adds algorithms: call ``register`` once for each."""


@hookspec
def gym_dr_register_environments(register: Callable[[EnvFamily], None]) -> None:
    """Adds families of environments: call ``register`` once for each; their ids are registered with Gymnasium."""


@hookspec
def gym_dr_register_samplers(register: Callable[[Sampler], None]) -> None:
    """Adds samplers: call ``register`` once for each."""


@hookspec
def gym_dr_register_loggers(register: Callable[[Logger], None]) -> None:
    """Adds loggers: call ``register`` once for each."""


@hookspec
def gym_dr_register_presets(register: Callable[[str, str, Randomization], None]) -> None:
    """Adds randomization presets: call ``register(param_space_name, preset_name, randomization)`` once for each."""
