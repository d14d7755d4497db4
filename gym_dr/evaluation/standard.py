"""The sets of cells that need no further word: what is always looked at, and the versions of a published protocol."""

from __future__ import annotations

from collections.abc import Sequence

from gym_dr.evaluation.cells import CellSet, distribution, nominal
from gym_dr.evaluation.policies import OWN, RunPolicy
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization


def nominal_and_training(policies: Sequence[RunPolicy], space: ParamSpace | None, episodes: int) -> list[CellSet]:
    """The unchanged environment, and what each policy was trained on: all policies meet all of it.

    Args:
        policies: Those that are evaluated together.
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
    names = {}
    for randomization, policy in owners.items():
        preset = policy.trained_on(space)
        names[randomization] = "training" + (f": {policy.name if preset == OWN else preset}" if len(owners) > 1 else "")
    return [nominal(episodes), *(distribution(names[drawn], drawn, episodes) for drawn in owners)]


def dre(space: ParamSpace, episodes: int) -> list[CellSet]:
    """R and E of the generalization protocol (Packer et al. 2018), beside the nominal values, which are D.

    Raises:
        UnknownNameError: There are no such presets for the environment.
    """
    return [distribution(name, resolve(name, space), episodes) for name in ("random", "extreme")]
