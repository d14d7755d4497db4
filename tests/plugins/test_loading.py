"""Plugins are found by their entry points, and a bad one does no harm to the others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gym_dr import Randomization, Uniform
from gym_dr.envs.families import BUILTIN
from gym_dr.envs.family import ENVIRONMENTS, FAMILIES
from gym_dr.errors import PluginError, UnknownNameError
from gym_dr.plugins import builtin, loading
from gym_dr.plugins.loading import LoadedPlugin, load, load_plugins
from gym_dr.randomization.presets import PRESETS
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.registry import Registry
from gym_dr.runs.loggers import LOGGERS
from gym_dr.training.registry import ALGORITHMS, find_algorithm

HEADER = """
from dataclasses import dataclass
from gym_dr import Randomization, Uniform
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.envs.family import EnvFamily, EnvId
from gym_dr.options import option
from gym_dr.training.api import Algorithm

@dataclass(frozen=True, kw_only=True)
class Config:
    updates: int = option(1, "updates")

def algorithm(name):
    return Algorithm(name=name, summary="", config=Config, train=lambda session, config: None)
"""

GOOD = """
@hookimpl
def gym_dr_register_algorithms(register):
    register(algorithm("good"))
"""


@pytest.fixture(autouse=True)
def _undo_registrations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    registered, modules = dict(gym.registry), set(sys.modules)
    registries: tuple[Registry[Any], ...] = (ALGORITHMS, FAMILIES, ENVIRONMENTS, SAMPLERS, PRESETS, LOGGERS)
    for registry in registries:
        monkeypatch.setattr(registry, "_entries", {})
    yield
    gym.registry.clear()
    gym.registry.update(registered)
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@dataclass
class Site:
    """A folder of installed packages, each with one plugin."""

    path: Path

    def install(self, name: str, code: str, package: str | None = None) -> None:
        package = package or f"pkg-{name}"
        (self.path / f"plug_{name}.py").write_text(HEADER + code)
        info = self.path / f"{package.replace('-', '_')}-1.2.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        entries = info / "entry_points.txt"
        before = entries.read_text() if entries.exists() else "[gym_dr]\n"
        entries.write_text(before + f"{name} = plug_{name}\n")

    def entry_points(self) -> list[EntryPoint]:
        found: list[Distribution] = list(distributions(path=[str(self.path)]))
        return [entry for dist in found for entry in dist.entry_points]

    def load(self, *disabled: str) -> tuple[LoadedPlugin, ...]:
        return load(self.entry_points(), frozenset(disabled))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


def disabled(plugins: tuple[LoadedPlugin, ...]) -> list[str]:
    """The plugins that were skipped."""
    return [plugin.name for plugin in plugins if plugin.disabled]


def test_what_gym_dr_brings_comes_through_the_same_hooks() -> None:
    (plugin,) = load([], frozenset())
    assert (plugin.name, plugin.origin) == ("builtin", builtin.__name__)
    assert "a2c" in ALGORITHMS
    assert set(ENVIRONMENTS) == {env.id for family in BUILTIN for env in family.ids}


def test_a_plugin_adds_an_algorithm(site: Site) -> None:
    site.install("good", GOOD)
    plugins = site.load()
    assert find_algorithm("good").name == "good"
    assert (plugins[-1].name, plugins[-1].package) == ("good", "pkg-good 1.2")
    assert plugins[-1].origin == "plug_good"


EVERYTHING = """
from gym_dr.runs.loggers import Logger

