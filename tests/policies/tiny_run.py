"""A run of a few steps, for tests that need a trained folder."""

from __future__ import annotations

from pathlib import Path

from gym_dr.cli.main import main

TINY = ("--updates", "2", "--rollout-steps", "8", "--num-envs", "2", "--eval-episodes", "0", "--hidden-sizes", "8")


def train_tiny_run(path: Path, *options: str) -> Path:
    """Trains a2c for two updates into a folder and returns it."""
    main(["train", "a2c", *TINY, "--run-dir", str(path), *options])
    return path
