"""The test conditions behind a report: nominal values, training draws, and points that fill what training drew from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gym_dr.evaluation.cells import CellSet, correlated, sobol, varies
from gym_dr.evaluation.sets import DEFAULT, sets_for, sobol_name, training_sets
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.presets import resolve

EPISODES = 100  # on nominal values and on training draws
POINTS, POINT_EPISODES = 128, 5  # of a distribution, for sensitivities and maps


def report_suite(policies: Sequence[FrozenPolicy]) -> list[CellSet]:
    """The sets that a report on policies needs; the preset "default" stands for unknown training distributions."""
    space = policies[0].space
    trained = training_sets([policy for policy in policies if not policy.reference])
    sets = sets_for(policies, (), EPISODES)
    if space is None:
        return sets
    varied = {name: rules for name, rules in trained.items() if varies(space, rules)}
    for name, randomization in (varied or {DEFAULT: resolve(DEFAULT, space)}).items():
        points = POINTS
        if correlated(randomization):  # one cell per point instead of d + 2: more points for as many cells
            drawn = sum(not isinstance(rule.distribution, Constant) for rule in randomization.values())
            points *= 2 ** math.ceil(math.log2(drawn + 2))
        sets.append(sobol(sobol_name(name), randomization, space, points, POINT_EPISODES))
    return sets
