"""Finds plugins, loads them one by one and adds their parts to the registries.

The error about a plugin that cannot be loaded names it and says how to disable it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from gym_dr.envs.family import add_family
from gym_dr.errors import PluginError, unknown_name
from gym_dr.plugins import builtin, hookspecs
from gym_dr.randomization.presets import add_preset
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.runs.loggers import LOGGERS
from gym_dr.training.registry import ALGORITHMS

DISABLE = "GYMDR_DISABLE_PLUGINS"  # environment variable: names of plugins to skip, separated by commas, or "all"


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin:
    """One plugin, for ``gymdr list plugins``."""

    name: str  # of its entry point
    package: str  # distribution and version that it comes from
    origin: str  # the module to import
    disabled: bool = False


@cache
def load_plugins() -> tuple[LoadedPlugin, ...]:
    """Loads the installed plugins, once per process.

    The command line and functions such as ``gym_dr.train`` call it. Call it (as ``gym_dr.load_plugins()``) to use
    environments and presets of other packages in a program. Plugins that ``GYMDR_DISABLE_PLUGINS`` names are skipped.

    Returns:
        All plugins, including disabled ones.

    Raises:
        PluginError: A plugin cannot be loaded, or two add the same name.
        UnknownNameError: ``GYMDR_DISABLE_PLUGINS`` names a plugin that is not installed.
    """
    disabled = frozenset(name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip())
    return load(list(entry_points(group=hookspecs.PROJECT)), disabled)


def load(found: Sequence[EntryPoint], disabled: frozenset[str]) -> tuple[LoadedPlugin, ...]:
    """Loads the built-in plugin and then the others, sorted by name.

    Args:
        found: Entry points of the group ``gym_dr``.
        disabled: Names to skip; "all" skips all but the built-in plugin.

    Raises:
        PluginError: A plugin cannot be loaded, or two add the same name.
        UnknownNameError: A disabled name is not a plugin; nothing has been loaded.
    """
    names = {entry_point.name for entry_point in found}
    for name in sorted(disabled - names - {"all"}):  # a misspelled name would disable nothing
        raise unknown_name(f"plugin in {DISABLE}", name, names | {"all"})
    hooks = pluggy.PluginManager(hookspecs.PROJECT)
    hooks.add_hookspecs(hookspecs)
    _add(hooks, "builtin", "gym_dr", builtin)
    plugins = [LoadedPlugin(name="builtin", package="gym_dr", origin=builtin.__name__)]
    for entry_point in sorted(found, key=lambda entry_point: entry_point.name):
        name, skip = entry_point.name, "all" in disabled or entry_point.name in disabled
        package = f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else "unknown package"
        plugins.append(LoadedPlugin(name=name, package=package, origin=entry_point.value, disabled=skip))
        try:
            if not skip:
                _add(hooks, name, package, entry_point.load())
        except (Exception, SystemExit) as error:  # a third-party module may raise anything
            text = " ".join(str(error).split()).rstrip(".")
            raise PluginError(
                f"Plugin {name!r} of {package} cannot be loaded: {type(error).__name__}: {text}. Uninstall it, or set "
                f"{DISABLE}={name}."
            ) from error
    return tuple(plugins)


def _add(hooks: pluggy.PluginManager, name: str, package: str, plugin: Any) -> None:
    """Registers a plugin with pluggy and calls its hooks."""
    hooks.register(plugin, name=name)
    hooks.check_pending()  # a misspelled hook
    registrars: dict[str, Callable[..., None]] = {
        "gym_dr_register_algorithms": lambda item: ALGORITHMS.add(item.name, item, package),
        "gym_dr_register_environments": lambda family: add_family(family, package),
        "gym_dr_register_samplers": lambda item: SAMPLERS.add(item.name, item, package),
        "gym_dr_register_loggers": lambda item: LOGGERS.add(item.name, item, package),
        "gym_dr_register_presets": lambda space, name, rules: add_preset(space, name, rules, package),
    }
    for hook, register in registrars.items():
        for implementation in getattr(hooks.hook, hook).get_hookimpls():
            if implementation.plugin_name == name:
                implementation.function(register)
