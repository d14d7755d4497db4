"""The generalization protocol of Packer et al. (2018, "Assessing Generalization in Deep Reinforcement Learning").

An environment has three versions: D with nominal parameters, R with parameters from a box around them, E with
parameters outside that box. Policies are trained on one version and tested on all. A score is a success rate: Default
is D on D, Interpolation R on R, Extrapolation the geometric mean of D on R, D on E and R on E.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gym_dr.evaluation.cells import CellSet, distribution
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace

VERSIONS = {"D": "nominal", "R": "random", "E": "extreme"}  # version -> set of cells
PRESETS = {"none": "D", "random": "R", "extreme": "E"}  # preset of a run's training -> version


def dre(space: ParamSpace, episodes: int) -> list[CellSet]:
    """R and E of the generalization protocol (Packer et al. 2018); D is the set of nominal values.

    Raises:
        UnknownNameError: The environment has no such presets.
    """
    return [distribution(name, resolve(name, space), episodes) for name in ("random", "extreme")]


def generalization(
    policies: Sequence[Mapping[str, Any]], success: Mapping[tuple[str, str], float], references: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The paper's scores, one row for each algorithm, averaged over seeds.

    Args:
        policies: With ``name``, ``algorithm`` and ``trained_on``. Policies that were not trained on D, R or E, whose
            algorithm is unknown, or with an adaptive ``sampler``, which changes the draws, are ignored.
        success: (policy's name, set's name) -> success rate.
        references: Names of policies that only show what is possible; ignored too.

    Returns:
        For each algorithm ``success`` (trained on -> tested on -> rate) and the three scores; a score is None if runs
        for it are missing.
    """
    rows = []
    policies = [policy for policy in policies if "sampler" not in policy and policy["name"] not in references]
    for algorithm in dict.fromkeys(policy["algorithm"] for policy in policies if policy["algorithm"]):
        alike = [policy for policy in policies if policy["algorithm"] == algorithm]
        rates = {}
        for version in VERSIONS:
            if names := [policy["name"] for policy in alike if PRESETS.get(policy["trained_on"]) == version]:
                tested = {other: [success[name, cells] for name in names] for other, cells in VERSIONS.items()}
                rates[version] = {other: float(np.mean(shares)) for other, shares in tested.items()}
        default, interpolation = rates.get("D", {}).get("D"), rates.get("R", {}).get("R")
        extrapolation = None
        if "D" in rates and "R" in rates:
            from scipy import stats  # heavy

            extrapolation = float(stats.gmean([rates["D"]["R"], rates["D"]["E"], rates["R"]["E"]]))
        scores = {"default": default, "interpolation": interpolation, "extrapolation": extrapolation}
        rows.append({"algorithm": algorithm, "success": rates, **scores})
    return rows
