"""What is NaN or infinite stops a run and leaves the last good checkpoint, or is left out and counted."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.folder import RunFolder
from tests.cli.command import Result, gymdr, refused
from tests.runs.kill_points import repr_exactly

RARE = 0.05  # probability that an episode breaks


class Breaking(gym.Env[Any, Any]):
    """Five steps an episode; in some of them the third observation or reward is broken, which the seed decides."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, value: float = float("nan"), what: str = "observation", rate: float = RARE) -> None:
        self.value, self.what, self.rate = value, what, rate

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t, self.breaks = 0, bool(self.np_random.random() < self.rate)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        value = self.value if self.breaks and self.t == 3 else 0.5
        observation = np.full(2, value if self.what == "observation" else 0.5, np.float32)
        return observation, value if self.what == "reward" else float(action), self.t == 5, False, {}


@pytest.fixture(autouse=True)
def environments() -> Iterator[None]:
    for name, kwargs in (("Rare", {}), ("Inf", {"value": np.inf, "what": "reward"}), ("Always", {"rate": 1.0})):
        gym.register(f"{name}Break-v0", entry_point=Breaking, kwargs=kwargs)
    yield
    for name in ("Rare", "Inf", "Always"):
        del gym.registry[f"{name}Break-v0"]


OPTIONS = {"a2c": ["--rollout-steps", "4"], "ppo": ["--rollout-steps", "4", "--minibatches", "4"], "reinforce": []}


def train(algorithm: str, folder: Path, env: str, *args: str) -> Result:
    tiny = [
        "--env",
        f"{env}Break-v0",
        "--randomization",
        "none",
        "--num-envs",
        "2",
        "--updates",
        "20",
        "--checkpoint-every",
        "4",
    ]
    tiny += ["--eval-episodes", "0", "--hidden-sizes", "4", "--run-dir", str(folder)]
    return gymdr("train", algorithm, *OPTIONS[algorithm], *tiny, *args)


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "metrics.csv", newline="") as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.parametrize("algorithm", OPTIONS)
def test_an_observation_stops_the_run_with_update_cause_and_checkpoint(algorithm: str, tmp_path: Path) -> None:
    message = refused(train(algorithm, tmp_path / "run", "Rare"))
    made = len(rows(tmp_path / "run"))
    assert made >= 4  # so that there is a checkpoint to name
    assert message.startswith(f"Update {made}: Sub-environment ")
    assert "returned nan in its observation." in message
    checkpoint = tmp_path / f"run/checkpoints/update-{made // 4 * 4:08d}.safetensors"
    assert f"The last good checkpoint is {checkpoint}." in message
    assert load_newest(RunFolder(tmp_path / "run"))["update"] == made // 4 * 4


def test_a_reward_stops_the_run(tmp_path: Path) -> None:
    assert "returned inf in its reward." in refused(train("a2c", tmp_path / "run", "Inf"))


@pytest.mark.parametrize("algorithm", OPTIONS)
def test_skip_leaves_such_updates_out_and_counts_them(algorithm: str, tmp_path: Path) -> None:
    result = train(algorithm, tmp_path / "run", "Rare", "--on-nan", "skip")
    assert result.code == 0
    told = re.findall(r"Warning: Update \d+: .* Skipped the update", result.err)
    table = rows(tmp_path / "run")
    skipped = [row["actor_loss"] == "nan" for row in table]
    assert [int(row["skipped"]) for row in table] == np.cumsum(skipped).tolist()
    assert 1 <= sum(skipped) < 20
    assert len(told) == sum(skipped)


@pytest.mark.parametrize("algorithm", OPTIONS)
def test_a_stopped_run_resumes_with_skip_to_what_skip_gives_from_the_start(algorithm: str, tmp_path: Path) -> None:
    refused(train(algorithm, tmp_path / "a", "Rare"))
    assert gymdr("resume", tmp_path / "a", "--on-nan", "skip").code == 0
    train(algorithm, tmp_path / "b", "Rare", "--on-nan", "skip")
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    a, b = (repr_exactly(load_newest(RunFolder(tmp_path / name))["state"]) for name in ("a", "b"))
    assert a == b
    assert (tmp_path / "a/config.json").read_text() == (tmp_path / "b/config.json").read_text()


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("sampler", ["uniform", "adr"])
def test_advantages_that_overflow_are_skipped_with_any_sampler(sampler: str, tmp_path: Path) -> None:
    tiny = ["--updates", "2", "--num-envs", "2", "--rollout-steps", "4", "--eval-episodes", "0"]
    overflowing = [*tiny, "--hidden-sizes", "4", "--reward-scale", "1e38", "--sampler", sampler]
    message = refused(gymdr("train", "a2c", *overflowing, "--run-dir", str(tmp_path / "a")))
    assert re.match(r"Update 0: .* not finite", message)
    assert "--on-nan skip" in message
    result = gymdr("train", "a2c", *overflowing, "--run-dir", str(tmp_path / "b"), "--on-nan", "skip")
    assert result.code == 0
    assert re.search(r"Warning: Update [01]: .* not finite", result.err)


def test_skip_gives_up_when_nothing_else_comes(tmp_path: Path) -> None:
    message = refused(train("reinforce", tmp_path / "run", "Always", "--on-nan", "skip"))
    assert message.startswith("Update 10: Sub-environment 0")
    assert "10 updates before it were skipped." in message


def test_a_state_that_is_not_finite_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gym_dr.training.actor_critic import ActorCritic

    state = ActorCritic.state

    def broken(self: ActorCritic) -> dict[str, Any]:
        found = state(self)
        return {**found, "critic": {name: value * np.nan for name, value in found["critic"].items()}}

    monkeypatch.setattr(ActorCritic, "state", broken)
    message = refused(train("a2c", tmp_path / "run", "Always", "--on-nan", "skip"))
    assert message.startswith("Update 3: the algorithm's state['critic']['0.weight'] is not finite. There is no check")
    assert list((tmp_path / "run/checkpoints").iterdir()) == []
