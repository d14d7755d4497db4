"""The folder of one run, and the names of the files in it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.randomization.spec import read_table

CONFIG = "config.json"


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
    evaluation = property(lambda self: self.path / "evaluation.json")  # the policy on nominal and training draws

    @classmethod
    def create(cls, path: str | Path, config_json: str, *, overwrite: bool) -> RunFolder:
        """Makes the folder of a new run and writes its configuration.

        Args:
            path: The folder; its parents are made.
            config_json: The resolved configuration.
            overwrite: Whether a run that is there already is deleted. Other folders are never deleted.

        Raises:
            RunFolderError: There is something at the path, or it cannot be written.
        """
        folder = cls(path)
        try:
            if folder.path.exists() and not (folder.path.is_dir() and not any(folder.path.iterdir())):
                _make_room(folder, overwrite)
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
            folder.config.write_text(config_json, encoding="utf-8")
        except OSError as error:
            if isinstance(error, RunFolderError):
                raise
            raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None
        return folder

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
            seeds = sorted(child.name for child in folder.path.iterdir() if (child / CONFIG).is_file())
            hint = f" It holds the runs {', '.join(seeds)}: name one of them." if seeds else ""
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
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunFolderError(f"{path}: cannot be written: {error.strerror or error}.") from None


def _make_room(folder: RunFolder, overwrite: bool) -> None:
    if not overwrite:
        raise RunFolderError(
            f"{folder.path}: exists already. Continue it with 'gymdr resume {folder.path}', replace it with "
            "--overwrite, or choose another --run-dir."
        )
    runs = [folder.path, *folder.path.glob("seed-*")] if folder.path.is_dir() else []
    if not any((run / CONFIG).is_file() for run in runs):
        raise RunFolderError(f"{folder.path}: is not a run folder, so --overwrite leaves it alone. Choose another.")
    shutil.rmtree(folder.path)
