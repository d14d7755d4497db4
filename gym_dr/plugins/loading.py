"""Finds plugins, loads them one by one and adds their parts to the registries.

A plugin that cannot be loaded is reported by name and skipped; two plugins that add the same name are an error.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import gymnasium as gym
import pluggy

from gym_dr.envs.family import ENVIRONMENTS, FAMILIES, EnvFamily, add_family
from gym_dr.errors import NameClashError, PluginError, PluginWarning, unknown_name
from gym_dr.plugins import builtin, hookspecs
from gym_dr.randomization.presets import PRESETS, add_preset
from gym_dr.randomization.sampler import SAMPLERS, Sampler
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import all_or_nothing
from gym_dr.runs.loggers import LOGGERS, Logger
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS

DISABLE = "GYMDR_DISABLE_PLUGINS"  # environment variable: names of plugins to skip, separated by commas, or "all"


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin:
    """One plugin, for ``gymdr list plugins``."""

    name: str  # of its entry point
    package: str  # distribution and version that it comes from
    origin: str  # file of its code, or the module to import
    problem: str = ""  # why it is skipped; empty if it is in use


@cache
def load_plugins() -> tuple[LoadedPlugin, ...]:
    """Loads the installed plugins, once per process.

    The command line and functions such as ``gym_dr.train`` call it. Call it (as ``gym_dr.load_plugins()``) to use
    environments and presets of other packages in a program. Plugins that ``GYMDR_DISABLE_PLUGINS`` names are skipped.

    Returns:
        All plugins, including skipped ones.

    Raises:
        PluginError: Two plugins add the same name.
        UnknownNameError: ``GYMDR_DISABLE_PLUGINS`` names a plugin that is not installed.

    Warns:
        PluginWarning: A plugin is broken and skipped.
    """
    disabled = frozenset(name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip())
    plugins = load(list(entry_points(group=hookspecs.PROJECT)), disabled)
    for plugin in plugins:
        if plugin.problem not in ("", "disabled"):
            warnings.warn(
                f"plugin {plugin.name!r} of {plugin.package} is skipped: {plugin.problem}. "
                f"Set {DISABLE}={plugin.name} to disable it.",
                PluginWarning,
                stacklevel=2,
            )
    return plugins


def load(found: Sequence[EntryPoint], disabled: frozenset[str]) -> tuple[LoadedPlugin, ...]:
    """Loads the built-in plugin and then the others, sorted by name.

    Args:
        found: Entry points of the group ``gym_dr``.
        disabled: Names to skip; "all" skips all but the built-in plugin.

    Raises:
        PluginError: Two plugins add the same name.
        UnknownNameError: A disabled name is not a plugin; nothing has been loaded.
    """
    names = {entry_point.name for entry_point in found}
    for name in sorted(disabled - names - {"all"}):  # a misspelled name would disable nothing
        raise unknown_name(f"plugin in {DISABLE}", name, names | {"all"})
    hooks = pluggy.PluginManager(hookspecs.PROJECT)
    hooks.add_hookspecs(hookspecs)
    ordered = sorted(found, key=lambda entry_point: entry_point.name)
    own = _add(hooks, "builtin", "gym_dr", builtin)
    return own, *(_load(hooks, entry_point, disabled) for entry_point in ordered)


def _load(hooks: pluggy.PluginManager, entry_point: EntryPoint, disabled: frozenset[str]) -> LoadedPlugin:
    name, origin = entry_point.name, entry_point.value
    package = f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else "unknown package"
    if name in disabled or "all" in disabled:
        return LoadedPlugin(name=name, package=package, origin=origin, problem="disabled")
    try:
        plugin = entry_point.load()
    except (Exception, SystemExit) as error:  # importing a third-party module may raise anything
        problem = f"importing {origin} failed with {type(error).__name__}: {error}"
        return LoadedPlugin(name=name, package=package, origin=origin, problem=problem)
    return _add(hooks, name, package, plugin)


def _add(hooks: pluggy.PluginManager, name: str, package: str, plugin: Any) -> LoadedPlugin:
    """Registers a plugin with pluggy and calls its hooks; undoes everything if one fails."""
    origin = getattr(plugin, "__file__", None) or getattr(inspect.getmodule(plugin), "__file__", None) or plugin
    before, problem = set(gym.registry), ""
    try:
        with all_or_nothing(ALGORITHMS, FAMILIES, ENVIRONMENTS, SAMPLERS, PRESETS, LOGGERS):
            hooks.register(plugin, name=name)
            hooks.check_pending()
            for hook, register in _registrars(package).items():
                for implementation in getattr(hooks.hook, hook).get_hookimpls():
                    if implementation.plugin_name == name:
                        implementation.function(register)
    except (Exception, SystemExit) as error:  # a misspelled hook, or an error in one
        if hooks.has_plugin(name):
            hooks.unregister(name=name)
        for env_id in set(gym.registry) - before:
            del gym.registry[env_id]
        if isinstance(error, NameClashError):  # the user must choose one of the two
            way_out = f"Uninstall one of them, or disable its plugin with {DISABLE}=NAME."
            raise PluginError(f"{error} {way_out}") from None
        problem = f"{type(error).__name__}: {error}".replace("\n", " ")
    return LoadedPlugin(name=name, package=package, origin=str(origin), problem=problem)


def _registrars(package: str) -> dict[str, Callable[..., None]]:
    """Hook name -> the ``register`` function for a package's plugin."""

    def registrar(kind: type, add: Callable[..., object], names: str = "") -> Callable[..., None]:
        def register(*given: Any) -> None:
            if not isinstance(given[-1], kind):
                raise TypeError(f"expected register({names}{kind.__name__}(...)), got {given[-1]!r}")
            add(*given, package)

        return register

    return {
        "gym_dr_register_algorithms": registrar(Algorithm, lambda item, owner: ALGORITHMS.add(item.name, item, owner)),
        "gym_dr_register_environments": registrar(EnvFamily, add_family),
        "gym_dr_register_samplers": registrar(Sampler, lambda item, owner: SAMPLERS.add(item.name, item, owner)),
        "gym_dr_register_loggers": registrar(Logger, lambda item, owner: LOGGERS.add(item.name, item, owner)),
        "gym_dr_register_presets": registrar(Randomization, add_preset, "space_name, name, "),
    }
