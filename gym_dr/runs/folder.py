"""The folder of one run, and the names of the files in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.randomization.spec import read_table

CONFIG = "config.json"
EVALUATION = "evaluation"  # folder inside of a run's, or of one of several seeds
NETWORKS = ("actor", "critic")  # their weights have files of their own


class RunFolder:
    """Where one run keeps what it writes."""

    def __init__(self, path: str | Path) -> None:
        """Names a folder; nothing is read or written yet."""
        self.path = Path(path)

    config = property(lambda self: self.path / CONFIG)  # the resolved configuration
    metrics = property(lambda self: self.path / "metrics.csv")  # one row an update
    draws = property(lambda self: self.path / "draws.csv")  # one row an episode: its draw, return and length
    checkpoints = property(lambda self: self.path / "checkpoints")  # the newest few
    plots = property(lambda self: self.path / "training.png")  # returns, entropy and losses
    evaluation = property(lambda self: self.path / EVALUATION)  # the policy on nominal and other draws
    weights = property(lambda self: [self.path / f"{name}.pt" for name in NETWORKS])  # of the newest checkpoint

    @classmethod
    def create(cls, path: str | Path, config_json: str, *, overwrite: bool) -> RunFolder:
        """Makes the folder of a new run and writes its configuration.

        Args:
            path: The folder; its parents are made.
            config_json: The resolved configuration.
            overwrite: Whether a run that is there already is replaced; files that no run writes stay. Until the new run
                has made an update the old one is set aside and ``discard_if_unused`` puts it back.

        Raises:
            RunFolderError: There is something else at the path, or it cannot be written.
        """
        folder = cls(path)
        folder.check_free(overwrite=overwrite)
        try:
            if folder.config.exists():
                shutil.rmtree(folder._set_aside, ignore_errors=True)
                folder._move_files(folder.path, folder._set_aside)
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None
        write_atomically(folder.config, config_json.encode())
        return folder

    def check_free(self, *, overwrite: bool) -> None:
        """Checks that a new run may be put here; changes nothing.

        Raises:
            RunFolderError: There is something at the path that is not an empty folder or, with ``overwrite``, a run.
        """
        try:
            if not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir())):
                return
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be read: {error.strerror or error}.") from None
        if not self._is_run():
            runs = _runs_inside(self.path)
            what = f"holds the runs {', '.join(runs)}" if runs else "is not a run folder"
            raise RunFolderError(f"{self.path}: exists already and {what}. Choose another --run-dir.")
        if not overwrite:
            raise RunFolderError(
                f"{self.path}: exists already. Continue it with 'gymdr resume {self.path}', replace it with "
                "--overwrite, or choose another --run-dir."
            )

    def discard_if_unused(self) -> None:
        """Takes back a run that failed before its first update: what was there before is there again.

        Raises:
            RunFolderError: It cannot be removed.
        """
        if self.metrics.exists() or self.draws.exists():
            return
        try:
            self._remove_files()
            if self._set_aside.is_dir():
                self._move_files(self._set_aside, self.path)
                self._set_aside.rmdir()
            elif not any(self.path.iterdir()):
                self.path.rmdir()
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be removed: {error.strerror or error}.") from None

    def forget_replaced(self) -> None:
        """Deletes the run that this one has replaced."""
        shutil.rmtree(self._set_aside, ignore_errors=True)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The folder of a run that exists.

        Raises:
            RunFolderError: There is no run at the path.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise RunFolderError(f"{path}: there is no such run folder.")
        if not folder.config.is_file():
            runs = _runs_inside(folder.path)
            hint = f" It holds the runs {', '.join(runs)}: name one of them." if runs else ""
            raise RunFolderError(f"{path}: is not a run folder, it has no {CONFIG}.{hint}")
        return folder

    def read_config(self) -> dict[str, Any]:
        """The table in ``config.json``.

        Raises:
            ConfigError: It cannot be read or names no algorithm.
        """
        table = read_table(self.config)
        if not isinstance(table.get("algorithm"), str):
            raise ConfigError(f"{self.config}: expected the name of an algorithm, got {table.get('algorithm')!r}.")
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

    @property
    def _files(self) -> list[Path]:
        """What a run writes and nothing else; the configuration last, so that it is a run until then."""
        return [self.metrics, self.draws, self.plots, self.evaluation, *self.weights, self.checkpoints, self.config]

    @property
    def _set_aside(self) -> Path:
        return self.path / ".replaced"

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


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file so that a reader, or a restart after a crash, finds the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None


def _runs_inside(path: Path) -> list[str]:
    if not path.is_dir():
        return []
    return sorted(child.name for child in path.iterdir() if (child / CONFIG).is_file())
