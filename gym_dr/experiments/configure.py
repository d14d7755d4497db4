"""Resolves a run's configuration, from keywords, a file and defaults, or from the folder of an existing run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, GymDrError, PluginError, shortened
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.presets import with_rules
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import (
    RunConfig,
    RunSettings,
    build_config,
    check_fields,
    check_sampler_options,
    read_config_file,
)
from gym_dr.runs.environments import check_module, param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import find_algorithm
from gym_dr.wording import spelled

SETTINGS = tuple(field.name for field in dataclasses.fields(RunSettings))
KEYWORDS = (  # of gym_dr.train that are not settings of a single run
    *("run_dir", "seeds", "launcher", "workers", "ray_address", "config", "trust"),
    *("randomization", "randomize", "total_steps", "overwrite", "progress", "command"),
)


def option_names(algorithm: Algorithm) -> list[str]:
    """The fields of an algorithm's configuration.

    Raises:
        PluginError: One has the name of a setting that every run has.
    """
    names = [field.name for field in dataclasses.fields(algorithm.config_class())]
    taken = sorted({*names} & {*SETTINGS, *KEYWORDS})
    if taken:
        raise PluginError(
            f"Algorithm {algorithm.name!r}: every run already has an option {', '.join(taken)}; rename the algorithm's."
        )
    return names


def sampler_option_names(sampler: Sampler, algorithm: Algorithm) -> list[str]:
    """The options of a sampler.

    Raises:
        PluginError: One has the name of another option of ``gymdr train``.
    """
    names = [field.name for field in sampler.option_fields()]
    taken = sorted({*names} & {*SETTINGS, *KEYWORDS, *option_names(algorithm)})
    if taken:
        raise PluginError(
            f"Sampler {sampler.name!r}: runs of {algorithm.name} already have an option {', '.join(taken)}; rename the "
            "sampler's."
        )
    return names


def _check_other_samplers(sampler: Sampler, names: Collection[str]) -> None:
    """Checks that no name is an option of another sampler.

    Raises:
        ConfigError: A name is.
    """
    for name in names:
        owners = [other.name for other in SAMPLERS.values() if name in [f.name for f in other.option_fields()]]
        if owners:
            raise ConfigError(f"{name}: expected with sampler {' or '.join(owners)}, got {sampler.name}.")


def resolve_config(
    algorithm: Algorithm,
    given: Mapping[str, Any],
    config: str | Path | None = None,
    trust: Collection[str] = (),
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Merges ``given`` over a file over the defaults.

    ``given`` has fields of ``RunSettings`` and of the algorithm's and the sampler's configuration. For the other
    arguments see ``gym_dr.train``.

    Raises:
        UnknownNameError: A setting, the environment, a preset or a parameter is unknown.
        ConfigError: A value has the wrong type or is out of range, or the file cannot be used.
        RandomizationError: A range is impossible.
    """
    own = option_names(algorithm)
    from_file = _read_file(str(config), algorithm) if config is not None else {}
    of_file = from_file.get("settings", {}).get("sampler", UNIFORM)
    sampler = SAMPLERS.get(str(given.get("sampler", of_file)))
    of_sampler = sampler_option_names(sampler, algorithm)
    _check_other_samplers(sampler, given.keys() - {*own, *SETTINGS, *of_sampler})
    drawing = {} if sampler.name != of_file else from_file.get("sampler_options", {})
    drawing |= check_sampler_options(sampler, {name: value for name, value in given.items() if name in of_sampler})
    options = check_fields(algorithm.config_class(), {name: value for name, value in given.items() if name in own})
    others = {name: value for name, value in given.items() if name not in (*own, *of_sampler)}
    known = (*own, *of_sampler, *KEYWORDS)
    settings = {**from_file.get("settings", {}), **check_fields(RunSettings, others, also=known)}
    if "env" not in given:
        check_module(settings.get("env", ""), trust)
    whole = from_file.get("randomization") if randomization is None else randomization
    if randomize:
        space = param_space_of(settings.get("env", RunSettings.env))
        whole = randomize if space is None else with_rules(whole, randomize, space)
    return build_config(algorithm, settings, {**from_file.get("options", {}), **options}, whole, drawing)


def steps_per_update(config: RunConfig) -> int | None:
    """Environment steps of one update, including reset steps; None if they depend on the length of episodes."""
    steps = getattr(config.options, "rollout_steps", None)
    return None if steps is None else int(steps * config.settings.num_envs)


def with_total_steps(config: RunConfig, total_steps: int) -> RunConfig:
    """The configuration with as many updates as it takes to make at least ``total_steps`` environment steps.

    Raises:
        ConfigError: It is no whole number above 0, or the steps of an update are not known in advance.
    """
    if isinstance(total_steps, bool) or not isinstance(total_steps, int) or total_steps < 1:
        raise ConfigError(
            f"{spelled('total_steps')}: expected a whole number of at least 1, got {shortened(total_steps)}."
        )
    each = steps_per_update(config)
    if each is None:
        raise ConfigError(
            f"{spelled('total_steps')}: expected an algorithm with rollouts of a fixed length, got {config.algorithm}, "
            f"whose updates take complete episodes. Use {spelled('updates')}."
        )
    options = dataclasses.replace(config.options, updates=-(-total_steps // each))
    return dataclasses.replace(config, options=options)


def open_run(path: str | Path, trust: Collection[str] = ()) -> tuple[RunFolder, RunConfig, Algorithm]:
    """Opens a run's folder, its configuration and its algorithm.

    The folder may be untrusted: its content is only data, which names no other files and, except for modules in
    ``trust``, runs no code.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: Its configuration cannot be read, or names a module or a file.
        UnknownNameError: Its algorithm or environment is not installed.
    """
    load_plugins()
    folder = RunFolder.open(path)
    algorithm = find_algorithm(folder.read_config()["algorithm"])
    parts = read_config_file(str(folder.config), algorithm)
    try:
        check_module(parts["settings"].get("env", ""), trust)
        saved = parts.get("randomization", {})  # 0.2 left it out for environments without parameters
        if isinstance(saved, str):
            raise ConfigError("randomization: expected a table in a run's configuration, got a name.")
        if isinstance(saved, Mapping):
            saved = Randomization.from_dict(saved, saved=True)
        config = build_config(algorithm, parts["settings"], parts["options"], saved, parts["sampler_options"])
    except GymDrError as error:
        raise type(error)(f"{folder.config}: {error}") from None
    return folder, config, algorithm


def _read_file(path: str, algorithm: Algorithm) -> dict[str, Any]:
    """Reads a configuration; resolves a randomization file that it names relative to it."""
    table = read_config_file(path, algorithm)
    if isinstance(named := table.get("randomization"), str):
        table["randomization"] = file_beside(Path(path), named)
    return table


def file_beside(path: Path, named: str) -> str:
    """Resolves the randomization that a file names: a preset, or a file beside it.

    Raises:
        ConfigError: It names a file that is elsewhere.
    """
    if not (named.endswith((".toml", ".json")) or {"/", os.sep} & set(named)):
        return named
    folder = path.parent
    if not (folder / named).resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{path}: randomization: expected a file beside or below this one, got {shortened(named)}. Copy it there."
        )
    return str(folder / named)
