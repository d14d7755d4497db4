"""Factors: a way to write a study's variants, and the contrasts between them.

The first levels of all factors are the baseline. Around it, each factor is varied alone and each crossed pair together.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gym_dr.errors import ConfigError, check_known, located, shortened
from gym_dr.options import check_fields, expect, is_whole
from gym_dr.studies.contrasts import Contrast

BASELINE = "baseline"  # name of the variant with the first level of every factor
JOIN = "+"  # between the levels in the name of a variant
SEEDS = "seeds"  # key of a level, and of a variant: it is trained with that many of the study's seeds


@dataclass(frozen=True, kw_only=True)
class Design:
    """Factors, their levels, and which pairs of factors are crossed."""

    factors: Mapping[str, Mapping[str, Mapping[str, Any]]]  # factor -> level, the baseline's first -> settings, options
    crossed: Sequence[tuple[str, str]] = ()  # factors whose levels are combined with each other

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        """Factor -> its levels, that of the baseline first."""
        return {factor: list(levels) for factor, levels in self.factors.items()}

    @cached_property
    def combinations(self) -> dict[str, dict[str, str]]:
        """Name of a variant -> the factors in which it differs from the baseline, and their levels; baseline first."""
        return {self.name_of(levels): levels for levels in self.varied()}

    def varied(self) -> list[dict[str, str]]:
        """The levels that differ from the baseline's, for each variant."""
        groups = [(), *((factor,) for factor in self.levels), *self.crossed]
        return [
            dict(zip(group, chosen, strict=True))
            for group in groups
            for chosen in itertools.product(*(self.levels[factor][1:] for factor in group))
        ]

    def name_of(self, levels: Mapping[str, str]) -> str:
        """The name of the variant with these levels of some factors, and the baseline's of all others."""
        named = [levels[factor] for factor, known in self.levels.items() if levels.get(factor, known[0]) != known[0]]
        return JOIN.join(named) or BASELINE

    def variants(self) -> dict[str, dict[str, Any]]:
        """Name -> the settings, options and draws of all of its levels, and the fewest seeds of any."""
        found = {}
        for name, own in self.combinations.items():
            tables = [levels[own.get(factor, self.levels[factor][0])] for factor, levels in self.factors.items()]
            found[name] = {key: value for table in tables for key, value in table.items()}
            if counts := [table[SEEDS] for table in tables if SEEDS in table]:
                found[name][SEEDS] = min(counts)
        return found

    def pairs(self, factor: str, level: str) -> list[tuple[str, str]]:
        """Variants with the baseline's level of a factor, each with the one that differs in this level alone."""
        found = [(name, self.name_of({**own, factor: level})) for name, own in self.combinations.items()]
        return [
            (one, other) for one, other in found if factor not in self.combinations[one] and other in self.combinations
        ]

    def contrasts(self) -> list[Contrast]:
        """The effects of levels, and of combinations of crossed levels.

        A main effect is a level's difference from the baseline's level, averaged over all pairs of variants that differ
        in it alone. An interaction is how much more two levels change together than each of them alone, added up.
        """
        found = []
        for factor, (first, *others) in self.levels.items():
            for level in others:
                pairs = self.pairs(factor, level)
                weights = {other: 1 / len(pairs) for _, other in pairs} | {one: -1 / len(pairs) for one, _ in pairs}
                found.append(Contrast(variant=f"{factor}={level}", other=f"{factor}={first}", weights=weights))
        for name, own in self.combinations.items():
            if len(own) == 2:
                apart = [self.name_of({factor: level}) for factor, level in own.items()]
                both = " with ".join(f"{factor}={level}" for factor, level in own.items())
                weights = {name: 1.0, BASELINE: 1.0, **dict.fromkeys(apart, -1.0)}
                found.append(Contrast(variant=both, other="their effects alone", weights=weights))
        return found


@dataclass(frozen=True, kw_only=True)
class _Crossing:
    """The table ``design`` of a study's file."""

    cross: tuple[tuple[str, ...], ...] = ()


def read_design(factors: Mapping[str, Any], design: Mapping[str, Any]) -> Design:
    """Reads the tables ``factors`` and ``design`` of a study's file.

    Args:
        factors: Factor -> level -> settings, options and draws.
        design: The crossed pairs.

    Raises:
        UnknownNameError: A key or a factor is unknown.
        ConfigError: A factor has a single level, two variants share a name, or two factors set the same option.
    """
    with located("[factors]"):
        for factor, levels in factors.items():
            given = levels.items() if isinstance(levels, Mapping) else ()
            if len(given) < 2 or not all(isinstance(level, str) and isinstance(own, Mapping) for level, own in given):
                expected = "a table of at least two levels, which are tables, the baseline's first"
                raise ConfigError(f"{factor}: expected {expected}; got {shortened(levels)}.")
        _check_apart(factors)
    with located("[design]"):
        found = Design(factors=factors, crossed=_crossed(check_fields(_Crossing, design).get("cross", ()), factors))
    names = [found.name_of(levels) for levels in found.varied()]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"[factors]: expected levels whose names are distinct, and not {BASELINE}; got {twice[0]!r}.")
    return found


def _check_apart(factors: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Checks that no option but ``SEEDS`` belongs to two factors, whose effects would then not be apart."""
    owners: dict[str, str] = {}
    for factor, levels in factors.items():
        for key, value in (item for own in levels.values() for item in own.items()):
            if key == SEEDS:
                expect(is_whole(value), f"{factor}: {key}", "a whole number", value)
            elif (owner := owners.setdefault(key, factor)) != factor:
                raise ConfigError(
                    f"expected each option in the levels of one factor, got {key} in {owner} and {factor}."
                )


def _crossed(pairs: Sequence[Sequence[str]], factors: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for pair in pairs:
        for name in pair:
            check_known("factor", name, factors)
        if len(set(pair)) != 2 or len(pair) != 2:
            raise ConfigError(f"cross: expected two factors in each, got {shortened(list(pair))}.")
        first, second = sorted(pair, key=list(factors).index)
        found.append((first, second))
    return tuple(dict.fromkeys(found))
