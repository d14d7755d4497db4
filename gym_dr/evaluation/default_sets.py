"""Sets of cells that need no options: nominal values, the draws of training, and a published protocol."""

from __future__ import annotations

from collections.abc import Sequence

from gym_dr.evaluation.cells import CellSet, distribution, nominal
from gym_dr.evaluation.policies import CUSTOM, RunPolicy
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization


def nominal_and_training(policies: Sequence[RunPolicy], space: ParamSpace | None, episodes: int) -> list[CellSet]:
    """The nominal environment, and the draws that each policy was trained on; all policies are evaluated on all.

    Args:
        policies: Policies that are evaluated together.
        space: What may vary; None for an environment without parameters.
        episodes: Of each set.

    Returns:
        "nominal", and "training" if some were trained on draws, or one "training: PRESET" or "training: RUN" for each
        that differs.
    """
    owners: dict[Randomization, RunPolicy] = {}
    for policy in policies:
        if policy.config.randomization:
            owners.setdefault(policy.config.randomization, policy)
    sets = [nominal(episodes)]
    for randomization, policy in owners.items():
        preset = policy.trained_on(space)
        suffix = f": {policy.name if preset == CUSTOM else preset}" if len(owners) > 1 else ""
        sets.append(distribution(f"training{suffix}", randomization, episodes))
    return sets


def dre(space: ParamSpace, episodes: int) -> list[CellSet]:
    """R and E of the generalization protocol (Packer et al. 2018); D is the set of nominal values.

    Raises:
        UnknownNameError: The environment has no such presets.
    """
    return [distribution(name, resolve(name, space), episodes) for name in ("random", "extreme")]
