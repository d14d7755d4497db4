"""The hooks by which packages add algorithms, environments, samplers and presets to gym_dr.

A plugin is a module (or object) with functions named as below and marked ``@gym_dr.plugins.hookspecs.hookimpl``,
announced in its package under the entry-point group ``gym_dr``. gym_dr's own parts come through the same hooks
(``builtin.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from gym_dr.envs.family import EnvFamily
from gym_dr.randomization.sampler import Sampler
from gym_dr.randomization.spec import Randomization
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
    """Adds sources of draws: call ``register`` once for each."""


@hookspec
def gym_dr_register_presets(register: Callable[[str, str, Randomization], None]) -> None:
    """Adds randomization presets: call ``register(param_space_name, preset_name, randomization)`` for each."""
