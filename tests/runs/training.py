"""Trainings that are cut short, and resumed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.training.registry import find_algorithm


class CutError(Exception):
    """Stands for whatever ends a training early."""


def train_or_resume(path: Path, config: RunConfig, cut_at: int | None = None) -> RunFolder:
    """Trains, or resumes the run that is there; ``cut_at`` ends it when that update is logged but not saved."""
    resume = path.exists()
    folder = RunFolder.open(path) if resume else RunFolder.create(path, config.to_json(), overwrite=False)

    def report(updates: int, row: Mapping[str, float]) -> None:
        if updates - 1 == cut_at:
            raise CutError

    session = RunSession(folder, config, report, resume=resume)
    with contextlib.closing(session), contextlib.suppress(CutError):
        find_algorithm(config.algorithm).train_function()(session, config.options)
    return folder
