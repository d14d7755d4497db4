"""Contrasts: differences between variants, or between means of variants, paired by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of variants.

    Attributes:
        variant: What is compared: a variant, or a level of a factor.
        other: What it is compared with.
        weights: Variant -> its weight; they add up to 0.
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

    def same_budget(self, budgets: Mapping[str, int | None]) -> bool:
        """Whether it compares only variants with the same budget; ``budgets`` has that of each variant."""
        sums: dict[int | None, float] = {}
        for variant, weight in self.weights.items():
            sums[budgets[variant]] = sums.get(budgets[variant], 0.0) + weight
        return None not in sums and all(abs(total) < 1e-9 for total in sums.values())


def pair(variant: str, other: str) -> Contrast:
    """A variant compared with another one."""
    return Contrast(variant=variant, other=other, weights={variant: 1.0, other: -1.0})
