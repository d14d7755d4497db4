"""Finds plugins, loads them one by one and collects what they add.

A plugin that cannot be loaded is reported by name and left out; two that claim the same name are an error.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import gymnasium as gym
import pluggy

from gym_dr import registration
from gym_dr.errors import PluginError, unknown_name
from gym_dr.plugins import builtin, hookspecs
from gym_dr.randomization.presets import NONE, add_preset, presets
from gym_dr.randomization.spec import Randomization
from gym_dr.registration import EnvEntry
from gym_dr.training.api import Algorithm

DISABLE = "GYMDR_DISABLE_PLUGINS"  # environment variable: names of plugins to leave out, separated by commas, or "all"


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin:
    """One plugin, for ``gymdr list plugins``."""

    name: str  # of its entry point
    package: str  # distribution and version that it comes from
    origin: str  # file of its code, or module that was to be imported
    problem: str = ""  # why it is left out; empty if it is in use


class _NameClashError(PluginError):
    """Two plugins claim one name: which is meant is for the user to say, so neither is left out silently."""


@dataclass(kw_only=True)
class _Staged:
    """What one plugin's hooks have registered, before any of it is in use."""

    algorithms: list[Algorithm] = field(default_factory=list)
    environments: list[EnvEntry] = field(default_factory=list)
    presets: list[tuple[str, str, Randomization]] = field(default_factory=list)  # space, name, randomization
    owners: dict[tuple[str, str], str] = field(default_factory=dict)  # (kind, name) -> package


