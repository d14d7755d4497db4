"""Files that survive crashes and follow no links, and the folder of a run, which is made of them."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gym_dr.errors import BusyFolderError, ConfigError, GymDrError, RunFolderError, as_path, shortened
from gym_dr.paths import UNFINISHED, temporary_beside
from gym_dr.randomization.files import read_table
from gym_dr.runs.loggers import LOGGERS
from gym_dr.version import WRITTEN_BY, check_written_by

HEAD = 4096  # bytes of a file that tell what wrote it
EMPTY = b"gym_dr: nothing"  # no file holds it, so only an empty one is ours
LOCK = ".lock"
GRACE = 3.0  # seconds for the forked workers of a killed process, which hold its lock, to end

CONFIG = "config.json"
EVALUATION = "evaluation"  # folder inside that of a run or of several seeds
NETWORKS = ("actor", "critic")  # networks with their own files of weights
AGGREGATE = ("metrics.csv", "summary.json", "training.png")  # of several seeds, in their common folder
LOG_MARK = b"update"  # the first column
PICTURE_MARK = b"gym_dr"  # the software that made a picture
CHECKPOINTS = f"update-{'[0-9]' * 8}.safetensors"  # other names are copies that the user made
# names of a run's files -> what they hold near their beginning; others in its folder are the user's
WRITTEN = {
    "config.json": b'"gym_dr"',
    "command.txt": b"gymdr ",
    "metrics.csv": LOG_MARK,
    "draws.csv": LOG_MARK,
    "sampler.csv": LOG_MARK,
    "training.png": PICTURE_MARK,
    "sampler.png": PICTURE_MARK,
    **{f"{name}.pt": b"PK" for name in NETWORKS},
    f"checkpoints/{CHECKPOINTS}": b"gym_dr checkpoint",
    f"{EVALUATION}/evaluation.json": b"gym_dr evaluation",
    f"{EVALUATION}/episodes.csv": b"policy,set",
    f"{EVALUATION}/worst_cells.csv": b"policy,set",
    f"{EVALUATION}/{LOCK}": EMPTY,
}


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: str | Path) -> None:
        """Names the folder; nothing is read or written yet."""
        self.path = as_path(path)

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
            overwrite: Whether to delete the files of an existing run; files that no run has written stay.
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
            folder._delete(keep=[folder.config])
            folder.checkpoints.mkdir(exist_ok=True)
            if command:
                write_atomically(folder.command, f"{command}\n".encode())
            write_atomically(folder.config, config_json.encode())  # last: a folder with a configuration is a run
        return folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder against other processes, and cleans up after a killed one.

        Raises:
            RunFolderError: Another process holds the lock, or the folder cannot be written.
        """
        with locked(self.path):
            with os_errors(self.path):
                remove_unfinished(self.path, self.checkpoints)
            yield

    def check_free(self, *, overwrite: bool) -> None:
        """Checks that a new run can be created here; changes nothing.

        Raises:
            RunFolderError: The path exists and is neither an empty folder nor, with ``overwrite``, a run whose files
                are all its own.
        """
        with os_errors(self.path, "read"):
            if not self.path.exists() or (self.path.is_dir() and self._is_empty()):
                return
        if not self._is_run():
            raise RunFolderError(f"{self.path}: already exists and is not a run folder. Choose another `run_dir`.")
        if not overwrite:
            raise RunFolderError(
                f"{self.path}: already exists. Continue it with gymdr resume {self.path}, replace it with "
                "`overwrite=True`, or choose another `run_dir`."
            )
        self._check_files()
        with os_errors(self.path, "read"):
            for path in self._files(ours=False):
                raise RunFolderError(f"{path}: was not written by a run. Move it, or choose another `run_dir`.")

    def discard_if_unused(self) -> None:
        """Removes a run that failed before its first update, unless another process has locked the folder since.

        Raises:
            RunFolderError: The folder cannot be removed.
        """
        if self.metrics.exists() or self.draws.exists() or not self.config.exists():
            return
        with contextlib.suppress(BusyFolderError), self.locked(), os_errors(self.path, "removed"):
            self._delete()
        with contextlib.suppress(OSError):
            if self._is_empty():
                shutil.rmtree(self.path)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Opens the folder of an existing run.

        Raises:
            RunFolderError: There is no run at the path, or a file in it is a link.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise RunFolderError(f"{path}: no such run folder.")
        if not folder.config.is_file():
            found = {config.parent for config in folder.path.glob(f"*/{CONFIG}") if config.is_file()}
            found |= {config.parents[1] for config in folder.path.glob(f"runs/*/*/{CONFIG}")}  # of a study
            runs = sorted(str(run.relative_to(folder.path)) for run in found)
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
        """Whether gym_dr created the folder; other programs write a config.json too."""
        with contextlib.suppress(ConfigError):
            return self.checkpoints.is_dir() and bool(self.read_config())
        return False

    def _is_empty(self) -> bool:
        """Whether the folder holds nothing but files that a killed process wrote before the configuration."""
        return all(
            child.name == LOCK
            or (child == self.command and is_ours(child, b"gymdr "))
            or child.name.endswith(UNFINISHED)
            or (child == self.checkpoints and child.is_dir() and not any(child.iterdir()))
            for child in self.path.iterdir()
        )

    def _check_files(self) -> None:
        """Refuses links: an untrusted folder must not redirect writes."""
        places = [self.path / name for name in (*WRITTEN, LOCK) if "/" not in name]
        folders = [self.checkpoints, self.loggers, self.evaluation]
        refuse_links([*places, *folders, *(path for folder in folders for path in folder.glob("*"))])

    def _files(self, *, ours: bool) -> list[Path]:
        """The files that the run has written, the configuration first; or those that only have such names."""
        of_loggers = {f"loggers/{name}/{LOGGERS.get(name).files}": b"" for name in LOGGERS if LOGGERS.get(name).files}
        found = [(path, mark) for name, mark in {**WRITTEN, **of_loggers}.items() for path in self.path.glob(name)]
        return [path for path, mark in found if is_ours(path, mark) is ours]

    def _delete(self, keep: Collection[Path] = ()) -> None:
        """Deletes the files that the run has written, but not those to ``keep``, and folders that are then empty."""
        for path in reversed(self._files(ours=True)):
            if path not in keep:
                path.unlink()
        for folder in (*self.loggers.glob("*"), self.loggers, self.evaluation):
            with contextlib.suppress(OSError):  # it holds others
                folder.rmdir()


