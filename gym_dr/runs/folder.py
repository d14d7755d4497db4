"""The folder of one run, and the names of the files in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gym_dr.errors import BusyFolderError, ConfigError, RunFolderError, shortened
from gym_dr.randomization.spec import read_table
from gym_dr.runs.durable import sync_folder, write_atomically
from gym_dr.runs.lock import LOCK, OWNER, FolderLock, identity

CONFIG = "config.json"
EVALUATION = "evaluation"  # folder inside of a run's, or of one of several seeds
NETWORKS = ("actor", "critic")  # their weights have files of their own


class RunFolder:
    """Where one run keeps what it writes."""

    def __init__(self, path: str | Path) -> None:
        """Names a folder; nothing is read or written yet."""
        self.path = Path(path)
        self._lock = FolderLock(self.path)
        self._made: tuple[int, int] | None = None  # identity of the folder, if ``create`` has put a run into it
        self.killed_owner = ""  # process that was killed while it held the folder, in words

    config = property(lambda self: self.path / CONFIG)  # the resolved configuration
    command = property(lambda self: self.path / "command.txt")  # what was typed to train it
    metrics = property(lambda self: self.path / "metrics.csv")  # one row an update
    draws = property(lambda self: self.path / "draws.csv")  # one row an episode: its draw, return and length
    checkpoints = property(lambda self: self.path / "checkpoints")  # the newest few
    plots = property(lambda self: self.path / "training.png")  # returns, entropy and losses
    evaluation = property(lambda self: self.path / EVALUATION)  # the policy on nominal and other draws
    weights = property(lambda self: [self.path / f"{name}.pt" for name in NETWORKS])  # of the newest checkpoint

    @classmethod
    def create(cls, path: str | Path, config_json: str, *, overwrite: bool, command: str = "") -> RunFolder:
        """Makes the folder of a new run and writes its configuration.

        Args:
            path: The folder; its parents are made.
            config_json: The resolved configuration.
            overwrite: Whether a run that is there already is replaced; files that no run writes stay. Until the new run
                has made an update the old one is set aside and ``discard_if_unused`` puts it back.
            command: What was typed to train it, if anything was.

        Raises:
            RunFolderError: There is something else at the path, or it cannot be written.
        """
        folder = cls(path)
        folder.check_free(overwrite=overwrite)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.path.parent)
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None
        with folder.locked():
            try:
                if folder.config.exists():
                    shutil.rmtree(folder._set_aside, ignore_errors=True)
                    folder._move_files(folder.path, folder._set_aside)
                folder.checkpoints.mkdir(exist_ok=True)
            except OSError as error:
                raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None
            if command:
                write_atomically(folder.command, f"{command}\n".encode())
            write_atomically(folder.config, config_json.encode())  # the last one: from here on it is a run
        folder._made = identity(folder.path)
        return folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps every other process from writing here, and puts right what one that was killed has left half done.

        Raises:
            RunFolderError: Another process holds the folder, or it cannot be written.
        """
        self.killed_owner = self._lock.acquire()
        try:
            try:
                self._settle()
            except OSError as error:
                raise RunFolderError(f"{self.path}: cannot be written: {error.strerror or error}.") from None
            yield
        finally:
            self._lock.release()

    def check_ours(self) -> None:
        """Checks that the folder is still the one that was locked; without a lock there is nothing to check.

        Raises:
            RunFolderError: It was removed or replaced.
        """
        self._lock.check()

    def check_free(self, *, overwrite: bool) -> None:
        """Checks that a new run may be put here; changes nothing, but for ending what a killed process had begun.

        Raises:
            RunFolderError: There is something at the path that is not an empty folder or, with ``overwrite``, a run.
        """
        try:
            if not self.path.exists() or (self.path.is_dir() and self._is_empty()):
                return
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be read: {error.strerror or error}.") from None
        self._settle_replacement()
        if not self._is_run():
            runs = _runs_inside(self.path)
            what = f"holds the runs {', '.join(runs)}" if runs else "is not a run folder"
            raise RunFolderError(f"{self.path}: exists already and {what}. Choose another --run-dir.")
        if not overwrite:
            raise RunFolderError(
                f"{self.path}: exists already. Continue it with 'gymdr resume {self.path}', replace it with "
                "--overwrite, or choose another --run-dir."
            )
        self._check_files()

    def discard_if_unused(self) -> None:
        """Takes back a run that failed before its first update: what was there before is there again.

        A folder that another process has taken meanwhile, or that is gone, is left alone.

        Raises:
            RunFolderError: It cannot be removed.
        """
        if self.metrics.exists() or self.draws.exists() or identity(self.path) != self._made:
            return
        try:
            with self.locked():
                self._remove_files()
                self._settle()  # the one that was set aside has the only configuration now
        except BusyFolderError:
            return
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be removed: {error.strerror or error}.") from None
        with contextlib.suppress(OSError):
            if self._is_empty():
                shutil.rmtree(self.path)

    def forget_replaced(self) -> None:
        """Deletes the run that this one has replaced."""
        shutil.rmtree(self._set_aside, ignore_errors=True)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The folder of a run that exists.

        Raises:
            RunFolderError: There is no run at the path, or a file in it leads elsewhere.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise RunFolderError(f"{path}: there is no such run folder.")
        folder._settle_replacement()
        if not folder.config.is_file():
            runs = _runs_inside(folder.path)
            hint = f" It holds the runs {', '.join(runs)}: name one of them." if runs else ""
            raise RunFolderError(f"{path}: is not a run folder, it has no {CONFIG}.{hint}")
        folder._check_files()
        return folder

    def read_config(self) -> dict[str, Any]:
        """The table in ``config.json``.

        Raises:
            ConfigError: It cannot be read or names no algorithm.
        """
        table = read_table(self.config)
        if not isinstance(table.get("algorithm"), str):
            raise ConfigError(
                f"{self.config}: expected the name of an algorithm, got {shortened(table.get('algorithm'))}."
            )
        return table

    def write_json(self, path: Path, content: Any) -> None:
        """Writes a JSON file whole or not at all."""
        write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())

    def _is_run(self) -> bool:
        """Whether gym_dr made the folder; other programs have files that are called config.json, too."""
        try:
            self.read_config()
        except ConfigError:
            return False
        return bool(self.checkpoints.is_dir())

    def _is_empty(self) -> bool:
        """Whether there is nothing but what a process that was killed before it wrote a configuration has left."""
        return all(
            child.name in (LOCK, OWNER, self.command.name)
            or _written_by_us(child, {CONFIG, OWNER, self.command.name})
            or (child == self.checkpoints and child.is_dir() and not any(child.iterdir()))
            for child in self.path.iterdir()
        )

    def _check_files(self) -> None:
        """A folder may be a stranger's: nothing in it may lead a write, or a read that does not end, elsewhere."""
        root = self.path.resolve()
        folders = (self.checkpoints, self.evaluation, self._set_aside)
        inside = list(self.evaluation.iterdir()) if self.evaluation.is_dir() else []
        for path in [*self._files, *inside, self._set_aside, self.path / LOCK, self.path / OWNER]:
            whole = path.is_dir() if path in folders else path.is_file()
            place = root / path.relative_to(self.path)
            if (path.is_symlink() or path.exists()) and not (whole and path.resolve() == place):
                raise RunFolderError(
                    f"{path}: expected a plain file or folder of the run, got something else, such as a link. "
                    "Copy what it leads to into the run folder if you trust it."
                )

    @property
    def _files(self) -> list[Path]:
        """What a run writes and nothing else; the configuration last, so that it is a run until then."""
        results = [self.metrics, self.draws, self.plots, self.evaluation, *self.weights, self.checkpoints]
        return [*results, self.command, self.config]

    @property
    def _set_aside(self) -> Path:
        return self.path / ".replaced"

    def _settle_replacement(self) -> None:
        """Gives a run back that was being replaced when the process that did so was killed."""
        if not self.config.exists() and (self._set_aside / CONFIG).is_file():
            self._check_files()
            with self.locked():
                pass

    def _settle(self) -> None:
        """Removes what a killed process left half written, and undoes a replacement that it had not finished.

        Files move with the configuration last, so where it is tells how far the replacement had come.
        """
        # gymdr evaluate and gymdr plot take no lock: their files may be under way just now
        names = {path.name for path in self._files} - {self.evaluation.name, self.plots.name} | {OWNER}
        for part in [*self.path.iterdir(), *(self.checkpoints.iterdir() if self.checkpoints.is_dir() else [])]:
            if _written_by_us(part, names) or (part.parent == self.checkpoints and part.suffix == ".tmp"):
                part.unlink(missing_ok=True)
        if not self._set_aside.is_dir():
            return
        if self.config.exists() and (self._set_aside / CONFIG).exists():
            if self.metrics.exists():  # the new run has begun
                self.forget_replaced()
            return
        self._move_files(self._set_aside, self.path)
        self._set_aside.rmdir()

    def _remove_files(self) -> None:
        for path in self._files:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _move_files(self, source: Path, target: Path) -> None:
        target.mkdir(exist_ok=True)
        for path in self._files:
            if (source / path.name).exists():
                os.replace(source / path.name, target / path.name)
        sync_folder(target)
        sync_folder(source)


def expand(paths: list[str]) -> list[RunFolder]:
    """Run folders named on a command line; a folder of several seeds stands for all of them.

    Raises:
        RunFolderError: There is no run at a path.
    """
    folders = []
    for path in paths:
        seeds = sorted(Path(path).glob(f"seed-*/{CONFIG}")) if not (Path(path) / CONFIG).is_file() else []
        folders += [RunFolder(config.parent) for config in seeds] or [RunFolder.open(path)]
    return folders


def _written_by_us(path: Path, names: set[str]) -> bool:
    """Whether it is what ``write_atomically`` has begun to write for one of the names."""
    name, process, ending = (*path.name[1:].rsplit(".", 2), "", "")[:3]
    return path.name.startswith(".") and name in names and process.isdigit() and ending == "tmp"


def _runs_inside(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    return sorted(child.name for child in path.iterdir() if (child / CONFIG).is_file())
