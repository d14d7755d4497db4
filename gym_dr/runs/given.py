"""What keywords and files give for the configuration of a run, checked by name, type and range."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gym_dr.errors import ConfigError, GymDrError, PluginError, located, shortened
from gym_dr.options import check_fields, check_values
from gym_dr.randomization.files import read_table
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler
from gym_dr.registry import load_object
from gym_dr.runs.config import KEYWORDS, SETTINGS, RunSettings
from gym_dr.training.api import Algorithm
from gym_dr.version import WRITTEN_BY
from gym_dr.wrappers.adapt import OWN_KEYWORDS


class Given(NamedTuple):
    """Checked values, each name once."""

    settings: Mapping[str, Any]  # of ``RunSettings``
    options: Mapping[str, Any]  # of the algorithm
    sampler_options: Mapping[str, Any]
    randomization: Any = None  # in any form; None if it is not given


def read_config_file(path: str, algorithm: Algorithm) -> dict[str, Any]:
    """Reads a configuration file and checks its settings and options, but not yet its randomization.

    Raises:
        ConfigError: The file cannot be read, is for another algorithm, or has a value of the wrong type or range.
        UnknownNameError: It has an unknown key.
    """
    table = read_table(path)
    table.pop(WRITTEN_BY, None)
    written_for = table.pop("algorithm", algorithm.name)
    if written_for != algorithm.name:
        raise ConfigError(f"{path}: is for algorithm {shortened(written_for)}, not {algorithm.name!r}.")
    with located(path):
        sampler = SAMPLERS.get(str(table.get("sampler", UNIFORM)))
    options, of_sampler = table.pop(algorithm.name, {}), table.pop(sampler.name, {})
    others = {"randomization": table.pop("randomization")} if "randomization" in table else {}
    fields = {algorithm.name: dataclasses.fields(algorithm.config_class()), sampler.name: sampler.option_fields()}
    for name, values in {algorithm.name: options, sampler.name: of_sampler}.items():
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: expected a table [{name}], got {shortened(values)}.")
        if misplaced := sorted(table.keys() & {field.name for field in fields[name]}):
            raise ConfigError(f"{path}: {', '.join(misplaced)}: expected in the table [{name}], not outside it.")
    if other := next((name for name in table if name in SAMPLERS), None):
        raise ConfigError(f"{path}: [{other}]: expected with sampler = {other!r}, got {sampler.name!r}.")
    with located(path):
        known = ("algorithm", "randomization", algorithm.name, sampler.name)
        settings = check_fields(RunSettings, table, also=known)
        options = check_fields(algorithm.config_class(), options)
        of_sampler = _check_sampler_options(sampler, of_sampler)
    return {"settings": settings, "options": options, "sampler_options": of_sampler, **others}


def read_named(path: Path, algorithm: Algorithm) -> Given:
    """Reads a file that the user named, which may name a file with a randomization."""
    read = Given(**read_config_file(str(path), algorithm))
    named = read.randomization
    return read._replace(randomization=file_beside(path, named)) if isinstance(named, str) else read


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


def check_given(algorithm: Algorithm, given: Mapping[str, Any], sampler_of_file: str) -> Given:
    """Checks names and types of keywords, but not their ranges."""
    sampler = SAMPLERS.get(str(given.get("sampler", sampler_of_file)))
    own, of_sampler = option_names(algorithm), sampler_option_names(sampler, algorithm)
    for name in given.keys() - {*own, *SETTINGS, *of_sampler}:
        if owners := [other.name for other in SAMPLERS.values() if name in [f.name for f in other.option_fields()]]:
            raise ConfigError(f"{name}: expected with sampler {' or '.join(owners)}, got {sampler.name}.")
    drawing = _check_sampler_options(sampler, {name: value for name, value in given.items() if name in of_sampler})
    options = check_fields(algorithm.config_class(), {name: value for name, value in given.items() if name in own})
    others = {name: value for name, value in given.items() if name not in (*own, *of_sampler)}
    return Given(check_fields(RunSettings, others, also=(*own, *of_sampler, *KEYWORDS)), options, drawing)


def option_names(algorithm: Algorithm) -> list[str]:
    """The fields of an algorithm's configuration.

    Raises:
        PluginError: One has the name of a setting that every run has.
    """
    names = [field.name for field in dataclasses.fields(algorithm.config_class())]
    if taken := sorted({*names} & {*SETTINGS, *KEYWORDS}):
        raise PluginError(
            f"Algorithm {algorithm.name!r}: every run already has an option {', '.join(taken)}; rename the algorithm's."
        )
    return names


def sampler_option_names(sampler: Sampler, algorithm: Algorithm) -> list[str]:
    """The options of a sampler.

    Raises:
        PluginError: One has the name of another option of ``gymdr train``, or of a keyword of ``AdaptParams``.
    """
    names = [field.name for field in sampler.option_fields()]
    if taken := sorted({*names} & {*OWN_KEYWORDS}):
        raise PluginError(
            f"Sampler {sampler.name!r}: AdaptParams already has a keyword {', '.join(taken)}; rename the sampler's."
        )
    if taken := sorted({*names} & {*SETTINGS, *KEYWORDS, *option_names(algorithm)}):
        raise PluginError(
            f"Sampler {sampler.name!r}: runs of {algorithm.name} already have an option {', '.join(taken)}; rename the "
            "sampler's."
        )
    return names


def _check_sampler_options(sampler: Sampler, values: Mapping[str, Any]) -> dict[str, Any]:
    """Applies ``check_fields`` to a sampler's options; a sampler may have none."""
    if not sampler.option_fields():
        sampler.make_options(values)
        return {}
    return check_fields(load_object(sampler.options), values)


def make_options(algorithm: Algorithm, options: Mapping[str, Any]) -> Any:
    """The algorithm's configuration.

    Raises:
        ConfigError: A value is out of range, also where a plugin's configuration says so in its own way.
    """
    try:
        made = algorithm.config_class()(**options)
        check_values(made)  # a plugin's configuration may leave it to us
        return made
    except GymDrError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{algorithm.name}: {error}") from None