def seed_name(seed: int) -> str:
    """The name of a seed's run in a folder of several seeds."""
    return f"seed-{seed}"


def expand(paths: list[str]) -> list[RunFolder]:
    """Opens run folders by path; a folder of several seeds stands for all of them.

    Raises:
        RunFolderError: There is no run at a path, or a folder of several seeds holds a link.
    """
    folders = []
    for path in map(as_path, paths):
        several = not (path / CONFIG).is_file()
        seeds = [config.parent for config in sorted(path.glob(f"seed-*/{CONFIG}"))] if several else []
        if seeds:
            check_seeds(path, seeds)
        folders += [RunFolder.open(seed) for seed in seeds] or [RunFolder.open(path)]
    return folders


def check_seeds(root: Path, seeds: Sequence[Path]) -> None:
    """Checks that the runs in a folder of several seeds, and their common evaluation, are not links.

    Raises:
        RunFolderError: One of them is.
    """
    evaluation = root / EVALUATION
    inside = list(evaluation.iterdir()) if evaluation.is_dir() else []
    refuse_links([*seeds, evaluation, *inside])


# ---- files that survive crashes, and lead nowhere else ---------------------------------------------------------------


@contextlib.contextmanager
def os_errors(path: Path, verb: str = "written") -> Iterator[None]:
    """Raises operating system errors as ``RunFolderError`` with the path; gym_dr's own errors pass unchanged.

    Args:
        path: The file or folder.
        verb: Completes the message "cannot be ...": "written", "read" or "removed".
    """
    try:
        yield
    except GymDrError:
        raise
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be {verb}: {error.strerror or error}.") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file atomically: readers, and restarts after a crash, find the old content or the new, never a mixture.

    The content is on the disk before the file gets its name, and the name is on the disk before the function returns.

    Raises:
        RunFolderError: The file cannot be written; its old content is intact.
    """
    temporary = temporary_beside(path)
    with os_errors(path):
        try:
            with open(temporary, "xb") as file:  # follows no link
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        except BaseException:  # not even a second Ctrl-C may leave the file behind
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def remove_unfinished(*folders: Path) -> None:
    """Removes half-written files of killed processes."""
    for folder in folders:
        for path in folder.glob(f".*{UNFINISHED}"):
            path.unlink(missing_ok=True)


def is_ours(path: Path, mark: bytes) -> bool:
    """Whether gym_dr may replace or delete a file: it wrote ``mark`` at the beginning, or nothing is there to lose."""
    if not path.is_file():
        return not os.path.lexists(path)
    with open(path, "rb") as file:
        head = file.read(HEAD)
    return mark in head or not head.strip(b"\0")  # a power cut may leave zeros


def check_output(path: Path, mark: bytes = b"") -> None:
    """Checks that a file can be written, before the work that ends in it; leaves nothing behind.

    Args:
        path: The file.
        mark: Bytes near its beginning; an existing file without them, which gym_dr did not write, is not replaced.

    Raises:
        RunFolderError: It cannot be written.
    """
    with os_errors(path):
        if not is_ours(path, mark):
            raise RunFolderError(f"{path}: already exists and is no file of gym_dr. Move it, or choose another place.")
        temporary = temporary_beside(path)
        temporary.touch(exist_ok=False)
        temporary.unlink()


def sync_folder(path: Path) -> None:
    """Flushes the names in a folder to the disk."""
    if os.name == "nt":
        return  # Windows cannot open folders; its file system journals names
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_links(paths: Iterable[Path]) -> None:
    """Refuses links, which would redirect writes.

    Raises:
        RunFolderError: A path is a link.
    """
    for path in paths:
        if path.is_symlink():
            raise RunFolderError(
                f"{path}: expected a plain file or folder, got a link. If you trust its target, copy that here."
            )


def read_plain(path: Path, most: int) -> bytes:
    """Reads a plain file of at most ``most`` bytes: no link, and no pipe, which would block.

    Raises:
        OSError: It is missing, cannot be read, is larger, or is not a plain file.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError(errno.EINVAL, "it is not a plain file")
    if path.stat().st_size > most:
        raise OSError(errno.EFBIG, f"it is larger than {most} bytes")
    with open(path, "rb") as file:
        return file.read(most)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks a folder in the block; the operating system releases the lock of a process that is killed.

    The lock's file stays: if it were removed, two other processes could hold the lock at once.

    Raises:
        BusyFolderError: Another process holds the lock.
        RunFolderError: The folder cannot be written, or the lock's file is a link or holds something.
    """
    refuse_links([folder / LOCK])
    lock = FileLock(folder / LOCK)
    with os_errors(folder):
        if not is_ours(folder / LOCK, EMPTY):  # locking would empty it
            raise RunFolderError(f"{folder / LOCK}: expected an empty file, got another program's. Move it.")
        try:
            lock.acquire(timeout=GRACE)
        except Timeout:
            message = f"{folder}: is in use by another process. Wait for it to end, or stop it."
            raise BusyFolderError(message) from None
    try:
        yield
    finally:
        lock.release()
