"""The factors of a study: which levels its variants combine, so that effects of levels can be estimated.

The first levels of all factors are the baseline. Around it, each factor is varied alone and each crossed pair together.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gym_dr.errors import ConfigError, check_known, located, shortened
from gym_dr.options import check_fields, expect, is_whole

BASELINE = "baseline"  # name of the variant with the first level of every factor
JOIN = "+"  # between the levels in the name of a variant
SEEDS = "seeds"  # key of a level: it is trained with that many of the study's seeds
NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)  # of a factor or level; without ``JOIN``


@dataclass(frozen=True, kw_only=True)
class Design:
    """Factors, their levels, and which pairs of factors are crossed."""

    levels: Mapping[str, tuple[str, ...]]  # factor -> its levels, that of the baseline first
    crossed: tuple[tuple[str, str], ...] = ()  # factors whose levels are combined with each other
    seeds: Mapping[tuple[str, str], int]  # (factor, level) -> number of seeds; levels with all seeds are left out

    @cached_property
    def combinations(self) -> dict[str, dict[str, str]]:
        """Name of a variant -> the factors in which it differs from the baseline, and their levels; baseline first."""
        found = {}
        for varied in [(), *((factor,) for factor in self.levels), *self.crossed]:
            for chosen in itertools.product(*(self.levels[factor][1:] for factor in varied)):
                own = dict(zip(varied, chosen, strict=True))
                found[self.name_of(own)] = own
        return found

    def name_of(self, levels: Mapping[str, str]) -> str:
        """The name of the variant with these levels of some factors, and the baseline's of all others."""
        named = [levels[factor] for factor, known in self.levels.items() if levels.get(factor, known[0]) != known[0]]
        return JOIN.join(named) or BASELINE

    def all_levels(self, variant: str) -> dict[str, str]:
        """The level of each factor in a variant."""
        return {factor: known[0] for factor, known in self.levels.items()} | self.combinations[variant]

    def pairs(self, factor: str, level: str) -> list[tuple[str, str]]:
        """Variants with the baseline's level of a factor, each with the one that differs in this level alone."""
        found = [(name, self.name_of({**own, factor: level})) for name, own in self.combinations.items()]
        return [
            (one, other) for one, other in found if factor not in self.combinations[one] and other in self.combinations
        ]

    def num_seeds(self, variant: str, total: int) -> int:
        """How many of a study's seeds a variant is trained with: as many as all of its levels are."""
        return min([total, *(self.seeds.get(one, total) for one in self.all_levels(variant).items())])

    def to_dict(self) -> dict[str, Any]:
        """The form of ``study.json``."""
        return {
            "factors": {factor: list(known) for factor, known in self.levels.items()},
            "cross": [list(pair) for pair in self.crossed],
            "variants": {name: self.all_levels(name) for name in self.combinations},
        }


@dataclass(frozen=True, kw_only=True)
class _Crossing:
    """The table ``design`` of a study's file."""

    cross: tuple[tuple[str, ...], ...] = ()


def read_design(
    factors: Mapping[str, Any], design: Mapping[str, Any], seeds: int
) -> tuple[Design, dict[str, dict[str, Any]]]:
    """Reads the tables ``factors`` and ``design`` of a study's file.

    Args:
        factors: Factor -> level -> settings, options and draws.
        design: The crossed pairs.
        seeds: Number of seeds of the study.

    Returns:
        The design, and for each of its variants the settings, options and draws of all of its levels.

    Raises:
        UnknownNameError: A key or a factor is unknown.
        ConfigError: A factor has a single level, two levels share a name, two factors set the same option, or a number
            of seeds is impossible.
    """
    with located("[factors]"):
        tables = {factor: _levels_of(factor, given) for factor, given in factors.items()}
        _check_names(tables)
        _check_apart(tables)
    limits = {}
    for factor, levels in tables.items():
        for level, own in levels.items():
            if SEEDS in own:
                number, expected = own[SEEDS], f"a number from 1 to {seeds}: how many of the study's seeds to use"
                place = f"[factors.{factor}.{level}]: {SEEDS}"
                expect(is_whole(number) and 1 <= number <= seeds, place, expected, number)
                limits[factor, level] = int(number)
    with located("[design]"):
        crossed = _crossed(_Crossing(**check_fields(_Crossing, design)).cross, list(tables))
    found = Design(levels={name: tuple(levels) for name, levels in tables.items()}, crossed=crossed, seeds=limits)
    own = {}
    for variant in found.combinations:
        chosen = [tables[factor][level] for factor, level in found.all_levels(variant).items()]
        own[variant] = {key: value for level in chosen for key, value in level.items() if key != SEEDS}
    return found, own


def _levels_of(factor: str, given: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(given, Mapping) or len(given) < 2:
        expected = "a table of at least two levels, the baseline's first"
        raise ConfigError(f"{factor}: expected {expected}; got {shortened(given)}.")
    for level, own in given.items():
        if not isinstance(own, Mapping):
            raise ConfigError(f"{factor}: {level}: expected a table of settings and options, got {shortened(own)}.")
    return dict(given)


def _check_names(tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Checks that combinations have distinct names, with which folders can be named."""
    owners = {BASELINE: "the baseline"}
    for factor, levels in tables.items():
        for name in (factor, *levels):
            if not isinstance(name, str) or not NAME.fullmatch(name):  # a mapping of Python may have any key
                raise ConfigError(f"{factor}: expected names of letters, digits and _.- (at most 64), got {name!r}.")
        for level in list(levels)[1:]:
            owner = owners.setdefault(level.casefold(), factor)  # some file systems ignore case
            if owner != factor or sum(level.casefold() == other.casefold() for other in levels) > 1:
                raise ConfigError(
                    f"{factor}: expected levels of distinct names, since variants are named after them; got {level!r}, "
                    f"which {owner} has too."
                )


def _check_apart(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Checks that no option belongs to two factors, whose effects would then not be apart."""
    owners: dict[str, str] = {}
    for factor, levels in tables.items():
        for key in (key for own in levels.values() for key in own if key != SEEDS):
            if (owner := owners.setdefault(key, factor)) != factor:
                raise ConfigError(
                    f"expected each option in the levels of one factor, got {key} in {owner} and {factor}."
                )


def _crossed(pairs: Sequence[Sequence[str]], factors: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for pair in pairs:
        for name in pair:
            check_known("factor", name, factors)
        if len(set(pair)) != 2 or len(pair) != 2:
            raise ConfigError(f"cross: expected two factors in each, got {shortened(list(pair))}.")
        first, second = sorted(pair, key=factors.index)
        found.append((first, second))
    return tuple(dict.fromkeys(found))
