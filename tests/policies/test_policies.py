from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import CheckpointError, ConfigError
from gym_dr.evaluation.suite import sets_for
from gym_dr.policies.frozen import Draws, FrozenPolicy
from gym_dr.policies.open import open_runs
from gym_dr.randomization.presets import resolve
from gym_dr.runs.configure import open_run
from tests.policies.tiny_run import train_tiny_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train_tiny_run(folder / "lander")
    train_tiny_run(folder / "pole", "--env", "CartPole-v1", "--randomization", "none")
    return folder


def opened(*paths: Path) -> list[FrozenPolicy]:
    return open_runs([open_run(str(path)) for path in paths])


def trained_on(policy: FrozenPolicy, randomization: Any) -> FrozenPolicy:
    resolved = resolve(randomization, LUNAR_LANDER)
    return dataclasses.replace(policy, randomization=resolved)


def test_names_are_as_long_as_they_must_be(runs: Path, tmp_path: Path) -> None:
    for name in ("a/seed-1", "b/seed-1", "c"):
        shutil.copytree(runs / "lander", tmp_path / name)
    paths = [tmp_path / name for name in ("a/seed-1", "b/seed-1", "c")]
    assert [policy.name for policy in opened(*paths[1:])] == ["seed-1", "c"]
    assert [policy.name for policy in opened(*paths[:2])] == ["a/seed-1", "b/seed-1"]


def test_a_run_that_is_named_twice_is_refused(runs: Path) -> None:
    with pytest.raises(ConfigError, match="lander: is named twice"):
        opened(runs / "lander", runs / "pole" / ".." / "lander")


def test_a_run_on_another_environment_is_refused(runs: Path) -> None:
    with pytest.raises(ConfigError, match=r"pole: was trained on CartPole-v1, not on gym_dr/LunarLanderDR-v3"):
        opened(runs / "lander", runs / "pole")


def test_a_policy_for_other_observations_is_refused(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(runs / "lander", path)
    config = json.loads((path / "config.json").read_text())
    del config["randomization"]
    (path / "config.json").write_text(json.dumps({**config, "env": "CartPole-v1"}))
    with pytest.raises(
        CheckpointError, match=r"update-0+2\.safetensors: the policy does not fit CartPole-v1.* shape \(4,\)"
    ):
        opened(path)


def test_an_algorithm_without_policies_is_refused(runs: Path) -> None:
    run = open_run(str(runs / "lander"))
    with pytest.raises(ConfigError, match="has no load_policy"):
        open_runs([dataclasses.replace(run, algorithm=dataclasses.replace(run.algorithm, load_policy=None))])


def test_a_policy_that_is_made_again_samples_the_same_actions(runs: Path) -> None:
    (policy,) = opened(runs / "lander")
    envs = policy.make_envs(Draws(episodes=5))
    observations = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    one, other = policy.make(envs), policy.make(envs)
    assert [one(observations).tolist() for _ in range(5)] == [other(observations).tolist() for _ in range(5)]
    envs.close()


def test_the_preset_of_a_run_is_known_by_its_rules(runs: Path) -> None:
    (policy,) = opened(runs / "lander")
    for name in ("none", "wide"):
        assert trained_on(policy, name).trained_on == name
    assert trained_on(policy, {"gravity": (-11, -9)}).trained_on == "own"


def names(*policies: FrozenPolicy) -> list[str]:
    return [made.name for made in sets_for(policies, (), 3)]


def test_what_policies_were_trained_on_is_looked_at_by_all(runs: Path) -> None:
    (policy,) = opened(runs / "lander")
    nominal = trained_on(policy, "none")
    wide = trained_on(policy, "wide")
    own = trained_on(dataclasses.replace(policy, name="mine"), {"gravity": (-11, -9)})
    assert names(nominal) == ["nominal"]
    assert names(policy, nominal, policy) == ["nominal", "training"]
    assert names(policy, wide, own) == ["nominal", "training: default", "training: wide", "training: mine"]


def test_a_run_that_is_named_like_a_preset_is_not_taken_for_it(runs: Path) -> None:
    (policy,) = opened(runs / "lander")
    own = trained_on(dataclasses.replace(policy, name="wide"), {"gravity": (-11, -9)})
    assert names(trained_on(policy, "wide"), own) == ["nominal", f"training: {policy.name}", "training: wide"]
