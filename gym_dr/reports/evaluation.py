"""The evaluation behind a report: the folder's, completed with the sets that a report needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from gym_dr.evaluation.cells import CellSet, correlated, sobol, varies
from gym_dr.evaluation.evaluate import ProgressCallback, evaluate_policies
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.sets import DEFAULT, sets_for, sobol_name, training_sets
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.presets import resolve

EPISODES = 100  # on nominal values and on training draws
POINTS, POINT_EPISODES = 128, 5  # of a distribution, for sensitivities and maps


def complete_evaluation(
    policies: Sequence[FrozenPolicy], folder: Path, command: str, progress: ProgressCallback
) -> Evaluation:
    """Reads an evaluation, after playing the episodes that a report needs and the folder lacks.

    Sets in the folder stay as they are, unless a run trains on other draws since. If a run was trained further since,
    its episodes are played again. For the arguments see ``evaluate_policies``.

    Raises:
        RunFolderError: The folder holds something else, an evaluation of other policies, or cannot be read or written.
    """
    shown = [policy for policy in policies if not policy.reference]
    return evaluate_policies(policies, _required_sets(shown), folder, command=command, progress=progress)


def _required_sets(policies: Sequence[FrozenPolicy]) -> list[CellSet]:
    """Nominal values, training draws, and points that fill the training distributions (or the preset "default")."""
    trained, space = training_sets(policies), policies[0].space
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