class PluginHost:
    """All plugins of this installation and what they have added."""

    def __init__(self, found: list[EntryPoint], disabled: frozenset[str]) -> None:
        """Loads gym_dr's own plugin and then the found ones.

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
        self.plugins: list[LoadedPlugin] = []
        self.algorithms: dict[str, Algorithm] = {}
        self.environments: dict[str, EnvEntry] = {}
        self._owners: dict[tuple[str, str], str] = {}  # (kind, name) -> package that added it
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._add("builtin", "gym_dr", builtin)
        for entry_point in sorted(found, key=lambda entry_point: entry_point.name):
            self._load(entry_point, disabled)

    def algorithm(self, name: str) -> Algorithm:
        """The algorithm of that name.

        Raises:
            UnknownNameError: There is none.
            PluginError: Its configuration cannot be imported or is not one.
        """
        if name not in self.algorithms:
            raise unknown_name("algorithm", name, self.algorithms)
        algorithm = self.algorithms[name]
        try:
            fields = {field.name for field in dataclasses.fields(algorithm.config_class())}
        except Exception as error:  # its configuration is imported only now, and may be a stranger's
            raise PluginError(
                f"Algorithm {name!r} of {self._owners['algorithm', name]} cannot be used: its configuration "
                f"{algorithm.config!r} failed with {type(error).__name__}: {error}"
            ) from error
        if "updates" not in fields:
            raise PluginError(f"Algorithm {name!r}: expected a field 'updates' in its configuration, got {fields}.")
        return algorithm

    def problems(self) -> list[str]:
        """A line for each plugin that is broken, with the way to disable it."""
        return [
            f"plugin {plugin.name!r} of {plugin.package} is left out: {plugin.problem}. "
            f"Set {DISABLE}={plugin.name} to disable it."
            for plugin in self.plugins
            if plugin.problem and plugin.problem != "disabled"
        ]

    def _load(self, entry_point: EntryPoint, disabled: frozenset[str]) -> None:
        package = f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else "unknown package"
        if entry_point.name in disabled or "all" in disabled:
            self._leave_out(entry_point.name, package, entry_point.value, "disabled")
            return
        try:
            plugin = entry_point.load()
        except (Exception, SystemExit) as error:  # whatever a stranger's module does when it is imported
            problem = f"importing {entry_point.value} failed with {type(error).__name__}: {error}"
            self._leave_out(entry_point.name, package, entry_point.value, problem)
            return
        self._add(entry_point.name, package, plugin)

    def _add(self, name: str, package: str, plugin: Any) -> None:
        """Registers a plugin with pluggy and calls its hooks, all of it or nothing."""
        origin = getattr(plugin, "__file__", None) or getattr(inspect.getmodule(plugin), "__file__", None) or plugin
        staged = _Staged()
        before = set(gym.registry)
        try:
            self._pluggy.register(plugin, name=name)
            self._pluggy.check_pending()
            self._collect(name, package, staged)
            for entry in staged.environments:
                registration.register(entry)
        except _NameClashError:
            raise
        except (Exception, SystemExit) as error:  # a misspelled hook, or whatever the plugin raises in one
            if self._pluggy.has_plugin(name):
                self._pluggy.unregister(name=name)
            for env_id in set(gym.registry) - before:
                del gym.registry[env_id]
            self._leave_out(name, package, str(origin), f"{type(error).__name__}: {error}".replace("\n", " "))
            return
        for space_name, preset, randomization in staged.presets:
            add_preset(space_name, preset, randomization)
        self.environments |= {entry.id: entry for entry in staged.environments}
        self.algorithms |= {algorithm.name: algorithm for algorithm in staged.algorithms}
        self._owners |= staged.owners
        self.plugins.append(LoadedPlugin(name=name, package=package, origin=str(origin)))

    def _collect(self, name: str, package: str, staged: _Staged) -> None:
        """Calls the plugin's hooks; what they register is checked now and added when all of them have ended."""

        def add_algorithm(algorithm: Algorithm) -> None:
            if not isinstance(algorithm, Algorithm):
                raise TypeError(f"expected register(Algorithm(...)), got {algorithm!r}")
            self._claim("algorithm", algorithm.name, package, staged)
            staged.algorithms.append(algorithm)

        def add_environment(entry: EnvEntry) -> None:
            if not isinstance(entry, EnvEntry):
                raise TypeError(f"expected register(EnvEntry(...)), got {entry!r}")
            self._claim("environment", entry.id, package, staged)
            if entry.id in gym.registry and gym.registry[entry.id].entry_point != entry.entry_point:
                raise ValueError(f"environment {entry.id!r} is registered with Gymnasium already")
            staged.environments.append(entry)

        def add_named_preset(space_name: str, preset: str, randomization: Randomization) -> None:
            if not isinstance(randomization, Randomization):
                raise TypeError(f"expected register(space_name, name, Randomization(...)), got {randomization!r}")
            self._claim(f"preset of {space_name}", preset, package, staged)
            if preset == NONE or presets(space_name).get(preset, randomization) != randomization:
                raise ValueError(f"there is a preset {preset!r} of {space_name} already")
            staged.presets.append((space_name, preset, randomization))

        hook = self._pluggy.hook
        for caller, register in (
            (hook.gym_dr_register_algorithms, add_algorithm),
            (hook.gym_dr_register_environments, add_environment),
            (hook.gym_dr_register_presets, add_named_preset),
        ):
            for implementation in caller.get_hookimpls():
                if implementation.plugin_name == name:
                    implementation.function(register)

    def _claim(self, kind: str, name: str, package: str, staged: _Staged) -> None:
        owner = self._owners.get((kind, name)) or staged.owners.get((kind, name))
        if owner is not None:
            raise _NameClashError(
                f"Two plugins add the {kind} {name!r}: {owner} and {package}. "
                f"Uninstall one of them, or leave its plugin out with {DISABLE}=NAME."
            )
        staged.owners[kind, name] = package

    def _leave_out(self, name: str, package: str, origin: str, problem: str) -> None:
        self.plugins.append(LoadedPlugin(name=name, package=package, origin=origin, problem=problem))


@cache
def load_plugins() -> PluginHost:
    """Loads the plugins of this installation, once for the process.

    The command line does this by itself. A program calls it (as ``gym_dr.load_plugins()``) to have the environments and
    presets of other packages; what ``GYMDR_DISABLE_PLUGINS`` names is left out.

    Raises:
        PluginError: Two plugins add the same name.
        UnknownNameError: ``GYMDR_DISABLE_PLUGINS`` names a plugin that there is not.
    """
    disabled = frozenset(name.strip() for name in os.environ.get(DISABLE, "").split(",") if name.strip())
    return PluginHost(list(entry_points(group=hookspecs.PROJECT)), disabled)
