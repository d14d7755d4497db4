"""Checkpoints: tensors and plain values in torch's own file format, loaded without running any code from the file."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gym_dr.errors import CheckpointError, RunFolderError
from gym_dr.runs.folder import NETWORKS, RunFolder, write_atomically

FORMAT = "gym_dr checkpoint"
VERSION = 1
KEPT = 3  # checkpoints in a run folder; older ones are deleted

_NAME = re.compile(r"update-(\d+)\.pt")


def save_checkpoint(
    folder: RunFolder, update: int, state: Mapping[str, Any], session: Mapping[str, Any], config: Mapping[str, Any]
) -> Path:
    """Writes a checkpoint after an update, and the networks' weights beside the run's other files.

    Args:
        folder: Of the run.
        update: Number of updates made so far.
        state: The algorithm's, tensors and plain values.
        session: Counters and statistics of the run.
        config: The run's configuration, so that a checkpoint says what it is of.

    Raises:
        RunFolderError: A file cannot be written; the checkpoints before it are intact then.
    """
    content = {"format": FORMAT, "version": VERSION, "update": update, "config": config}
    content |= {"state": dict(state), "session": dict(session)}
    path: Path = folder.checkpoints / f"update-{update:08d}.pt"
    write_atomically(path, _to_bytes(content))
    for name, weights in zip(NETWORKS, folder.weights, strict=True):
        if name in state:
            write_atomically(weights, _to_bytes(state[name]))
    unfinished = folder.checkpoints.glob(".update-*.tmp")  # left by a process that was killed while it wrote one
    for old in [*checkpoint_paths(folder)[:-KEPT], *unfinished]:
        old.unlink(missing_ok=True)
    return path


def checkpoint_paths(folder: RunFolder) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(path for path in folder.checkpoints.glob("update-*.pt") if _NAME.fullmatch(path.name))


def load_newest(folder: RunFolder) -> dict[str, Any]:
    """Reads the newest checkpoint of a run.

    Raises:
        CheckpointError: There is none, or it is truncated or not one of gym_dr's. Nothing is changed.
    """
    paths = checkpoint_paths(folder)
    if not paths:
        raise CheckpointError(f"{folder.checkpoints}: there is no checkpoint of this run.")
    return load_checkpoint(paths[-1])


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Reads a checkpoint with ``weights_only=True``: data, never code.

    Raises:
        CheckpointError: The file is missing, truncated or not one of gym_dr's; the message names it.
    """
    import torch  # heavy: only when a checkpoint is read

    try:
        with warnings.catch_warnings():  # torch comments on files that are not its own
            warnings.simplefilter("ignore")
            with zipfile.ZipFile(path) as archive:  # torch itself takes numbers that have changed on the disk
                if archive.testzip() is not None:
                    raise zipfile.BadZipFile
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no such checkpoint.") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except Exception:  # whatever torch raises on bytes that are not its own; it advises to load them as code
        raise CheckpointError(
            f"{path}: is truncated or not a checkpoint. Delete it to go on from the one before."
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is a torch file, but not a checkpoint of gym_dr.")
    if content.get("version") != VERSION:
        raise CheckpointError(
            f"{path}: expected checkpoint version {VERSION}, got {content.get('version')!r}. "
            "Use the version of gym_dr that wrote it."
        )
    missing = {"update", "state", "session", "config"} - content.keys()
    if missing:
        raise CheckpointError(f"{path}: is a checkpoint of gym_dr, but lacks {', '.join(sorted(missing))}.")
    for name in ("state", "session", "config"):
        if not isinstance(content[name], dict):
            raise CheckpointError(f"{path}: expected a table {name!r}, got {type(content[name]).__name__}.")
    return content


def _to_bytes(content: Any) -> bytes:
    import torch  # heavy: only when a checkpoint is written

    buffer = io.BytesIO()
    try:
        torch.save(content, buffer)
    except MemoryError:
        raise RunFolderError("There is not enough memory to write a checkpoint.") from None
    return buffer.getvalue()
