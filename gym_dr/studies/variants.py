"""Variants that a study or a tuning trains, read from its file and checked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from gym_dr.errors import ConfigError, as_path, located, shortened
from gym_dr.options import check_fields, expect, is_whole
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.files import file_beside, read_table
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM
from gym_dr.runs.config import SETTINGS, RunConfig, RunSettings, with_total_steps
from gym_dr.runs.configure import build_config, option_names
from gym_dr.runs.environments import check_source
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS, find_algorithm

SEEDS = "seeds"  # key of a variant or a factor's level: how many of the file's seeds to train
TOTAL = "total_steps"
OF_A_VARIANT = ("algorithm", "randomization", "randomize", SEEDS, TOTAL)  # keys that are neither settings nor options


@dataclass(frozen=True, kw_only=True)
class Head:
    """Top-level keys of a file that are not tables."""

    env: str = RunSettings.env
    algorithm: str | None = None
    seeds: tuple[int, ...] = ()
    total_steps: int | None = None  # environment steps, in place of ``updates``


AnyHead = TypeVar("AnyHead", bound=Head)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to train.

    Attributes:
        name: Its name and that of its folder.
        algorithm: Its algorithm.
        config: Configuration of the run with the first seed.
        seeds: Its seeds.
        total_steps: Environment steps that the file asks for; the last update may make some more. None if it asks for
            updates.
    """

    name: str
    algorithm: Algorithm
    config: RunConfig
    seeds: tuple[int, ...]
    total_steps: int | None

    def with_seed(self, seed: int) -> RunConfig:
        """The configuration of its run with a seed."""
        return replace(self.config, settings=replace(self.config.settings, seed=seed))

    @property
    def content(self) -> dict[str, Any]:
        """The content of its runs' ``config.json`` without the seed."""
        return {key: value for key, value in json.loads(self.config.to_json()).items() if key != "seed"}

    @property
    def budget(self) -> int | None:
        """Environment steps of one run, including reset steps; None if they depend on the length of episodes."""
        each = self.config.steps_per_update
        return None if each is None else int(self.config.options.updates * each)

    @property
    def asked(self) -> int | None:
        """Its budget, or the ``total_steps`` that it rounds up: equal in variants with updates of other sizes."""
        return self.total_steps or self.budget


