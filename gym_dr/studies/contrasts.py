"""Contrasts between the variants of a study, paired by seed: of pairs of variants, or of factors."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, check_known, located, shortened
from gym_dr.options import check_fields, expect, is_whole
from gym_dr.studies.variants import SEEDS, Variant

BASELINE = "baseline"  # name of the variant with the first level of every factor
APART = "their effects alone"  # what the effect of two levels together is compared with
JOIN = "+"  # between the levels in the name of a variant


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of variants.

    Attributes:
        variant: What is compared: a variant, or a level of a factor.
        other: The variant or level to compare with.
        weights: Variant -> weight; the weights add up to 0.
    """

    variant: str
    other: str
    weights: Mapping[str, float]

    def over_seeds(self, values: Mapping[str, Mapping[int, float]]) -> Array:
        """The contrast for each seed that all of its variants have.

        Args:
            values: Variant -> seed -> value.
        """
        first, *others = (values.get(variant, {}) for variant in self.weights)
        seeds = [seed for seed in first if all(seed in one for one in others)]
        return np.array([sum(w * values[variant][seed] for variant, w in self.weights.items()) for seed in seeds])

    def same_budget(self, variants: Mapping[str, Variant]) -> bool:
        """Whether all compared variants have the same budget.

        Args:
            variants: The study's variants by name.
        """
        sums: dict[int | None, float] = {}
        for name, weight in self.weights.items():
            sums[variants[name].asked] = sums.get(variants[name].asked, 0.0) + weight
        return None not in sums and all(abs(total) < 1e-9 for total in sums.values())


# ---- pairs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Comparisons:
    """The table ``comparisons`` of a study's file."""

    baseline: str | None = None
    pairs: tuple[tuple[str, ...], ...] = ()


def read_comparisons(table: Mapping[str, Any], names: Sequence[str]) -> list[Contrast]:
    """Reads the table ``comparisons`` of a study's file: pairs, or a baseline, by default the first variant.

    Args:
        table: The table.
        names: Names of all variants.

    Raises:
        UnknownNameError: A key or a variant is unknown.
        ConfigError: There are a baseline and pairs, or a pair does not have two different variants.
    """
    given = _Comparisons(**check_fields(_Comparisons, table))
    if given.pairs and given.baseline:
        raise ConfigError("expected baseline or pairs, got both.")
    baseline = given.baseline or names[0]
    pairs = given.pairs or [(name, baseline) for name in names if name != baseline]
    check_known("variant", baseline, names)
    for pair in pairs:
        _check_pair("pairs: expected two variants", "variant", pair, names)
    return [Contrast(variant=one, other=other, weights={one: 1.0, other: -1.0}) for one, other in dict.fromkeys(pairs)]


def _check_pair(expected: str, kind: str, pair: Sequence[str], names: Collection[str]) -> None:
    """Checks that a pair has two different, known names."""
    for name in pair:
        check_known(kind, name, names)
    if len(pair) != 2 or len(set(pair)) != 2:
        raise ConfigError(f"{expected} in each, got {shortened(list(pair))}.")


# ---- factors ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Design:
    """Factors, which define variants and the contrasts between them.

    The first levels of all factors are the baseline. Around it, each factor varies alone and each crossed pair jointly.

    Attributes:
        factors: Factor -> level, the baseline's first -> settings, options, randomization and number of seeds.
        crossed: Pairs of factors whose levels are combined with each other.
    """

    factors: Mapping[str, Mapping[str, Mapping[str, Any]]]
    crossed: Sequence[tuple[str, str]] = ()

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        """Factor -> its levels, the baseline's first."""
        return {factor: list(levels) for factor, levels in self.factors.items()}

    @cached_property
    def combinations(self) -> dict[str, dict[str, str]]:
        """Name of a variant -> the factors in which it differs from the baseline, and their levels; baseline first."""
        return {self.name_of(levels): levels for levels in self.varied()}

    def varied(self) -> list[dict[str, str]]:
        """For each variant, the levels that differ from the baseline's."""
        groups = [(), *((factor,) for factor in self.levels), *self.crossed]
        return [
            dict(zip(group, chosen, strict=True))
            for group in groups
            for chosen in itertools.product(*(self.levels[factor][1:] for factor in group))
        ]

    def name_of(self, levels: Mapping[str, str]) -> str:
        """The name of the variant with these levels, and otherwise the baseline's."""
        named = [levels[factor] for factor, known in self.levels.items() if levels.get(factor, known[0]) != known[0]]
        return JOIN.join(named) or BASELINE

    def variants(self) -> dict[str, dict[str, Any]]:
        """Name of a variant -> the merged tables of its levels; the smallest number of seeds wins."""
        found = {}
        for name, own in self.combinations.items():
            tables = [levels[own.get(factor, self.levels[factor][0])] for factor, levels in self.factors.items()]
            found[name] = {key: value for table in tables for key, value in table.items()}
            if counts := [table[SEEDS] for table in tables if SEEDS in table]:
                found[name][SEEDS] = min(counts)
        return found

    def pairs(self, factor: str, level: str) -> list[tuple[str, str]]:
        """Pairs of variants that differ only in a factor: the first has the baseline's level, the second ``level``."""
        found = [(name, self.name_of({**own, factor: level})) for name, own in self.combinations.items()]
        return [
            (one, other) for one, other in found if factor not in self.combinations[one] and other in self.combinations
        ]

    def contrasts(self) -> list[Contrast]:
        """Main effects of levels, and interactions of crossed levels.

        A main effect is a level's difference from the baseline's level, averaged over all pairs of variants that differ
        only in it. An interaction is the change by two levels together minus the sum of the changes by each alone.
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
                found.append(Contrast(variant=both, other=APART, weights=weights))
        return found


@dataclass(frozen=True, kw_only=True)
class _Crossing:
    """The table ``design`` of a study's file."""

    cross: tuple[tuple[str, ...], ...] = ()


def read_design(factors: Mapping[str, Any], design: Mapping[str, Any]) -> Design:
    """Reads the tables ``factors`` and ``design`` of a study's file.

    Args:
        factors: Factor -> level -> settings, options, randomization and number of seeds.
        design: The crossed pairs.

    Raises:
        UnknownNameError: A key or a crossed factor is unknown.
        ConfigError: A factor has a single level, two variants share a name, or two factors set the same option.
    """
    with located("[design]"):
        crossed = check_fields(_Crossing, design).get("cross", ())
        for pair in crossed:
            _check_pair("cross: expected two factors", "factor", pair, factors)
    ordered = (sorted(pair, key=list(factors).index) for pair in crossed)
    found = Design(factors=factors, crossed=list(dict.fromkeys((first, second) for first, second in ordered)))
    owners: dict[str, str] = {}  # option -> its factor
    with located("[factors]"):
        for factor, levels in factors.items():
            given = levels.items() if isinstance(levels, Mapping) else ()
            if len(given) < 2 or not all(isinstance(level, str) and isinstance(own, Mapping) for level, own in given):
                expected = "a table of at least two levels, which are tables, the baseline's first"
                raise ConfigError(f"{factor}: expected {expected}; got {shortened(levels)}.")
            for key, value in (item for _, own in given for item in own.items()):
                if key == SEEDS:
                    expect(is_whole(value), f"{factor}: {key}", "a whole number", value)
                elif (owner := owners.setdefault(key, factor)) != factor:
                    raise ConfigError(
                        f"expected each option in the levels of one factor, got {key} in {owner} and {factor}."
                    )
        names = [found.name_of(levels) for levels in found.varied()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"expected levels with distinct names other than {BASELINE}; got {twice[0]!r}.")
    return found
