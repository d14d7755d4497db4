"""What is NaN or infinite stops a run and leaves the last good checkpoint."""

from __future__ import annotations

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

RARE = 0.05  # probability that an episode breaks


class Breaking(gym.Env[Any, Any]):
    """Five steps an episode; in some of them the third observation or reward is broken, which the seed decides."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, value: float = float("nan"), what: str = "observation") -> None:
        self.value, self.what = value, what

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t, self.breaks = 0, bool(self.np_random.random() < RARE)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        value = self.value if self.breaks and self.t == 3 else 0.5
        observation = np.full(2, value if self.what == "observation" else 0.5, np.float32)
        return observation, value if self.what == "reward" else float(action), self.t == 5, False, {}


@pytest.fixture(autouse=True)
def environments() -> Iterator[None]:
    for name, kwargs in (("Rare", {}), ("Inf", {"value": np.inf, "what": "reward"})):
        gym.register(f"{name}Break-v0", entry_point=Breaking, kwargs=kwargs)
    yield
    for name in ("Rare", "Inf"):
        del gym.registry[f"{name}Break-v0"]


OPTIONS = {"a2c": ["--rollout-steps", "4"], "ppo": ["--rollout-steps", "4", "--minibatches", "4"], "reinforce": []}


def train(algorithm: str, folder: Path, env: str) -> Result:
    tiny = ["--env", f"{env}Break-v0", "--randomization", "none", "--num-envs", "2", "--updates", "20"]
    tiny += ["--checkpoint-every", "4", "--eval-episodes", "0", "--hidden-sizes", "4", "--run-dir", str(folder)]
    return gymdr("train", algorithm, *OPTIONS[algorithm], *tiny)


@pytest.mark.parametrize("algorithm", OPTIONS)
def test_an_observation_stops_the_run_with_update_cause_and_checkpoint(algorithm: str, tmp_path: Path) -> None:
    message = refused(train(algorithm, tmp_path / "run", "Rare"))
    made = len((tmp_path / "run/metrics.csv").read_text().splitlines()) - 1
    assert made >= 4  # so that there is a checkpoint to name
    assert message.startswith(f"Update {made}: Sub-environment ")
    assert "returned nan in its observation." in message
    checkpoint = tmp_path / f"run/checkpoints/update-{made // 4 * 4:08d}.safetensors"
    assert f"The last good checkpoint is {checkpoint}." in message
    assert load_newest(RunFolder(tmp_path / "run"))["update"] == made // 4 * 4


def test_a_reward_stops_the_run(tmp_path: Path) -> None:
    assert "returned inf in its reward." in refused(train("a2c", tmp_path / "run", "Inf"))


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_advantages_that_overflow_stop_the_run(tmp_path: Path) -> None:
    tiny = ["--updates", "2", "--num-envs", "2", "--rollout-steps", "4", "--eval-episodes", "0", "--hidden-sizes", "4"]
    message = refused(gymdr("train", "a2c", *tiny, "--reward-scale", "1e38", "--run-dir", tmp_path / "run"))
    assert re.match(r"Update 0: .* not finite", message)


def test_a_state_that_is_not_finite_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gym_dr.training.actor_critic import ActorCritic

    state = ActorCritic.state

    def broken(self: ActorCritic) -> dict[str, Any]:
        found = state(self)
        return {**found, "critic": {name: value * np.nan for name, value in found["critic"].items()}}

    monkeypatch.setattr(ActorCritic, "state", broken)
    message = refused(train("a2c", tmp_path / "run", "Rare"))
    assert message.startswith("Update 3: the algorithm's state['critic']['0.weight'] is not finite. There is no check")
    assert list((tmp_path / "run/checkpoints").iterdir()) == []
