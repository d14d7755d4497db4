"""The sets that policies play: nominal values, training draws, the user's sets, and those of reports."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from gym_dr.errors import ConfigError
from gym_dr.evaluation.ranges import correlated, varies
from gym_dr.evaluation.sets import (
    DRAW_EPISODES,
    POINT_EPISODES,
    TRAINING,
    CellSet,
    SetLike,
    Trained,
    cells_of,
    check_episodes,
    sobol_name,
)
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.presets import CUSTOM, DEFAULT, presets, resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

REPORT_EPISODES = 100  # on nominal values and on training draws
REPORT_POINTS = 128  # of a distribution, for sensitivities and maps


def sets_of(
    env: str, space: ParamSpace | None, sets: SetLike | Sequence[SetLike], trained: Trained, episodes: int | None
) -> list[CellSet]:
    """The cells of nominal values, of the training draws, and of further sets.

    Args:
        env: Id of the environment, for messages.
        space: Its parameters; None if it has none.
        sets: Further sets.
        trained: Distinct training randomizations.
        episodes: Episodes per cell in sets that do not set their own; None for the default of each kind.

    Raises:
        ConfigError: The environment has no parameters, or two sets have the same name.
        UnknownNameError: There is no such parameter or preset.
        RandomizationError: A value is out of bounds.
    """
    episodes = check_episodes(episodes)
    count = episodes or DRAW_EPISODES
    found = [CellSet.nominal(count)]
    found += [CellSet.of_draws(name, randomization, count) for name, randomization in trained.items()]
    for each in cells_of(env, space, sets, trained, episodes):
        same = [other for other in found if other.name == each.name]
        if any(other.to_dict() != each.to_dict() for other in same):
            raise ConfigError(f"Two sets are named {each.name!r}. Give one of them another name.")
        found += [] if same else [each]
    return found


def training_sets(policies: Sequence[FrozenPolicy]) -> dict[str, Randomization]:
    """Distinct training randomizations of policies, without nominal values, by the names of their sets.

    A single randomization is named "training", several "training: PRESET" or "training: NAME". If all are unknown, the
    preset "default" stands for them, under its own name.
    """
    space = policies[0].space
    if all(policy.randomization is None for policy in policies):
        return {} if space is None or DEFAULT not in presets(space.name) else {DEFAULT: resolve(DEFAULT, space)}
    owners: dict[Randomization, FrozenPolicy] = {}
    for policy in policies:
        if policy.randomization:
            owners.setdefault(policy.randomization, policy)
    if len(owners) == 1:
        return dict.fromkeys([TRAINING], next(iter(owners)))
    found = {}
    for randomization, policy in owners.items():
        preset = policy.trained_on
        named = preset == CUSTOM or preset in {other.name for other in policies}  # the preset's name would be ambiguous
        found[f"{TRAINING}: {policy.name if named else preset}"] = randomization
    return found


def sets_for(
    policies: Sequence[FrozenPolicy], sets: SetLike | Sequence[SetLike] = (), episodes: int | None = None
) -> list[CellSet]:
    """The sets on which policies are evaluated, with the training draws of all but references."""
    trained = training_sets([policy for policy in policies if not policy.reference])
    return sets_of(policies[0].env, policies[0].space, sets, trained, episodes)


def cells_to_play(policy: FrozenPolicy, draws: SetLike | None, episodes: int) -> CellSet:
    """The draws to play with a policy: the user's, or else those of its training.

    Raises:
        ConfigError: The environment has no parameters.
    """
    chosen = sets_for([policy]) if draws is None else sets_of(policy.env, policy.space, draws, {}, None)
    cells = dataclasses.replace(chosen[-1], episodes=episodes)
    if cells.num_cells > 1:
        raise ConfigError(f"Expected draws or values to play, such as `gym_dr.draws('wide')`, got {draws!r}.")
    return cells


def report_suite(policies: Sequence[FrozenPolicy]) -> list[CellSet]:
    """The sets that a report on policies needs; the preset "default" stands for unknown training distributions."""
    space = policies[0].space
    trained = training_sets([policy for policy in policies if not policy.reference])
    sets = sets_for(policies, (), REPORT_EPISODES)
    if space is None:
        return sets
    varied = {name: rules for name, rules in trained.items() if varies(space, rules)}
    for name, randomization in (varied or {DEFAULT: resolve(DEFAULT, space)}).items():
        points = REPORT_POINTS
        if correlated(randomization):  # one cell per point instead of d + 2: more points in as many cells
            drawn = sum(not isinstance(rule.distribution, Constant) for rule in randomization.values())
            points *= 2 ** math.ceil(math.log2(drawn + 2))
        sets.append(CellSet.sobol(sobol_name(name), randomization, space, points, POINT_EPISODES))
    return sets
