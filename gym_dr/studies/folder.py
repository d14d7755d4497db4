"""The folder of a study or a tuning; a study's folder holds the runs of its variants."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, RunFolderError, TrainingError, check_known, counted
from gym_dr.randomization.files import read_table
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.config import OpenedRun, check_device, differences
from gym_dr.runs.folder import (
    CONFIG,
    RunFolder,
    check_seeds,
    locked,
    os_errors,
    refuse_links,
    remove_unfinished,
    seed_name,
    write_atomically,
)
from gym_dr.runs.launch import Launch, train_folders
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.terminal import Display, Progress
from gym_dr.studies.plan import Study
from gym_dr.studies.variants import Variant, inner_table
from gym_dr.version import WRITTEN_BY, __version__, check_written_by

VERSION = 1  # of the documents of studies and tunings


@contextlib.contextmanager
def claimed(
    folder: Path, kind: str, name: str, form: Mapping[str, Any], check: Callable[[Mapping[str, Any]], None]
) -> Iterator[None]:
    """Locks a folder for a study or a tuning in the block; it must be new, or hold the same one.

    Args:
        folder: The folder; it may be untrusted.
        kind: "study" or "tuning".
        name: The file that describes it.
        form: The content of the file.
        check: Checks the content of the file in the folder.

    Raises:
        ConfigError: The file cannot be read.
        RunFolderError: The folder holds something else, or cannot be written.
        BusyFolderError: Another process is working on it.
    """
    path, head = folder / name, {"format": f"gym_dr {kind}", WRITTEN_BY: __version__, "version": VERSION}

    def read() -> None:
        refuse_links([path])
        with os_errors(folder, "read"):
            if not path.is_file():
                if folder.exists() and any(child.name[0] != "." for child in folder.iterdir()):
                    raise RunFolderError(f"{folder}: already exists and holds no {kind}; choose another `output`.")
                return
        there = read_table(path)
        if any(there.get(key) != head[key] for key in ("format", "version")):
            raise RunFolderError(f"{path}: expected a gym_dr {kind}, version {VERSION}; choose another `output`.")
        check_written_by(path, there)
        check(there)

    read()
    with os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        read()  # again: another process may have changed it
        write_atomically(path, (json.dumps({**head, **form}, indent=2) + "\n").encode())
        yield


@dataclass(frozen=True, kw_only=True)
class StudyRun(OpenedRun):
    """One run of a study, trained or not, with the study's configuration; its folder may hold an older one."""

    variant: Variant

    @property
    def name(self) -> str:
        """Its name in the evaluation and in messages."""
        return f"{self.variant.name}/{self.folder.path.name}"

    @property
    def changes(self) -> list[str]:
        """Differences between the study's configuration and the folder's."""
        return differences(self.folder.read_config(), self.config) if self.folder.config.exists() else []

    @property
    def finished(self) -> bool:
        """Whether it is trained; plots are written last."""
        return bool(self.folder.plots.exists() and updates_saved(self.folder) == self.config.options.updates)


@contextlib.contextmanager
def study_runs(folder: Path, plan: Study, overwrite: Collection[str], command: str) -> Iterator[list[StudyRun]]:
    """Locks a folder for a study in the block and yields its runs, each with its configuration in its folder.

    Args:
        folder: The folder.
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
        check_known("variant", name, plan.variants)
    for variant in plan.variants.values():
        check_device(variant.config.settings.device)
        check_loggers(variant.config.settings.loggers)
    runs = [
        StudyRun(
            folder=RunFolder(folder / "runs" / variant.name / seed_name(seed)),
            config=variant.with_seed(seed),
            algorithm=variant.algorithm,
            variant=variant,
        )
        for seed in plan.seeds  # first all variants with the first seed
        for variant in plan.variants.values()
        if seed in variant.seeds
    ]

    def check(there: Mapping[str, Any]) -> None:
        env, known = there.get("env"), inner_table(there, "variants")
        if env != plan.env or not known.keys() & plan.variants.keys():
            held = f"{', '.join(sorted(known))} on {env}"
            raise RunFolderError(f"{folder}: holds another study, {held}; choose another `output`.")
        _check_runs(folder, runs, overwrite)

    with claimed(folder, "study", "study.json", plan.to_dict(), check):
        remove_unfinished(folder, folder / "evaluation")
        for run in runs:
            form, there = run.config.to_json(), run.folder.config.exists()
            if not there or run.changes:
                RunFolder.create(run.folder.path, form, overwrite=there, command=command)
            elif run.folder.read_config().get("loggers", []) != list(run.config.settings.loggers):
                write_atomically(run.folder.config, form.encode())  # the rest is the same
        yield runs


def _check_runs(folder: Path, runs: Sequence[StudyRun], overwrite: Collection[str]) -> None:
    """Checks that no run is a link, and that no variant was edited after its training."""
    paths = [run.folder.path for run in runs]
    check_seeds(folder, [folder / "runs", *dict.fromkeys(path.parent for path in paths), *paths])
    for path in paths:
        if (path / CONFIG).exists():
            RunFolder.open(path)  # checks its files
    edited = {run.variant.name: changes for run in runs if (changes := run.changes)}
    lines = [
        f"  {name}: {', '.join(changes)}. Give it another name, or train it again: `overwrite={[name]}`"
        for name, changes in edited.items()
        if name not in overwrite
    ]
    if lines:
        raise ConfigError("\n".join(["Variants were edited after their training:", *lines]))


def train_missing(runs: Sequence[StudyRun], how: Launch, *, trust: Collection[str], display: Display) -> dict[str, str]:
    """Trains the unfinished runs; returns name -> reason for those that failed.

    Args:
        runs: All runs of a study.
        how: Where they train.
        trust: Modules that their configurations may import.
        display: How to show progress.

    Raises:
        TrainingError: No run could be trained.
    """
    waiting = [run for run in runs if not run.finished]
    if not waiting:
        return {}
    Progress("run", display).note(f"{len(runs) - len(waiting)} of {counted(len(runs), 'run')} trained")
    failed = train_folders([run.folder for run in waiting], how, trust=trust, display=display)
    missing = {run.name: str(failed[path]) for run in waiting if (path := str(run.folder.path)) in failed}
    if len(missing) == len(runs):
        lines = "\n".join(f"  {name}: {reason}" for name, reason in missing.items())
        raise TrainingError(f"No run could be trained:\n{lines}")
    return missing
