"""Two runs of a few steps and an evaluation of them in which every kind of set is."""

from __future__ import annotations

from pathlib import Path

from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.suite import sets_for
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.open import open_runs
from gym_dr.reports.comparison import Comparison, group_policies
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import param_space_of
from tests.policies.tiny_run import train_tiny_run


def tiny_policies(root: Path, *names: str) -> list[FrozenPolicy]:
    """Runs on nominal physics and, from the second on, on the preset "wide", long enough for episodes to end."""
    runs = [
        train_tiny_run(root / name, "--randomization", "wide" if i else "none", "--updates", "50")
        for i, name in enumerate(names)
    ]
    return open_runs([open_run(str(run)) for run in runs])


def tiny_evaluation(policies: list[FrozenPolicy], folder: Path) -> Comparison:
    """Evaluates on all kinds of sets, with few cells and episodes."""
    space = param_space_of(policies[0].env)
    assert space is not None
    randomization = policies[-1].randomization
    assert randomization is not None
    sets = [
        *sets_for(policies, (), 6),
        CellSet.grid(space, {"gravity": [-12.0, -8.0, -4.0], "wind_power": [0.0, 20.0]}, 2),
        CellSet.of_values("gravity=-3", {"gravity": -3.0}, 2),
        CellSet.sobol("sobol", randomization, space, 4, 5),
    ]
    evaluation = evaluate_policies(policies, sets, folder, command="gymdr evaluate")
    return Comparison(groups=group_policies(policies), evaluation=evaluation)