@dataclass(frozen=True, kw_only=True)
class VariantFile:
    """A file that describes variants.

    Attributes:
        table: Its content.
        path: The file; None for a mapping in Python.
    """

    table: Mapping[str, Any]
    path: Path | None = None

    def inner(self, key: str) -> Mapping[str, Any]:
        """The table with this key; empty if there is none."""
        return inner_table(self.table, key)

    def head(self, cls: type[AnyHead], tables: Mapping[str, Collection[str]]) -> AnyHead:
        """The top-level keys other than ``tables`` and tables of algorithms and samplers, as a dataclass.

        Args:
            cls: The dataclass.
            tables: Name of a table -> keys that belong into it.

        Raises:
            UnknownNameError: A key is unknown.
            ConfigError: A value cannot be used, a key belongs into a table, or there are no seeds.
        """
        others = (*tables, *ALGORITHMS, *SAMPLERS)
        top = {name: value for name, value in self.table.items() if name not in others}
        for name in top.keys() - {field.name for field in fields(cls)}:
            named = {self.table.get("algorithm", cls.algorithm), *self.table}
            algorithms = [each for each in ALGORITHMS if each in named] or ALGORITHMS
            owned: dict[str, Collection[str]] = {each: option_names(ALGORITHMS.get(each)) for each in algorithms}
            owned |= {each: [field.name for field in SAMPLERS.get(each).option_fields()] for each in SAMPLERS}
            owned |= {**tables, "settings": {*SETTINGS} - {"seed"}}
            if places := [f"[{table}]" for table, keys in owned.items() if name in keys]:
                raise ConfigError(f"{name}: expected in the table {' or '.join(places)}, not at the top of the file.")
        head = cls(**check_fields(cls, top, also=others))
        if not head.seeds or len(set(head.seeds)) != len(head.seeds) or min(head.seeds) < 0:
            expected = "distinct whole numbers of at least 0, such as [1, 2, 3, 4, 5]"
            raise ConfigError(f"seeds: expected {expected}; got {shortened(list(head.seeds))}.")
        return head

    def beside(self, randomization: Any) -> Any:
        """A randomization; the path of a file is relative to this file."""
        if self.path is None or not isinstance(randomization, str):
            return randomization
        return file_beside(self.path, randomization)

    def variant(self, name: str, own: Mapping[str, Any], head: Head) -> Variant:
        """A variant with the file's common settings and options.

        Args:
            name: Its name.
            own: Its own settings, options, randomization and number of seeds.
            head: The file's environment, algorithm and seeds. A variant with its own number of seeds takes the first
                ones.

        Raises:
            UnknownNameError: A key or name is unknown.
            ConfigError: A value cannot be used.
            RandomizationError: A range is impossible.
        """
        chosen = own.get("algorithm", head.algorithm)
        if not isinstance(chosen, str):
            raise ConfigError(f"algorithm: expected a name, here or at the top of the file, got {shortened(chosen)}.")
        found = find_algorithm(chosen)
        if found.policy_loader() is None:
            raise ConfigError(f"algorithm {chosen!r} has no load_policy: its runs cannot be evaluated.")
        number, most = own.get(SEEDS, len(head.seeds)), len(head.seeds)
        whole = is_whole(number) and 1 <= number <= most
        expect(whole, SEEDS, f"how many of the study's seeds to use, from 1 to {most}", number)
        drawn = own if "randomization" in own else {**self.table, **own}  # a variant's own randomization replaces both
        common = self.inner("settings")
        sampler = SAMPLERS.get(str(own.get("sampler", common.get("sampler", UNIFORM))))
        given = {**common, **self.inner(found.name), **self.inner(sampler.name)}
        given |= {key: value for key, value in own.items() if key not in OF_A_VARIANT}
        if shared := [key for key in ("env", "seed") if key in given]:
            raise ConfigError(f"{shared[0]}: expected at the top of the file, since all runs share it.")
        config = build_config(
            found,
            {
                "eval_episodes": 0,
                **given,
                "env": head.env,
                "seed": head.seeds[0],
            },  # evaluated together after training
            randomization=self.beside(drawn.get("randomization")),
            randomize=drawn.get("randomize"),
            by_seed=False,  # the same for all seeds
        )
        if (total := own.get(TOTAL, head.total_steps)) is not None:
            config = with_total_steps(config, total, given)
        return Variant(name=name, algorithm=found, config=config, seeds=head.seeds[:number], total_steps=total)

    def check_used(self, variants: Iterable[Variant]) -> None:
        """Checks that each table of an algorithm or sampler is used by a variant.

        Raises:
            ConfigError: A table is not used.
        """
        used = {each for v in variants for each in (v.algorithm.name, v.config.settings.sampler)}
        for name in self.table:
            if name in {*ALGORITHMS, *SAMPLERS} - used:
                raise ConfigError(f"[{name}]: expected options of an algorithm or sampler that is used.")


@contextlib.contextmanager
def opened(given: str | Path | Mapping[str, Any], trust: Collection[str]) -> Iterator[VariantFile]:
    """Opens a TOML or JSON file, or a mapping of the same content; errors in the block name the file.

    Args:
        given: What the user gave.
        trust: Modules that the file may import.

    Raises:
        ConfigError: The file cannot be read, or imports a module that is not trusted.
    """
    load_plugins()
    if isinstance(given, Mapping):
        yield VariantFile(table=given)
        return
    table = read_table(given)
    with located(given):
        check_source(str(table.get("env", "")), trust)
        yield VariantFile(table=table, path=as_path(given))


def inner_table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table inside another; empty if there is none.

    Raises:
        ConfigError: The value is not a table.
    """
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise ConfigError(f"{key}: expected a table, got {shortened(found)}.")
    return found
