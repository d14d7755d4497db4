"""Policies of Stable-Baselines3 as ONNX files, which act as ``model.predict`` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.policies.export import export_policy
from gym_dr.policies.frozen import Draws, FrozenPolicy
from gym_dr.policies.open import open_policies, open_policy
from tests.cli.command import gymdr, refused
from tests.integrations.agreement import compared

pytest.importorskip("stable_baselines3")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime as runtime
import torch
from sb3_contrib import ARS, QRDQN, TQC, TRPO, CrossQ, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

from gym_dr.integrations.sb3 import make_vec_env

pytestmark = pytest.mark.integration

LANDER, CONTINUOUS = "gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(algorithm: Any, env: Any, policy: str = "MlpPolicy", net: Any = (16, 8), **options: Any) -> Any:
    """A model with random weights, large enough that choices differ."""
    kwargs = {**({"net_arch": list(net)} if net is not None else {}), **options.pop("policy_kwargs", {})}
    model = algorithm(policy, make_vec_env(env, 2) if isinstance(env, str) else env, policy_kwargs=kwargs, **options)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            if parameter.ndim > 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)  # some start at 0
    return model


def activation(kind: Any) -> dict[str, Any]:
    return {"policy_kwargs": {"activation_fn": kind}}


MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "PPO, choices": (LANDER, lambda: made(PPO, LANDER)),
    "PPO, numbers": (CONTINUOUS, lambda: made(PPO, CONTINUOUS, **activation(torch.nn.ReLU))),
    "PPO, ELU": (CONTINUOUS, lambda: made(PPO, CONTINUOUS, **activation(torch.nn.ELU))),
    "PPO, LeakyReLU": (CONTINUOUS, lambda: made(PPO, CONTINUOUS, **activation(torch.nn.LeakyReLU))),
    "PPO, SiLU": (CONTINUOUS, lambda: made(PPO, CONTINUOUS, **activation(torch.nn.SiLU))),
    "PPO, GELU": (CONTINUOUS, lambda: made(PPO, CONTINUOUS, **activation(torch.nn.GELU))),
    "PPO, Sigmoid": (CONTINUOUS, lambda: made(PPO, CONTINUOUS, **activation(torch.nn.Sigmoid))),
    "PPO, no layer between": (LANDER, lambda: made(PPO, LANDER, net=())),
    "A2C, own noise": (CONTINUOUS, lambda: made(A2C, CONTINUOUS, use_sde=True)),
    "A2C, squashed": (
        CONTINUOUS,
        lambda: made(A2C, CONTINUOUS, use_sde=True, policy_kwargs={"squash_output": True}),
    ),
    "DQN": (LANDER, lambda: made(DQN, LANDER)),
    "QRDQN": (LANDER, lambda: made(QRDQN, LANDER)),
    "SAC": (CONTINUOUS, lambda: made(SAC, CONTINUOUS)),
    "TD3": (CONTINUOUS, lambda: made(TD3, CONTINUOUS)),
    "DDPG": ("gym_dr/PendulumDR-v1", lambda: made(DDPG, "gym_dr/PendulumDR-v1")),
    "TQC": ("gym_dr/PendulumDR-v1", lambda: made(TQC, "gym_dr/PendulumDR-v1")),
    "TRPO": (LANDER, lambda: made(TRPO, LANDER)),
    "ARS": (CONTINUOUS, lambda: made(ARS, CONTINUOUS)),
    "ARS, linear": (LANDER, lambda: made(ARS, LANDER, "LinearPolicy", None)),
    "MaskablePPO": (LANDER, lambda: made(MaskablePPO, LANDER)),
    "SAC, own noise": (CONTINUOUS, lambda: made(SAC, CONTINUOUS, use_sde=True)),
    "CrossQ": (CONTINUOUS, lambda: normalizing(net=(16, 8))),
    "CrossQ, no layer between": (CONTINUOUS, lambda: normalizing(net=())),
    "CrossQ, own noise": (CONTINUOUS, lambda: normalizing(net=(16,), use_sde=True)),
    "RecurrentPPO, choices": (LANDER, lambda: recurrent(LANDER)),
    "RecurrentPPO, numbers": (CONTINUOUS, lambda: recurrent(CONTINUOUS, n_lstm_layers=2, shared_lstm=True)),
    "RecurrentPPO, no bias": (
        LANDER,
        lambda: recurrent(LANDER, n_lstm_layers=2, lstm_kwargs={"bias": False, "dropout": 0.5}),
    ),
}


def normalizing(**options: Any) -> Any:
    """A model with batch normalization, whose statistics and weights are not those of the start."""
    model = made(CrossQ, CONTINUOUS, **options)
    with torch.no_grad():
        for module in model.policy.actor.modules():
            if hasattr(module, "ra_mean"):
                module.ra_mean.normal_()
                module.ra_var.uniform_(0.2, 2.0)
                module.scale.normal_()
                module.bias.normal_()
    return model


def recurrent(env: Any, **kwargs: Any) -> Any:
    """A model with an LSTM."""
    given = {"lstm_hidden_size": 12, "enable_critic_lstm": not kwargs.get("shared_lstm"), **kwargs}
    return made(RecurrentPPO, env, "MlpLstmPolicy", n_steps=64, batch_size=64, policy_kwargs=given)


def opened(path: Path, env: str, **options: Any) -> FrozenPolicy:
    (policy,) = open_policies([f"sb3:{path}"], env=env, trust=trusted(path), **options)
    return policy


def trusted(path: Path) -> list[str]:
    return [str(path), *map(str, path.parent.glob("*.pkl"))]


def assert_same(theirs: FrozenPolicy, file: Path, steps: int = 150) -> None:
    """Plays episodes; a file chooses what ``predict`` does, to 1e-5 and wherever values differ clearly."""
    session = runtime.InferenceSession(str(file))
    names, sizes = [one.name for one in session.get_outputs()], {one.name: one.shape for one in session.get_inputs()}
    envs = theirs.make_envs(Draws(episodes=16))
    act, starts, ended = theirs.make(envs), np.ones(16, np.bool_), np.zeros(16, np.bool_)
    observations, _ = envs.reset(seed=5)
    state = np.full((16, sizes["state"][1]), np.nan, np.float32) if "state" in sizes else None
    count = 0
    for _ in range(steps):
        expected = act(observations, starts)  # type: ignore[call-arg]  # it may remember
        feed = {"observation": observations.astype(np.float32)}
        if state is not None:
            feed |= {"state": state, "episode_start": starts}
        found = dict(zip(names, session.run(None, feed), strict=True))
        state = found.get("next_state")
        count += compared(found, expected)
        observations, _, terminated, truncated, _ = envs.step(expected)
        starts, ended = ended, terminated | truncated
    assert count > 14 * steps
    envs.close()


@pytest.mark.parametrize("name", MODELS)
def test_a_file_acts_as_predict_does(name: str, tmp_path: Path) -> None:
    env, make = MODELS[name]
    make().save(tmp_path / "model.zip")
    text = f"sb3:{tmp_path / 'model.zip'}"
    file = export_policy(open_policy(text, env=env, trust=trusted(tmp_path / "model.zip")), tmp_path / "policy.onnx")
    assert_same(opened(tmp_path / "model.zip", env), file)


@pytest.mark.parametrize("remembers", [False, True], ids=["PPO", "RecurrentPPO"])
@pytest.mark.parametrize("order", ["normalized", "stacked", "normalized, then stacked", "stacked, then normalized"])
def test_statistics_and_frames_are_inside(order: str, remembers: bool, tmp_path: Path) -> None:
    envs: Any = make_vec_env(LANDER, 2, seed=1)
    for word in order.split(", then "):
        envs = VecNormalize(envs, clip_obs=2.0) if word == "normalized" else VecFrameStack(envs, 3)
    path = tmp_path / "model.zip"
    model = recurrent(envs) if remembers else made(PPO, envs, n_steps=64, batch_size=64)
    model.learn(256).save(path)
    if "normalized" in order:
        made_from = envs
        while not isinstance(made_from, VecNormalize):
            made_from = made_from.venv
        made_from.save(str(tmp_path / "vecnormalize.pkl"))
    file = export_policy(open_policy(f"sb3:{path}", env=LANDER, trust=trusted(path)), tmp_path / "policy.onnx")
    inputs = {one.name: one.shape[1:] for one in runtime.InferenceSession(str(file)).get_inputs()}
    assert inputs["observation"] == [8]  # as the environment returns it
    size = 16 * ("stacked" in order) + 24 * remembers
    assert inputs.get("state") == ([size] if size else None)
    assert_same(opened(path, LANDER), file)


def test_a_file_is_evaluated_as_the_one_that_it_comes_from(tmp_path: Path) -> None:
    path, file = tmp_path / "model.zip", tmp_path / "policy.onnx"
    shown = make_vec_env(LANDER, 2, env_kwargs={"context": "observation", "randomization": "wide"})
    made(PPO, shown).save(path)
    options = ("--env", LANDER, "--context", "observation", "--randomization", "wide", "--trust", str(path))
    result = gymdr("export", f"sb3:{path}", *options, "--output", file)
    assert result.out == f"Wrote {file}\n", result.err
    about = {entry.key: entry.value for entry in onnx.load(str(file)).metadata_props}
    assert (about["env"], about["algorithm"], about["draw_span"]) == (LANDER, "PPO", "1.0")
    ranges = opened(path, LANDER, context="observation", randomization="wide").context_ranges
    assert ranges
    assert json.loads(about["observes_draw"]) == {name: list(ends) for name, ends in ranges.items()}
    theirs = gym_dr.open_policy(
        f"theirs=sb3:{path}", env=LANDER, context="observation", randomization="wide", trust=[str(path)]
    )
    found = gym_dr.evaluate([theirs, f"file=onnx:{file}"], episodes=3, progress=False, output=tmp_path / "out")
    table = found.episodes.set_index(["policy", "set", "episode"])["return"]
    np.testing.assert_allclose(table.loc["file"], table.loc["theirs"], rtol=1e-5)


class Doubled(BaseFeaturesExtractor):
    """An extractor of a user's own."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 8)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return 2 * observations


class Own(ActorCriticPolicy):
    """A policy of a user's own."""


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "own extractor": (
        lambda: made(PPO, LANDER, policy_kwargs={"features_extractor_class": Doubled}),
        "Doubled before them",
    ),
    "softplus": (lambda: made(PPO, LANDER, **activation(torch.nn.Softplus)), "got Softplus(beta=1.0, threshold=20.0)"),
    "own policy": (lambda: PPO(Own, make_vec_env(LANDER, 2)), "Own, whose other parts cannot be exported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_is_named(name: str, tmp_path: Path) -> None:
    make, expected = REFUSED[name]
    path, model = tmp_path / "model.zip", make()
    model.save(path)
    env = LANDER if model.action_space.shape == () else CONTINUOUS
    result = gymdr("export", f"sb3:{path}", "--env", env, "--trust", path, "--output", tmp_path / "policy.onnx")
    assert expected in refused(result)
    assert not (tmp_path / "policy.onnx").exists()
