"""Policies of Stable-Baselines3 for images and dictionaries, as files and as models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import GymDrError
from gym_dr.testing.playing import SAME_STEP
from tests.policies import opened
from tests.wrappers.observed import WIDE, id_of, make_several, registered

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from gym_dr.integrations.sb3 import GymnasiumVecEnv

pytestmark = pytest.mark.integration

SMALL: Any = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "seed": 1}


@pytest.fixture(autouse=True)
def _ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with registered():
        yield


def returns(policy: Any, kind: str, **about: Any) -> list[float]:
    about = {"env": id_of(kind), "randomization": WIDE, "trust": ["ppo.zip", "vecnormalize.pkl"], **about}
    found = opened.evaluate(policy, episodes=3, output=str(len(list(Path.cwd().iterdir()))), **about)
    return list(found.episodes["return"])


@pytest.mark.parametrize(
    ("kind", "policy", "context"),
    [
        ("image", "CnnPolicy", "info"),
        ("dict", "MultiInputPolicy", "info"),
        ("dict", "MultiInputPolicy", "observation"),
        ("goal", "MultiInputPolicy", "observation"),
    ],
)
def test_a_file_and_its_model_act_the_same(kind: str, policy: str, context: str) -> None:
    envs = GymnasiumVecEnv(make_several(kind, SAME_STEP, context=context))
    model = PPO(policy, envs, **SMALL).learn(24)
    model.save("ppo.zip")
    from_file = returns("sb3:ppo.zip", kind, context=context)
    assert returns(model, kind, context=context) == from_file
    if context == "info":
        assert returns(lambda observations: model.predict(observations, deterministic=True)[0], kind) == from_file
    else:
        with pytest.raises(GymDrError, match="add `context='observation'`"):
            returns("sb3:ppo.zip", kind)


def test_a_model_brings_its_statistics() -> None:
    normalized = VecNormalize(GymnasiumVecEnv(make_several("goal", SAME_STEP)))
    model = PPO("MultiInputPolicy", normalized, **SMALL).learn(24)
    model.save("ppo.zip")
    normalized.save("vecnormalize.pkl")
    seen = returns(model, "goal")
    assert seen == returns("sb3:ppo.zip", "goal")
    assert seen != returns(lambda observations: model.predict(observations, deterministic=True)[0], "goal")


def test_a_model_may_sample_its_actions() -> None:
    model = PPO("MultiInputPolicy", GymnasiumVecEnv(make_several("goal", SAME_STEP)), **SMALL)
    sampled = returns(model, "goal", stochastic=True)
    assert sampled == returns(model, "goal", stochastic=True)
    assert sampled != returns(model, "goal")
