"""Policies that are shown the draw, and policies that were trained with disturbances, from training to pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.suite import sets_for
from gym_dr.policies.frozen import Draws, FrozenPolicy
from gym_dr.policies.open import open_runs
from gym_dr.reports.comparison import Comparison, group_policies
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import param_space_of
from tests.policies.tiny_run import train_tiny_run

DELAYED = ("--randomize", "gravity=uniform:-11:-9", "--randomize", "obs_delay=integer:0:3")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train_tiny_run(folder / "plain", "--updates", "10")
    train_tiny_run(folder / "shown", "--updates", "10", "--context", "observation", *DELAYED)
    return folder


def opened(root: Path) -> list[FrozenPolicy]:
    return open_runs([open_run(str(root / name)) for name in ("plain", "shown")])


@pytest.fixture(scope="module")
def comparison(root: Path) -> Comparison:
    policies = opened(root)
    space = param_space_of(policies[0].env)
    assert space is not None
    sets = [
        *sets_for(policies, (), 4),
        CellSet.grid(space, {"gravity": [-12.0, -4.0], "obs_delay": [0.0, 5.0]}, 2),
    ]
    evaluation = evaluate_policies(policies, sets, root / "evaluation")
    return Comparison(groups=group_policies(policies), evaluation=evaluation)


def test_a_policy_is_shown_what_it_was_shown_in_training_and_another_is_not(root: Path) -> None:
    seen: dict[str, Any] = {}
    for policy in opened(root):
        envs = policy.make_envs(Draws(episodes=2))
        seen[policy.name] = envs.reset(seed=0)[0]
        envs.close()
    assert seen["plain"].shape == (2, 8)
    # gravity -10 is the middle of what was trained on, and no delay its least
    assert seen["shown"][:, 8:].tolist() == [[0.0, -0.25]] * 2


def test_a_policy_is_shown_the_values_of_a_cell_scaled_as_in_training(root: Path) -> None:
    policy = opened(root)[1]
    space = param_space_of(policy.env)
    assert space is not None
    envs = policy.make_envs(Draws(values={"gravity": np.array([-10.5, -9.0])}, episodes=2))
    observations, _ = envs.reset(seed=0, options={"params": {"gravity": [-10.5, -9.0]}})
    envs.close()
    assert observations[:, 8].tolist() == [-0.125, 0.25]


def test_nominal_episodes_are_undisturbed_and_those_of_a_grid_have_its_values(comparison: Comparison) -> None:
    table = comparison.evaluation.episodes
    assert set(table[table["set"] == "nominal"]["obs_delay"]) == {0.0}
    assert set(table[table["set"] == "grid"]["obs_delay"]) == {0.0, 5.0}
    own = table[table["set"] == "training: shown"]
    assert set(own["obs_delay"]) <= {0.0, 1.0, 2.0, 3.0}
    plain, shown = (own[own["policy"] == name]["obs_delay"].tolist() for name in ("plain", "shown"))
    assert plain == shown


def test_a_delay_in_a_cell_changes_the_episode(comparison: Comparison) -> None:
    table = comparison.evaluation.episodes
    grid = table[(table["set"] == "grid") & (table["policy"] == "plain") & (table["gravity"] == -12)]
    prompt, late = (grid[grid["obs_delay"] == delay]["return"].to_numpy() for delay in (0.0, 5.0))
    assert (prompt != late).all()
