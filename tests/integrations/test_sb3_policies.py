"""Policies that Stable-Baselines3 has trained and saved, in our evaluation."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gym_dr
from gym_dr.api.evaluate import record
from gym_dr.errors import CheckpointError, ConfigError
from gym_dr.evaluation.results import Evaluation
from tests.policies import opened

pytest.importorskip("stable_baselines3")

from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import VecNormalize

from gym_dr.integrations.sb3 import make_vec_env

pytestmark = pytest.mark.integration

LANDER, CONTINUOUS = "gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3"


def small() -> dict[str, Any]:
    """Arguments of an algorithm, which changes them."""
    return {"policy_kwargs": {"net_arch": [8]}, "seed": 1}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of policies that were trained for a few steps."""
    folder = tmp_path_factory.mktemp("saved")
    PPO("MlpPolicy", make_vec_env(LANDER, 2), n_steps=16, batch_size=16, **small()).learn(32).save(folder / "ppo.zip")
    A2C("MlpPolicy", make_vec_env(CONTINUOUS, 2), use_sde=True, **small()).learn(20).save(folder / "sde.zip")
    DQN("MlpPolicy", make_vec_env(LANDER, 1), learning_starts=10, **small()).learn(20).save(folder / "dqn.zip")
    SAC("MlpPolicy", make_vec_env(CONTINUOUS, 1), learning_starts=10, **small()).learn(20).save(folder / "sac.zip")
    normalized = VecNormalize(make_vec_env(LANDER, 2, seed=1))
    PPO("MlpPolicy", normalized, n_steps=64, batch_size=64, **small()).learn(512).save(folder / "normal.zip")
    normalized.save(str(folder / "normal_vecnormalize.pkl"))
    return folder


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", make_vec_env(LANDER, 1), n_steps=16, batch_size=16, **small())
    with torch.no_grad():
        model.policy.action_net.weight[0, 0] = torch.nan
    model.save(tmp_path / "ppo.zip")
    with pytest.raises(ConfigError, match=r"ppo\.zip.*finite"):
        evaluate(tmp_path / "ppo.zip")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluate(path: Path, **options: Any) -> Evaluation:
    """Evaluates a file, which is trusted with all statistics beside it."""
    trust = [str(path), *map(str, path.parent.glob("*.pkl"))]
    return opened.evaluate(f"sb3:{path}", **{"env": LANDER, "trust": trust, "episodes": 3, **options})


def entry_of(found: Evaluation) -> dict[str, Any]:
    (entry,) = found.document["policies"]
    return {key: entry[key] for key in ("kind", "algorithm", "seed", "steps", "actions", "statistics")}


def test_what_a_file_says_is_recorded(saved: Path) -> None:
    found = evaluate(saved / "ppo.zip")
    assert found.policies == ["ppo"]
    assert entry_of(found) == {
        "kind": "sb3",
        "algorithm": "PPO",
        "seed": 1,
        "steps": 32,
        "actions": "deterministic",
        "statistics": None,
    }
    assert (Path("ppo-evaluation") / found.document["policies"][0]["path"]).resolve() == saved / "ppo.zip"


@pytest.mark.parametrize(
    ("name", "env", "algorithm"), [("sde", CONTINUOUS, "A2C"), ("sac", CONTINUOUS, "SAC"), ("dqn", LANDER, "DQN")]
)
@pytest.mark.parametrize("stochastic", [False, True])
def test_every_algorithm_acts_the_same_each_time(
    saved: Path, name: str, env: str, algorithm: str, stochastic: bool
) -> None:
    first, again = (
        evaluate(saved / f"{name}.zip", env=env, stochastic=stochastic, output=folder) for folder in ("a", "b")
    )
    assert first.document["policies"][0]["algorithm"] == algorithm
    assert first.document["policies"][0]["actions"] == ("stochastic" if stochastic else "deterministic")
    assert first.episodes["return"].tolist() == again.episodes["return"].tolist()


@pytest.mark.parametrize(("name", "env"), [("sde", CONTINUOUS), ("ppo", LANDER)])
def test_another_seed_samples_other_actions_of_a_recording(saved: Path, name: str, env: str) -> None:
    path = saved / f"{name}.zip"
    policy = gym_dr.open_policy(f"sb3:{path}", env=env, stochastic=True, trust=[str(path)])
    actions = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        log = record(policy, output=folder, episodes=1, format="npz", seed=seed, progress=False)
        actions.append(np.load(log / "000.npz")["actions"][:40])
    np.testing.assert_array_equal(actions[0], actions[1])
    assert (actions[0] != actions[2]).any()


def test_statistics_change_what_a_policy_does_and_are_recorded(saved: Path, tmp_path: Path) -> None:
    found = evaluate(saved / "normal.zip")
    assert entry_of(found)["statistics"] == "normal_vecnormalize.pkl"
    shutil.copy(saved / "normal.zip", tmp_path / "normal.zip")
    other = VecNormalize(make_vec_env(LANDER, 2))
    other.save(str(tmp_path / "vecnormalize.pkl"))  # has seen nothing
    again = evaluate(tmp_path / "normal.zip", output="out")
    assert entry_of(again)["statistics"] == "vecnormalize.pkl"
    assert again.episodes["return"].tolist() != found.episodes["return"].tolist()
    assert again.document["policies"][0]["digest"] != found.document["policies"][0]["digest"]


