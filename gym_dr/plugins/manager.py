"""Finds plugins, loads them one by one and fills the registries with what they add.

A plugin that cannot be loaded is reported by name and left out; two that claim the same name are an error.
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
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS

DISABLE = "GYMDR_DISABLE_PLUGINS"  # environment variable: names of plugins to leave out, separated by commas, or "all"


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin:
    """One plugin, for ``gymdr list plugins``."""

    name: str  # of its entry point
    package: str  # distribution and version that it comes from
    origin: str  # file of its code, or module that was to be imported
    problem: str = ""  # why it is left out; empty if it is in use


@cache
def load_plugins() -> tuple[LoadedPlugin, ...]:
    """Loads the plugins of this installation, once for the process.

    The command line and functions such as ``gym_dr.train`` do this. A program calls it (as ``gym_dr.load_plugins()``)
    to have the environments and presets of other packages; what ``GYMDR_DISABLE_PLUGINS`` names is left out.

    Returns:
        All plugins, those that are left out too.

    Raises:
        PluginError: Two plugins add the same name.
        UnknownNameError: ``GYMDR_DISABLE_PLUGINS`` names a plugin that there is not.

    Warns:
        PluginWarning: A plugin is broken and left out.
    """
    disabled = frozenset(name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip())
    plugins = load(list(entry_points(group=hookspecs.PROJECT)), disabled)
    for plugin in plugins:
        if plugin.problem not in ("", "disabled"):
            warnings.warn(
                f"plugin {plugin.name!r} of {plugin.package} is left out: {plugin.problem}. "
                f"Set {DISABLE}={plugin.name} to disable it.",
                PluginWarning,
                stacklevel=2,
            )
    return plugins


def load(found: Sequence[EntryPoint], disabled: frozenset[str]) -> tuple[LoadedPlugin, ...]:
    """Loads gym_dr's own plugin and then the found ones, in the order of their names.

    Args:
        found: Entry points of the group ``gym_dr``.
        disabled: Names to leave out; "all" leaves out every one but gym_dr's own.

    Raises:
        PluginError: Two plugins add the same name.
        UnknownNameError: A name to leave out is no plugin's; none has been loaded then.
    """
    names = {entry_point.name for entry_point in found}
    for name in sorted(disabled - names - {"all"}):  # misspelled, it would let in what is to be kept out
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
    except (Exception, SystemExit) as error:  # whatever a stranger's module does when it is imported
        problem = f"importing {origin} failed with {type(error).__name__}: {error}"
        return LoadedPlugin(name=name, package=package, origin=origin, problem=problem)
    return _add(hooks, name, package, plugin)


def _add(hooks: pluggy.PluginManager, name: str, package: str, plugin: Any) -> LoadedPlugin:
    """Registers a plugin with pluggy and calls its hooks, all of it or nothing."""
    origin = getattr(plugin, "__file__", None) or getattr(inspect.getmodule(plugin), "__file__", None) or plugin
    before, problem = set(gym.registry), ""
    try:
        with all_or_nothing(ALGORITHMS, FAMILIES, ENVIRONMENTS, SAMPLERS, PRESETS):
            hooks.register(plugin, name=name)
            hooks.check_pending()
            for hook, register in _registrars(package).items():
                for implementation in getattr(hooks.hook, hook).get_hookimpls():
                    if implementation.plugin_name == name:
                        implementation.function(register)
    except (Exception, SystemExit) as error:  # a misspelled hook, or whatever the plugin raises in one
        if hooks.has_plugin(name):
            hooks.unregister(name=name)
        for env_id in set(gym.registry) - before:
            del gym.registry[env_id]
        if isinstance(error, NameClashError):  # which of the two is meant is for the user to say
            way_out = f"Uninstall one of them, or leave its plugin out with {DISABLE}=NAME."
            raise PluginError(f"{error} {way_out}") from None
        problem = f"{type(error).__name__}: {error}".replace("\n", " ")
    return LoadedPlugin(name=name, package=package, origin=str(origin), problem=problem)


def _registrars(package: str) -> dict[str, Callable[..., None]]:
    """What the hooks of a package's plugin are called with, by the name of the hook."""

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
        "gym_dr_register_presets": registrar(Randomization, add_preset, "space_name, name, "),
    }
