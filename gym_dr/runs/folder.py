"""The folder of a run, and the names of the files in it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gym_dr.errors import BusyFolderError, ConfigError, RunFolderError, shortened
from gym_dr.randomization.files import read_table
from gym_dr.runs.durable import os_errors, sync_folder, write_atomically
from gym_dr.runs.lock import LOCK, OWNER, FolderLock, identity
from gym_dr.runs.plain import check_plain
from gym_dr.version import WRITTEN_BY, check_written_by
from gym_dr.wording import how_to_resume, spelled

CONFIG = "config.json"
EVALUATION = "evaluation"  # folder in that of a run, or of several seeds
NETWORKS = ("actor", "critic")  # whose weights have files of their own


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: str | Path) -> None:
        """Names the folder; nothing is read or written yet."""
        self.path = Path(path)
        self._lock = FolderLock(self.path)
        self._created: tuple[int, int] | None = None  # identity of the folder, if ``create`` made the run
        self.killed_owner = ""  # description of a process that was killed while it held the lock

    config = property(lambda self: self.path / CONFIG)  # the resolved configuration
    command = property(lambda self: self.path / "command.txt")  # the command that trained it
    metrics = property(lambda self: self.path / "metrics.csv")  # one row per update
    draws = property(lambda self: self.path / "draws.csv")  # one row per episode: draw, return, steps
    sampler = property(lambda self: self.path / "sampler.csv")  # one row per update of the sampler
    checkpoints = property(lambda self: self.path / "checkpoints")  # the newest few
    plots = property(lambda self: self.path / "training.png")  # returns, entropy and losses
    growth = property(lambda self: self.path / "sampler.png")  # how an adaptive sampler's draws changed
    loggers = property(lambda self: self.path / "loggers")  # a folder for each
    evaluation = property(lambda self: self.path / EVALUATION)  # of the policy on nominal values and on draws
    weights = property(lambda self: [self.path / f"{name}.pt" for name in NETWORKS])  # of the newest checkpoint

    @classmethod
    def create(cls, path: str | Path, config_json: str, *, overwrite: bool, command: str = "") -> RunFolder:
        """Creates the folder of a new run and writes its configuration.

        Args:
            path: The folder; its parents are created.
            config_json: The resolved configuration.
            overwrite: Whether to replace an existing run; files that no run writes stay. The old run is backed up until
                the first update of the new one, and ``discard_if_unused`` restores it.
            command: The command line, if there was one.

        Raises:
            RunFolderError: The path holds something else, or cannot be written.
        """
        folder = cls(path)
        folder.check_free(overwrite=overwrite)
        with os_errors(folder.path):
            folder.path.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.path.parent)
        with folder.locked(), os_errors(folder.path):
            if folder.config.exists():
                shutil.rmtree(folder._backup, ignore_errors=True)
                folder._move_files(folder.path, folder._backup)
            folder.checkpoints.mkdir(exist_ok=True)
            if command:
                write_atomically(folder.command, f"{command}\n".encode())
            write_atomically(folder.config, config_json.encode())  # last: a folder with a configuration is a run
        folder._created = identity(folder.path)
        return folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder against other processes, and cleans up after a killed one.

        Raises:
            RunFolderError: Another process holds the lock, or the folder cannot be written.
        """
        with self._lock.held() as self.killed_owner:
            with os_errors(self.path):
                self._recover()
            yield

    def check_lock(self) -> None:
        """Checks that the folder is still the one that was locked; does nothing without a lock.

        Raises:
            RunFolderError: It was removed or replaced.
        """
        self._lock.check()

    def check_free(self, *, overwrite: bool) -> None:
        """Checks that a new run can be created here; changes nothing but leftovers of a killed process.

        Raises:
            RunFolderError: The path exists and is neither an empty folder nor, with ``overwrite``, a run.
        """
        with os_errors(self.path, "read"):
            if not self.path.exists() or (self.path.is_dir() and self._is_empty()):
                return
        self._recover_backup()
        if not self._is_run():
            runs = _runs_inside(self.path)
            what = f"holds the runs {', '.join(runs)}" if runs else "is not a run folder"
            raise RunFolderError(f"{self.path}: already exists and {what}. Choose another {spelled('run_dir')}.")
        if not overwrite:
            raise RunFolderError(
                f"{self.path}: already exists. Continue it with {how_to_resume(self.path)}, replace it with "
                f"{spelled('overwrite', True)}, or choose another {spelled('run_dir')}."
            )
        self._check_files()

    def discard_if_unused(self) -> None:
        """Removes a run that failed before its first update, and restores the run that it replaced.

        A folder that is gone, or that another process has locked since, is left alone.

        Raises:
            RunFolderError: The folder cannot be removed.
        """
        if self.metrics.exists() or self.draws.exists() or identity(self.path) != self._created:
            return
        try:
            with self.locked(), os_errors(self.path, "removed"):
                for path in self._files:
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink(missing_ok=True)
                self._recover()  # the backup has the only configuration now
        except BusyFolderError:
            return
        with contextlib.suppress(OSError):
            if self._is_empty():
                shutil.rmtree(self.path)

    def delete_replaced(self) -> None:
        """Deletes the backup of the run that this one replaced."""
        shutil.rmtree(self._backup, ignore_errors=True)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Opens the folder of an existing run.

        Raises:
            RunFolderError: There is no run at the path, or a file in it is a link or a special file.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise RunFolderError(f"{path}: no such run folder.")
        folder._recover_backup()
        if not folder.config.is_file():
            runs = _runs_inside(folder.path)
            hint = f" It holds the runs {', '.join(runs)}: name one of them." if runs else ""
            raise RunFolderError(f"{path}: is not a run folder: it has no {CONFIG}.{hint}")
        folder._check_files()
        return folder

    def read_config(self) -> dict[str, Any]:
        """The table in ``config.json``.

        Raises:
            ConfigError: It cannot be read or names no algorithm.
            RunFolderError: A version before 0.4 wrote it.
        """
        table = read_table(self.config)
        if not isinstance(table.get("algorithm"), str):
            raise ConfigError(
                f"{self.config}: expected the name of an algorithm, got {shortened(table.get('algorithm'))}."
            )
        check_written_by(self.config, table)
        del table[WRITTEN_BY]
        return table

    def _is_run(self) -> bool:
        """Whether gym_dr created the folder; other programs write files named config.json too."""
        if not self.checkpoints.is_dir():
            return False
        try:
            self.read_config()
        except ConfigError:
            return False
        return True

    def _is_empty(self) -> bool:
        """Whether the folder holds nothing, or only leftovers of a process killed before it wrote a configuration."""
        return all(
            child.name in (LOCK, OWNER, self.command.name)
            or written_by_us(child, {CONFIG, OWNER, self.command.name})
            or (child == self.checkpoints and child.is_dir() and not any(child.iterdir()))
            for child in self.path.iterdir()
        )

    def _check_files(self) -> None:
        """Rejects links and special files: an untrusted folder must not redirect or block reads and writes."""
        # what is in the folder of a logger is up to it
        kept = [path for path in self.loggers.iterdir() if path.is_dir()] if self.loggers.is_dir() else []
        folders = (self.checkpoints, self.evaluation, self.loggers, *kept, self._backup)
        inside = [*kept, *(self.evaluation.iterdir() if self.evaluation.is_dir() else [])]
        check_plain(self.path, [*self._files, *inside, self._backup, self.path / LOCK, self.path / OWNER], folders)

    @property
    def _files(self) -> list[Path]:
        """The files that a run writes; the configuration comes last, so the folder is a run until it is moved."""
        logs, pictures = [self.metrics, self.draws, self.sampler], [self.plots, self.growth]
        others = [self.loggers, self.evaluation, *self.weights, self.checkpoints]
        return [*logs, *pictures, *others, self.command, self.config]

    @property
    def _backup(self) -> Path:
        return self.path / ".replaced"

    def _recover_backup(self) -> None:
        """Restores a run whose replacement was killed halfway."""
        if not self.config.exists() and (self._backup / CONFIG).is_file():
            self._check_files()
            with self.locked():
                pass

    def _recover(self) -> None:
        """Removes half-written files of a killed process, and undoes its unfinished replacement of a run.

        The configuration moves last, so its place shows how far the replacement got.
        """
        # gymdr evaluate and gymdr plot take no lock and may be writing their files right now
        others = {self.evaluation.name, self.plots.name, self.growth.name}
        names = {path.name for path in self._files} - others | {OWNER}
        for part in [*self.path.iterdir(), *(self.checkpoints.iterdir() if self.checkpoints.is_dir() else [])]:
            if written_by_us(part, names) or (part.parent == self.checkpoints and part.suffix == ".tmp"):
                part.unlink(missing_ok=True)
        if not self._backup.is_dir():
            return
        if self.config.exists() and (self._backup / CONFIG).exists():
            if self.metrics.exists():  # the new run has begun
                self.delete_replaced()
            return
        self._move_files(self._backup, self.path)
        self._backup.rmdir()

    def _move_files(self, source: Path, target: Path) -> None:
        target.mkdir(exist_ok=True)
        for path in self._files:
            if (source / path.name).exists():
                os.replace(source / path.name, target / path.name)
        sync_folder(target)
        sync_folder(source)


