"""Defaults of torch and numpy that a user's program has set change no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gym_dr
from gym_dr.runs.checkpoint import load_newest
from gym_dr.testing.playing import assert_same

TINY: dict[str, Any] = {"updates": 3, "num_envs": 2, "checkpoint_every": 2, "eval_episodes": 2, "progress": False}
LARGE = {"hidden_sizes": [300, 300]}  # too large for compiled code
REMEMBERS = {"memory": "gru", "rollout_steps": 32, "env": "gym_dr/CartPoleDR-v1", "minibatches": 1}
CASES = {
    "compiled epochs": ("ppo", {**REMEMBERS, "predict_draw": 0.5, "init": "orthogonal"}),
    "epochs with torch": ("ppo", {**REMEMBERS, **LARGE}),
    "an optimizer that makes its own state": ("a2c", {"rollout_steps": 8, "optimizer": "adam"}),
    "episodes": ("reinforce", {"env": "gym_dr/CartPoleDR-v1", "episodes_per_env": 1, "baseline": "learned"}),
}


@contextmanager
def other_defaults(*, inference: bool) -> Iterator[None]:
    """What a program for other networks, on another device, may have set."""
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode() if inference else torch.no_grad())
            stack.enter_context(np.errstate(all="raise"))
            stack.enter_context(np.printoptions(precision=1, legacy="1.13"))
            torch.set_default_dtype(torch.float64)
            torch.set_default_device("meta")
            yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def results(algorithm: str, options: dict[str, Any], folder: Path) -> tuple[gym_dr.Run, list[str]]:
    """A run that stops after its first update and resumes, and the texts of its results."""
    whole = {**TINY, **options}
    gym_dr.train(algorithm, run_dir=folder, callback=lambda row: row["update"] == 0, **whole)
    run = gym_dr.load_run(folder)
    assert isinstance(run, gym_dr.Run)
    run = run.resume(progress=False)
    gym_dr.evaluate(folder, sets=["random"], episodes=2, progress=False)
    metrics = [row.rpartition(",")[0] for row in run.folder.metrics.read_text().splitlines()]  # without seconds
    return run, [*metrics, (run.path / "evaluation" / "episodes.csv").read_text()]


@pytest.mark.parametrize("inference", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "case",  # policies of torch are quick in the next test
    [pytest.param(case, marks=() if case in ("compiled epochs", "episodes") else pytest.mark.slow) for case in CASES],
)
def test_a_program_that_sets_other_defaults_gets_the_same_run(case: str, inference: bool, tmp_path: Path) -> None:
    run, texts = results(*CASES[case], tmp_path / "plain" / "run")
    with other_defaults(inference=inference):
        other, others = results(*CASES[case], tmp_path / "other" / "run")
    assert others == texts
    assert_same(load_newest(other.folder)["state"], load_newest(run.folder)["state"])


def test_a_program_that_sets_other_defaults_gets_the_same_actions(tmp_path: Path) -> None:
    gym_dr.train("ppo", run_dir=tmp_path / "run", **{**TINY, **REMEMBERS, **LARGE, "updates": 1})
    run, first = gym_dr.load_run(tmp_path / "run"), np.array([True, False])
    observations = np.linspace(-0.1, 0.1, 8, dtype=np.float32).reshape(2, 4)

    def states(policy: Any) -> list[Any]:
        actions = policy(observations, np.ones(2, np.bool_)).tolist()
        policy.state = policy.state
        return [actions, policy(observations, first).tolist(), policy.state.tolist()]

    assert isinstance(run, gym_dr.Run)
    expected = states(run.policy())
    with other_defaults(inference=True):
        policy: Any = run.policy()
        assert states(policy) == expected
    policy.state = policy.state  # also after the block
    run.policy()


@pytest.mark.slow
def test_a_program_that_sets_other_defaults_distills_the_same_policy(tmp_path: Path) -> None:
    gym_dr.train("a2c", run_dir=tmp_path / "teacher", **TINY)
    student = ("distill", {"teacher": str(tmp_path / "teacher"), "rollout_steps": 64, "minibatches": 2})
    run, texts = results(*student, tmp_path / "plain" / "run")
    with other_defaults(inference=False):
        other, others = results(*student, tmp_path / "other" / "run")
    assert others == texts
    assert_same(load_newest(other.folder)["state"], load_newest(run.folder)["state"])


@pytest.mark.slow
def test_an_exported_policy_is_the_same_with_other_defaults(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    run = gym_dr.train("a2c", run_dir=tmp_path / "run", **{**TINY, "normalize_observations": True})
    assert isinstance(run, gym_dr.Run)
    run.export(tmp_path / "plain.onnx")
    with other_defaults(inference=True):
        run.export(tmp_path / "other.onnx")
    assert (tmp_path / "other.onnx").read_bytes() == (tmp_path / "plain.onnx").read_bytes()
