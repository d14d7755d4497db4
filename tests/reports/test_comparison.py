from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from gym_dr import Randomization
from gym_dr.errors import ConfigError
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.sets import CellSet
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.reports.comparison import Comparison, Group, group_policies
from gym_dr.runs.folder import RunFolder


@pytest.fixture
def policy(comparison: Comparison) -> FrozenPolicy:
    return comparison.groups[0].policies[0]


def with_seed(policy: FrozenPolicy, path: str, seed: int, **settings: object) -> FrozenPolicy:
    assert policy.run is not None
    changed = dataclasses.replace(policy.run.config.settings, seed=seed, **settings)  # type: ignore[arg-type]
    config = dataclasses.replace(policy.run.config, settings=changed)
    return dataclasses.replace(
        policy, name=path, run=dataclasses.replace(policy.run, folder=RunFolder(Path("/runs") / path), config=config)
    )


def test_runs_that_differ_in_their_seed_are_one_group_in_the_order_of_seeds(policy: FrozenPolicy) -> None:
    runs = [with_seed(policy, f"wide/seed-{seed}", seed) for seed in (3, 1)]
    other = with_seed(policy, "slow", 1, num_envs=7)
    groups = group_policies([runs[0], other, runs[1]])
    assert [(group.name, group.seeds) for group in groups] == [("wide", [1, 3]), ("slow", [1])]


def from_weights(policy: FrozenPolicy, source: str) -> FrozenPolicy:
    """A run that went on from the weights of another one."""
    assert policy.run is not None
    config = policy.run.config
    config = dataclasses.replace(config, options=dataclasses.replace(config.options, init=source))
    return dataclasses.replace(policy, run=dataclasses.replace(policy.run, config=config))


def test_runs_that_each_went_on_from_the_run_with_their_seed_are_one_group(policy: FrozenPolicy) -> None:
    own = [from_weights(with_seed(policy, f"own/seed-{s}", s), f"/runs/base/seed-{s}") for s in (1, 2)]
    first = [from_weights(with_seed(policy, f"first/seed-{s}", s), "/runs/base/seed-1") for s in (1, 2)]
    groups = group_policies([*own, *first])
    assert [(group.name, group.seeds) for group in groups] == [("own", [1, 2]), ("first", [1, 2])]


def test_runs_that_went_on_from_different_runs_are_apart(policy: FrozenPolicy) -> None:
    runs = [from_weights(with_seed(policy, f"x{s}", s), f"/runs/{top}/seed-{s}") for s, top in ((1, "a"), (2, "b"))]
    assert [group.seeds for group in group_policies(runs)] == [[1], [2]]


def test_groups_with_the_same_name_are_told_apart_by_their_paths(policy: FrozenPolicy) -> None:
    runs = [with_seed(policy, f"{top}/a/seed-{s}", s, num_envs=n) for top, n in (("x", 2), ("y", 3)) for s in (1, 2)]
    assert [group.name for group in group_policies(runs)] == ["/runs/x/a", "/runs/y/a"]


def test_draws_that_several_seeds_share_are_named_after_their_group(
    policy: FrozenPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [with_seed(policy, f"wide/seed-{seed}", seed) for seed in (1, 2)]
    cells = CellSet.of_draws("training: wide/seed-1", Randomization({"gravity": (-12, -2)}), 5)
    names = [{"name": run.name, "digest": run.digest} for run in runs]
    evaluation = Evaluation(Path("x"), {"policies": names}, pd.DataFrame())
    monkeypatch.setattr(Comparison, "cells", lambda *_: cells)
    assert Comparison(groups=group_policies(runs), evaluation=evaluation).label(cells.name).endswith("'wide'")


def test_a_run_and_its_copy_are_no_two_seeds(policy: FrozenPolicy) -> None:
    runs = [with_seed(policy, name, 1) for name in ("none/seed-1", "copy")]
    with pytest.raises(ConfigError, match=r"/runs/copy: has the configuration and the seed of /runs/none/seed-1, "):
        group_policies(runs)


def test_policies_that_act_alike_keep_their_names(policy: FrozenPolicy) -> None:
    groups = [Group(name=name, policies=(dataclasses.replace(policy, name=name),)) for name in ("a", "b", "renamed")]
    names = [{"name": name, "digest": policy.digest} for name in ("a", "b")]
    evaluation = Evaluation(Path("x"), {"policies": names}, pd.DataFrame())
    assert Comparison(groups=groups, evaluation=evaluation).policies == [[0], [1], [0]]
