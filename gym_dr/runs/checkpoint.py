"""Checkpoints: tensors and plain values in the safetensors format, loaded without executing code from the file.

torch's own files are pickles. Even with ``weights_only=True``, a few hundred bytes can request gigabytes of memory.
Here tensors are raw numbers behind a table of their sizes, which the library checks against the size of the file; all
else is JSON in the header.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import CheckpointError, RunFolderError, raised_as, shortened
from gym_dr.runs.folder import CHECKPOINTS, NETWORKS, RunFolder, read_plain, write_atomically

if TYPE_CHECKING:
    from torch import Tensor


FORMAT = "gym_dr checkpoint"
VERSION = 1
MAX_CHECKPOINTS = 3  # checkpoints in a run folder; older ones are deleted

MAX_PACKED = 4 * 2**30  # bytes


def save_checkpoint(
    folder: RunFolder, update: int, state: Mapping[str, Any], session: Mapping[str, Any], config: Mapping[str, Any]
) -> Path:
    """Writes the checkpoint after ``update`` updates, and the networks' weights to separate files.

    ``state`` is the algorithm's, ``session`` holds the run's counters and window, and ``config`` identifies the run.

    Raises:
        CheckpointError: The state contains something other than tensors and plain values.
        RunFolderError: A file cannot be written; earlier checkpoints are intact.
    """
    import torch  # heavy: only when a checkpoint is written

    content = {"update": update, "state": state, "session": session, "config": config}
    path: Path = folder.checkpoints / f"update-{update:08d}.safetensors"
    try:
        packed = pack({"format": FORMAT, "version": VERSION, **content})
    except MemoryError:
        raise RunFolderError("There is not enough memory to write a checkpoint.") from None
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be written: {error}.") from None
    with contextlib.suppress(OSError):  # if this fails, writing the file says why
        folder.checkpoints.mkdir(exist_ok=True)
    for name, weights in zip(NETWORKS, folder.weights, strict=True):
        if name in state:
            buffer = io.BytesIO()
            # without torch's metadata, so the file is the same whether or not the run was interrupted
            torch.save(dict(state[name]) if isinstance(state[name], Mapping) else state[name], buffer)
            write_atomically(weights, buffer.getvalue())  # for other programs; gym_dr never reads it
    for old in checkpoint_paths(folder)[: 1 - MAX_CHECKPOINTS]:
        old.unlink(missing_ok=True)
    write_atomically(path, packed)  # last: after a kill before this, the same is done again
    return path


def checkpoint_paths(folder: RunFolder) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(folder.checkpoints.glob(CHECKPOINTS))


def updates_saved(folder: RunFolder) -> int:
    """Number of updates in the newest checkpoint of a run; 0 if there is none."""
    paths = checkpoint_paths(folder)
    return int(paths[-1].stem.removeprefix("update-")) if paths else 0


def load_newest(folder: RunFolder) -> dict[str, Any]:
    """Reads the newest checkpoint of a run.

    Raises:
        CheckpointError: There is none, or it is truncated or not from gym_dr. Nothing is changed.
    """
    paths = checkpoint_paths(folder)
    if not paths:
        raise CheckpointError(f"{folder.checkpoints}: there is no checkpoint of this run.")
    return load_checkpoint(paths[-1])


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Reads and judges a checkpoint: data, never code, with memory bounded by the size of the file.

    Raises:
        CheckpointError: The file is missing, truncated or not from gym_dr, has another checkpoint's name, or holds
            values that no run saves; the message names it.
    """
    try:
        content = unpack(path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, MemoryError):
        raise CheckpointError(
            f"{path}: is truncated or not a checkpoint. Delete it to resume from the previous one."
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is a safetensors file, but not a gym_dr checkpoint.")
    if (version := shortened(content.get("version"))) != str(VERSION):
        raise CheckpointError(
            f"{path}: expected checkpoint version {VERSION}, got {version}. Use the version of gym_dr that wrote it."
        )
    if not all(isinstance(content.get(name), dict) for name in ("state", "session", "config")):
        raise CheckpointError(f"{path}: is a damaged gym_dr checkpoint: it lacks the table of its content.")
    if type(update := content.get("update")) is not int or path.stem != f"update-{update:08d}":
        raise CheckpointError(f"{path}: holds update {shortened(update)}, not that of its name. Rename or delete it.")
    with raised_as(CheckpointError, f"{path}: is a damaged gym_dr checkpoint"):
        broken, config = next(not_finite(content["state"]), ""), json.loads(json.dumps(content["config"]))
    if broken:
        raise CheckpointError(f"{path}: its {broken} is not finite. Delete it to use the previous checkpoint.")
    return {**content, "config": config}


def not_finite(state: Any, name: str = "state") -> Iterator[str]:
    """The names of tensors that are not finite."""
    import torch  # heavy: only when a checkpoint is written

    if isinstance(state, torch.Tensor):
        if not torch.isfinite(state).all():
            yield name
    elif isinstance(state, Mapping | list | tuple):
        for key, value in state.items() if isinstance(state, Mapping) else enumerate(state):
            yield from not_finite(value, f"{name}[{key!r}]")


# ---- packing ---------------------------------------------------------------------------------------------------------


def pack(content: Mapping[str, Any]) -> bytes:
    """Packs nested dicts, lists and tuples of tensors, numbers, text, booleans and None.

    Raises:
        TypeError: There is something else; the message says what and where.
        ValueError: The content is larger than ``unpack`` reads.
    """
    from safetensors.torch import save  # heavy, as torch

    tensors: dict[str, Tensor] = {}
    form = json.dumps(_to_form(dict(content), "content", tensors))
    data = save(tensors, {"content": form})
    if len(data) > MAX_PACKED:
        raise ValueError(f"expected at most {MAX_PACKED} bytes")
    return bytes(data)


def unpack(path: Path) -> Any:
    """Reads a file of ``pack``; memory is bounded by the size of the file.

    Raises:
        OSError: The file cannot be read, is too large, or is a link or a pipe.
        ValueError: The file is damaged or in another format.
    """
    from safetensors.torch import load  # heavy, as torch

    data = read_plain(path, MAX_PACKED)  # safetensors itself opens no path that is not UTF-8
    try:
        tensors = load(data)  # checks the header, which begins with its size
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return _from_form(json.loads(header["__metadata__"]["content"]), tensors)
    except Exception as error:  # a damaged file may raise any
        raise ValueError(str(error)) from None


def _to_form(value: Any, where: str, tensors: dict[str, Tensor]) -> Any:
    """The JSON form: lists and plain values unchanged, everything else as a table {kind: value}."""
    import torch

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.Tensor):
        name = f"{len(tensors):06d}"
        tensors[name] = value.detach().cpu().contiguous().clone()  # safetensors refuses shared memory
        return {"tensor": name}
    if isinstance(value, Mapping):
        items = [
            [_to_form(key, where, tensors), _to_form(item, f"{where}[{key!r}]", tensors)] for key, item in value.items()
        ]
        return {"dict": items}
    if isinstance(value, list | tuple):
        items = [_to_form(item, f"{where}[{i}]", tensors) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    plain = "; save what its tolist() returns" if hasattr(value, "tolist") else ""  # numpy's arrays and numbers
    got = type(value).__name__
    raise TypeError(f"{where}: expected tensors, numbers, text and containers of those, got {got}{plain}")


def _from_form(form: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(form, list):
        return [_from_form(item, tensors) for item in form]
    if not isinstance(form, dict):
        return form
    ((kind, value),) = form.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "tuple":
        return tuple(_from_form(item, tensors) for item in value)
    if kind == "dict":
        return {_from_form(key, tensors): _from_form(item, tensors) for key, item in value}
    raise KeyError(kind)
