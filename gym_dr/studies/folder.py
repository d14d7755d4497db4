"""The folder of a study: it holds that study alone, the runs of its variants, and trains those that are missing."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, RunFolderError, TrainingError, check_known
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.config import RunConfig, check_device, differences
from gym_dr.runs.durable import os_errors, remove_unfinished, write_atomically
from gym_dr.runs.folder import CONFIG, RunFolder, check_seeds, seed_name
from gym_dr.runs.launch import train_folders
from gym_dr.runs.lock import FolderLock
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.progress import Display, Progress
from gym_dr.studies.document import STUDY
from gym_dr.studies.plan import Study, describe_budget
from gym_dr.studies.variants import Variant, inner_table
from gym_dr.wording import counted


@dataclass(frozen=True, kw_only=True)
class StudyRun:
    """One run of a study, trained or not."""

    variant: Variant
    seed: int
    folder: RunFolder

    @property
    def name(self) -> str:
        """Its name in the evaluation and in messages."""
        return f"{self.variant.name}/{seed_name(self.seed)}"

    @property
    def config(self) -> RunConfig:
        """Its configuration in the study."""
        return self.variant.with_seed(self.seed)

    @property
    def changes(self) -> list[str]:
        """How the study's configuration differs from that in the folder."""
        return differences(self.folder.read_config(), self.config) if self.folder.config.exists() else []

    @property
    def finished(self) -> bool:
        """Whether it is trained; its plots come last."""
        return bool(self.folder.plots.exists() and updates_saved(self.folder) == self.config.options.updates)


@contextlib.contextmanager
def locked_runs(folder: Path, plan: Study, overwrite: Collection[str], command: str) -> Iterator[list[StudyRun]]:
    """Takes a folder for a study, for the block; gives its runs, which have their configurations.

    Args:
        folder: The folder, which may be new, or hold the same study.
        plan: The study.
        overwrite: Variants that were edited after their training, to train again.
        command: The command line, recorded in new runs.

    Raises:
        UnknownNameError: There is no such variant.
        ConfigError: A variant was edited after its training.
        RunFolderError: The folder holds something else, or cannot be written.
        BusyFolderError: Another process is working on the study.
    """
    for name in overwrite:
        check_known("variant", name, plan.budgets)
    for variant in plan.variants:
        check_device(variant.config.settings.device)
        check_loggers(variant.config.settings.loggers)
    runs = [
        StudyRun(variant=variant, seed=seed, folder=RunFolder(folder / "runs" / variant.name / seed_name(seed)))
        for seed in plan.seeds  # all variants with the first seed come first
        for variant in plan.variants
        if seed in variant.seeds
    ]
    _check_folder(folder, plan, runs)
    with os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with FolderLock(folder).held():
        _check_folder(folder, plan, runs)  # again: another process may have changed it
        remove_unfinished(folder, folder / "evaluation")
        edited = _check_edits(runs, overwrite)
        STUDY.write(folder, plan.to_dict())
        for run in runs:
            there, form = run.folder.config.exists(), run.config.to_json()
            if not there or run.name in edited:
                RunFolder.create(run.folder.path, form, overwrite=there, command=command)
            elif run.folder.read_config().get("loggers", []) != list(run.config.settings.loggers):
                write_atomically(run.folder.config, form.encode())  # all else is the same
        yield runs


def _check_folder(folder: Path, plan: Study, runs: Sequence[StudyRun]) -> None:
    """Checks that a folder is free for the study or holds it, and that nothing in it leads elsewhere."""
    there = STUDY.read(folder, "env", "variants")
    if there is None:
        return
    known = inner_table(there, "variants")
    if there["env"] != plan.env or not known.keys() & plan.budgets.keys():
        raise RunFolderError(
            f"{folder}: holds another study, {', '.join(sorted(known))} on {there['env']}; choose another `output`."
        )
    paths = [run.folder.path for run in runs]
    check_seeds(folder, [folder / "runs", *dict.fromkeys(path.parent for path in paths), *paths])
    for path in paths:
        if (path / CONFIG).exists():
            RunFolder.open(path)  # checks its files


def _check_edits(runs: Sequence[StudyRun], overwrite: Collection[str]) -> set[str]:
    """Refuses variants that were edited after their training; returns the names of runs to train again."""
    edited = [(run, changes) for run in runs if (changes := run.changes)]
    refused = {run.variant.name: changes for run, changes in edited if run.variant.name not in overwrite}
    lines = [
        f"  {name}: {', '.join(changes)}. Give it another name, or train it again: `overwrite={[name]}`"
        for name, changes in refused.items()
    ]
    if lines:
        raise ConfigError("\n".join(["Variants were edited after their training:", *lines]))
    return {run.name for run, _ in edited}


def train_missing(plan: Study, runs: Sequence[StudyRun], *, display: Display, **launching: Any) -> dict[str, str]:
    """Trains the runs that are not finished; returns those that failed, and why.

    Raises:
        TrainingError: No run could be trained.
    """
    waiting = [run for run in runs if not run.finished]
    if not waiting:
        return {}
    budgets = ", ".join(dict.fromkeys(map(describe_budget, plan.budgets.values())))
    equal = "equal" if plan.same_budget() else "unequal"
    what = f"{counted(len(plan.variants), 'variant')} x {plan.counts}"
    done = f"{len(runs) - len(waiting)} of {counted(len(runs), 'run')} trained"
    notes = [note for cells in plan.sets for note in cells.notes]
    for note in (*notes, f"{what}, {done}; {equal} budgets of environment steps: {budgets}"):
        Progress("run", display).note(note)
    failed = train_folders([run.folder for run in waiting], **launching, display=display)
    left = [run for run in waiting if str(run.folder.path) in failed or not run.finished]
    missing = {run.name: str(failed.get(str(run.folder.path), "not finished")) for run in left}
    if len(missing) == len(runs):
        lines = "\n".join(f"  {name}: {reason}" for name, reason in missing.items())
        raise TrainingError(f"No run could be trained:\n{lines}")
    return missing