def seed_name(seed: int) -> str:
    """The name of a seed's run in a folder of several seeds."""
    return f"seed-{seed}"


def expand(paths: list[str]) -> list[RunFolder]:
    """Opens run folders by path; a folder of several seeds stands for all of them.

    Raises:
        RunFolderError: There is no run at a path, or a folder of several seeds has a link to one elsewhere.
    """
    folders = []
    for path in paths:
        several = not (Path(path) / CONFIG).is_file()
        seeds = [config.parent for config in sorted(Path(path).glob(f"seed-*/{CONFIG}"))] if several else []
        if seeds:
            check_seeds(Path(path), seeds)
        folders += [RunFolder.open(seed) for seed in seeds] or [RunFolder.open(path)]
    return folders


def check_seeds(root: Path, seeds: Sequence[Path]) -> None:
    """Checks that the runs in a folder of several seeds, and their common evaluation, are not elsewhere.

    Raises:
        RunFolderError: One is a link.
    """
    evaluation = root / EVALUATION
    inside = list(evaluation.iterdir()) if evaluation.is_dir() else []
    check_plain(root, [*seeds, evaluation, *inside], [*seeds, evaluation])


def written_by_us(path: Path, names: set[str]) -> bool:
    """Whether a path is a temporary file of ``write_atomically`` for one of the names."""
    name, process, ending = (*path.name[1:].rsplit(".", 2), "", "")[:3]
    return path.name.startswith(".") and name in names and process.isdigit() and ending == "tmp"


def _runs_inside(path: Path) -> list[str]:
    return sorted(config.parent.name for config in path.glob(f"*/{CONFIG}") if config.is_file())
