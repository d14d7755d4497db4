"""A teacher, its student, and what the student becomes, at the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import gymdr

TINY = ["--env", "gym_dr/CartPoleDR-v1", "--updates", "2", "--num-envs", "2", "--rollout-steps", "64"]
SMALL = [*TINY, "--hidden-sizes", "8", "--minibatches", "2", "--eval-episodes", "0"]
MEMORY = ["--memory", "gru", "--memory-size", "4", "--critic-context", "--predict-draw", "1"]


def test_a_student_imitates_a_teacher_and_goes_on_with_ppo(tmp_path: Path) -> None:
    teacher, student, better = (tmp_path / name for name in ("teacher", "student", "better"))
    assert gymdr("train", "ppo", *SMALL, "--context", "observation", "--run-dir", teacher).code == 0
    assert gymdr("train", "distill", *SMALL, *MEMORY, "--teacher", teacher, "--run-dir", student).code == 0
    assert gymdr("train", "ppo", *SMALL, *MEMORY, "--init", student, "--run-dir", better).code == 0
    assert "nominal: 2 episodes" in gymdr("evaluate", better, "--episodes", "2").out
    header = (student / "metrics.csv").read_text().splitlines()[0]
    assert "imitation_loss,critic_loss,entropy,prediction_loss" in header
