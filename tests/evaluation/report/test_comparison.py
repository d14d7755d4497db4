from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gym_dr.evaluation.policies import FrozenPolicy, TrainedRun
from gym_dr.evaluation.report.comparison import group_policies
from gym_dr.runs.folder import RunFolder
from tests.evaluation.report.sample import tiny_policies


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> FrozenPolicy:
    return tiny_policies(tmp_path_factory.mktemp("groups"), "run")[0]


def with_seed(policy: FrozenPolicy, path: str, seed: int, **settings: object) -> FrozenPolicy:
    assert policy.run is not None
    changed = dataclasses.replace(policy.run.config.settings, seed=seed, **settings)  # type: ignore[arg-type]
    config = dataclasses.replace(policy.run.config, settings=changed)
    return dataclasses.replace(policy, name=path, run=TrainedRun(folder=RunFolder(Path("/runs") / path), config=config))


def test_runs_that_differ_in_their_seed_are_one_group_in_the_order_of_seeds(policy: FrozenPolicy) -> None:
    runs = [with_seed(policy, f"wide/seed-{seed}", seed) for seed in (3, 1)]
    other = with_seed(policy, "slow", 1, num_envs=7)
    groups = group_policies([runs[0], other, runs[1]])
    assert [(group.name, group.seeds) for group in groups] == [("wide", [1, 3]), ("slow", [1])]


def test_groups_with_the_same_name_are_told_apart_by_their_paths(policy: FrozenPolicy) -> None:
    runs = [with_seed(policy, f"{top}/a/seed-{s}", s, num_envs=n) for top, n in (("x", 2), ("y", 3)) for s in (1, 2)]
    assert [group.name for group in group_policies(runs)] == ["/runs/x/a", "/runs/y/a"]
