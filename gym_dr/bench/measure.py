"""Runs ``gymdr bench``: checks, all measurements, and output files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gym_dr.bench.learning import (
    measure_learning,
    measure_solving,
    solving_trainings,
    time_to_threshold,
    training_config,
)
from gym_dr.bench.machine import describe
from gym_dr.bench.plots import PICTURES
from gym_dr.bench.profile import measure_profile
from gym_dr.bench.settings import BenchSettings
from gym_dr.bench.throughput import measure_throughput
from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.training.api import Algorithm
from gym_dr.wording import either, flag

FORMAT = 3  # of bench.json
RESULT = "bench.json"


def reports(settings: BenchSettings) -> int:
    """Number of times that ``measure`` calls ``report``."""
    trainings = len(settings.learning_sizes) * len(settings.seeds) + solving_trainings(settings)
    return 1 + len(settings.sizes) + trainings + 1


def measure(settings: BenchSettings, algorithm: Algorithm, report: Callable[[str], None]) -> dict[str, Any]:
    """Measures everything; writes only into temporary folders.

    Args:
        settings: What to measure, and for how long.
        algorithm: The algorithm to train.
        report: Called before each measurement.

    Returns:
        The content of ``bench.json``.

    Raises:
        GymDrError: The environment is unknown, cannot be made, or cannot be trained on.
    """
    import torch  # heavy

    torch.set_num_threads(1)  # as in training: the networks are small
    report("compiling")
    config = training_config(settings.env, algorithm, None, settings.seeds[0])
    time_to_threshold(config, algorithm, settings.threshold, limit=0.0)  # loads or compiles everything timed later
    machine = describe()
    throughput = measure_throughput(settings, report)
    profile = measure_profile(config, algorithm, settings.profile_updates, report)
    learning = measure_learning(settings, algorithm, report)
    solving = measure_solving(settings, report)
    return {
        "format": FORMAT,
        "machine": machine,
        "settings": {"algorithm": algorithm.name, **asdict(settings)},
        "throughput": throughput,
        "learning": learning,
        "solving": solving,
        "profile": profile,
    }


def prepare(folder: Path) -> None:
    """Makes the folder for the results.

    Raises:
        RunFolderError: It is not empty, or cannot be made.
    """
    with os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RunFolderError(
                f"{folder}: already exists and is not empty. Choose another {either(flag('output'), 'folder')}."
            )


def write(result: dict[str, Any], folder: Path) -> list[Path]:
    """Writes the results and their pictures; returns the files.

    Raises:
        RunFolderError: A file cannot be written.
    """
    written = [folder / RESULT]
    write_atomically(written[0], (json.dumps(result, indent=2, allow_nan=False) + "\n").encode())
    for name, draw in PICTURES.items():
        written.append(folder / name)
        draw(result, written[-1])
    return written