@hookimpl
def gym_dr_register_environments(register):
    pole = EnvId(id="mine/Pole-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=7)
    register(EnvFamily(name="Pole", ids=(pole,)))

@hookimpl
def gym_dr_register_presets(register):
    register("LunarLander", "moon", Randomization({"gravity": Uniform(-2, -1)}))

@hookimpl
def gym_dr_register_loggers(register):
    register(Logger(name="mine", summary="", open="plug_mine:Writer"))
"""


def test_a_plugin_adds_environments_presets_and_loggers(site: Site) -> None:
    site.install("mine", EVERYTHING)
    site.load()
    assert "mine/Pole-v0" in ENVIRONMENTS
    assert gym.make("mine/Pole-v0").spec.max_episode_steps == 7  # type: ignore[union-attr]
    env = gym.make("gym_dr/LunarLanderDR-v3", randomization="moon")
    assert env.get_wrapper_attr("randomization") == Randomization({"gravity": Uniform(-2, -1)})
    assert LOGGERS.get("mine").open == "plug_mine:Writer"


BROKEN = {
    "raises when imported": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "misspells a hook": ("@hookimpl\ndef gym_dr_register_algorithm(register): pass", "gym_dr_register_algorithm"),
    "takes other arguments": ("@hookimpl\ndef gym_dr_register_algorithms(add): pass", "add"),
    "registers something else": (
        "@hookimpl\ndef gym_dr_register_algorithms(register): register('ppo')",
        "'str' object has no attribute 'name'",
    ),
    "registers no preset": (
        "@hookimpl\ndef gym_dr_register_presets(register): register('LunarLander', 'x', {})",
        "Preset 'x': expected a Randomization, got {}",
    ),
    "takes Gymnasium's id": (
        "@hookimpl\ndef gym_dr_register_environments(register):\n"
        "    register(EnvFamily(name='CartPole-v1', ids=(EnvId(id='CartPole-v1', entry_point='plug_bad:Config'),)))",
        "environment 'CartPole-v1' is already registered with Gymnasium",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_named_with_its_problem_and_the_way_to_disable_it(kind: str, site: Site) -> None:
    code, reason = BROKEN[kind]
    site.install("bad", code)
    site.install("good", GOOD)
    with pytest.raises(PluginError) as caught:
        site.load()
    message = str(caught.value)
    assert message.startswith("Plugin 'bad' of pkg-bad 1.2 cannot be loaded: ")
    assert reason in message
    assert message.endswith("Uninstall it, or set GYMDR_DISABLE_PLUGINS=bad.")
    assert "\n" not in message
    site.load("bad")
    assert "good" in ALGORITHMS


def test_two_plugins_of_one_name_are_an_error_that_names_both_packages(site: Site) -> None:
    site.install("good", GOOD)
    site.install("other", GOOD)
    with pytest.raises(PluginError, match=r"the algorithm 'good': pkg-good 1\.2 and pkg-other 1\.2\. Uninstall it"):
        site.load()


def test_disabling_one_of_two_that_clash_resolves_it(site: Site) -> None:
    site.install("good", GOOD)
    site.install("other", GOOD)
    assert disabled(site.load("other")) == ["other"]
    assert "good" in ALGORITHMS


def test_a_clash_with_gym_dr_names_gym_dr(site: Site) -> None:
    site.install("mine", GOOD.replace('"good"', '"a2c"'))
    with pytest.raises(PluginError, match=r"the algorithm 'a2c': gym_dr and pkg-mine 1\.2"):
        site.load()


def test_a_misspelled_name_is_refused_before_any_plugin_is_imported(site: Site) -> None:
    site.install("bad", "import os\nos.environ['EXPLODED'] = 'yes'")
    with pytest.raises(UnknownNameError, match=r"Unknown plugin in GYMDR_DISABLE_PLUGINS 'bda'\. Did you mean 'bad'"):
        site.load("bda")
    assert "EXPLODED" not in os.environ


@pytest.mark.parametrize(("value", "loaded"), [("", True), ("other", True), (" other , good ", False), ("all", False)])
def test_the_environment_variable_disables_by_name(
    value: str, loaded: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("good", GOOD)
    site.install("other", "")
    monkeypatch.setattr(loading, "entry_points", lambda group: site.entry_points())
    monkeypatch.setenv("GYMDR_DISABLE_PLUGINS", value)
    load_plugins.__wrapped__()  # past the cache
    assert ("good" in ALGORITHMS) == loaded
    assert "a2c" in ALGORITHMS  # gym_dr's own cannot be disabled


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("'no_such_module_here:Config'", "No module named 'no_such_module_here'"),
        ("'plug_odd:Missing'", "AttributeError"),
        ("dict", "expected a dataclass"),
    ],
)
def test_an_algorithm_whose_configuration_cannot_be_had_names_its_package(config: str, reason: str, site: Site) -> None:
    code = f"""
@hookimpl
def gym_dr_register_algorithms(register):
    register(Algorithm(name="odd", summary="", config={config}, train="plug_odd:train"))
"""
    site.install("odd", code)
    site.load()
    with pytest.raises(PluginError, match=r"Algorithm 'odd' of pkg-odd 1\.2 cannot be used") as error:
        find_algorithm("odd")
    assert reason in str(error.value)


def test_a_configuration_without_updates_is_refused(site: Site) -> None:
    site.install("odd", GOOD.replace("register(algo", "Config.__dataclass_fields__.pop('updates'); register(algo"))
    site.load()
    with pytest.raises(PluginError, match="Algorithm 'good': expected a field 'updates'"):
        find_algorithm("good")
