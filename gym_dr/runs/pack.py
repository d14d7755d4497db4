"""Packs tensors and plain values in the safetensors format, which holds data only.

torch's own files are pickles. Even with ``weights_only=True``, a few hundred bytes can request gigabytes of memory.
Here tensors are raw numbers behind a table of their sizes, which the library checks against the size of the file; all
else is JSON in the header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

from gym_dr.runs.durable import read_plain

MAX_PACKED = 4 * 2**30  # bytes


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