def test_a_file_is_not_played_again_until_actions_are_sampled(saved: Path) -> None:
    evaluate(saved / "ppo.zip")
    rows = Path("ppo-evaluation/episodes.csv")
    before = rows.read_text()
    marked = before.replace(",failure", ",success")
    rows.write_text(marked)
    evaluate(saved / "ppo.zip")
    assert rows.read_text() == marked
    evaluate(saved / "ppo.zip", stochastic=True)
    assert rows.read_text() not in (before, marked)


# what is refused


def test_a_file_that_is_not_trusted_is_not_unpickled(saved: Path, tmp_path: Path) -> None:
    """Its pickles are damaged, so that loading them would fail with another message."""
    with zipfile.ZipFile(saved / "ppo.zip") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(parts["data"])
    data["policy_class"][":serialized:"] = "bm8gcGlja2xl"
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        for name, content in {**parts, "data": json.dumps(data).encode()}.items():
            archive.writestr(name, content)
    with pytest.raises(ConfigError, match=r"hold pickles, .* If you trust the source of evil\.zip: `trust=.*evil\.zip"):
        evaluate(tmp_path / "evil.zip", trust=["ppo.zip"])
    with pytest.raises(ConfigError, match=r"evil\.zip: cannot be loaded: UnpicklingError"):
        evaluate(tmp_path / "evil.zip")


def test_trust_in_a_file_is_no_trust_in_its_statistics(saved: Path) -> None:
    statistics = saved / "normal_vecnormalize.pkl"
    with pytest.raises(ConfigError, match=rf"source of normal_vecnormalize\.pkl: `trust=.*{statistics}"):
        evaluate(saved / "normal.zip", trust=[str(saved / "normal.zip")])
    with pytest.raises(ConfigError, match=r"source of normal\.zip and normal_vecnormalize\.pkl: `trust="):
        evaluate(saved / "normal.zip", trust=[])


class Other:
    """Something that is no statistics."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pickle.dumps(Other()), r"expected statistics from VecNormalize\.save\(\), got .*\.Other"),
        (lambda: pickle.dumps({}), r"expected statistics from VecNormalize\.save\(\), got builtins\.dict"),
        (lambda: b"no pickle", "cannot be loaded: "),
        (lambda: pickle.dumps(VecNormalize(make_vec_env("CartPole-v1"))), r"expected .* shape \(8,\), got \(4,\)"),
    ],
    ids=["class", "dict", "bytes", "other environment"],
)
def test_statistics_that_are_none_are_refused(saved: Path, tmp_path: Path, make: Any, message: str) -> None:
    shutil.copy(saved / "normal.zip", tmp_path / "normal.zip")
    (tmp_path / "vecnormalize.pkl").write_bytes(make())
    with pytest.raises((ConfigError, CheckpointError), match=rf"vecnormalize\.pkl: {message}"):
        evaluate(tmp_path / "normal.zip")


def test_a_policy_without_its_statistics_is_refused(saved: Path, tmp_path: Path) -> None:
    shutil.copy(saved / "normal.zip", tmp_path / "lost.zip")
    with pytest.raises(
        ConfigError, match=r"trained with VecNormalize.*get_vec_normalize_env\(\)\.save\(.*lost_vecnorm"
    ):
        evaluate(tmp_path / "lost.zip")


def test_statistics_beside_a_policy_that_was_trained_without_are_refused(saved: Path, tmp_path: Path) -> None:
    shutil.copy(saved / "ppo.zip", tmp_path / "ppo.zip")
    shutil.copy(saved / "normal_vecnormalize.pkl", tmp_path / "vecnormalize.pkl")
    with pytest.raises(ConfigError, match=r"vecnormalize\.pkl: is beside ppo\.zip, which was trained without"):
        evaluate(tmp_path / "ppo.zip")


@pytest.mark.parametrize(
    ("name", "env", "message"),
    [
        ("ppo", "CartPole-v1", r"does not fit CartPole-v1, which has observations of shape \(4,\) .* of shape \(8,\)"),
        ("ppo", CONTINUOUS, r"it was trained on actions Discrete\(4\)"),
    ],
)
def test_a_policy_of_another_environment_is_refused(saved: Path, name: str, env: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        evaluate(saved / f"{name}.zip", env=env)


@pytest.mark.parametrize("name", ["ppo.zip", "sde.zip", "normal.zip"])
def test_a_program_that_sets_other_defaults_of_torch_gets_the_same_episodes(saved: Path, name: str) -> None:
    env = CONTINUOUS if name == "sde.zip" else LANDER
    stochastic = name == "sde.zip"
    expected = evaluate(saved / name, env=env, output="plain", stochastic=stochastic).episodes
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.inference_mode():
            found = evaluate(saved / name, env=env, output="other", stochastic=stochastic).episodes
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert found.equals(expected)
