"""What is packed comes back as it was; what is not a pack is refused before it can take memory or run anything."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import re
import resource
import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.errors import CheckpointError
from gym_dr.runs.checkpoint import load_checkpoint, pack, unpack
from gym_dr.training.optimizers import without_compiler
from tests.strategies import few

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
tree = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


@few
@given(content=st.dictionaries(st.text(max_size=3), tree, max_size=3))
def test_plain_values_come_back_with_their_types(content: dict[str, Any], tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "pack"
    path.write_bytes(pack(content))
    assert repr(unpack(path)) == repr(content)  # 1 == 1.0 == True, but they are not written alike


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_tensors_come_back_bit_for_bit(dtype: torch.dtype, shape: tuple[int, ...], tmp_path: Path) -> None:
    tensor = torch.arange(6)[: int(np.prod(shape))].reshape(shape).to(dtype)
    (tmp_path / "pack").write_bytes(pack({"t": tensor, "again": [tensor, torch.stack([tensor, tensor], -1)[..., 0]]}))
    found = unpack(tmp_path / "pack")
    for copy in (found["t"], *found["again"]):
        assert (copy.dtype, copy.shape) == (dtype, shape)
        assert torch.equal(copy, tensor)


def test_the_state_of_an_optimizer_comes_back(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 2)
    optimizer = without_compiler(torch.optim.Adam)(layer.parameters())
    layer(torch.ones(2)).sum().backward()
    optimizer.step()
    (tmp_path / "pack").write_bytes(pack({"layer": layer.state_dict(), "optimizer": optimizer.state_dict()}))
    found = unpack(tmp_path / "pack")
    assert repr(found["optimizer"]) == repr(optimizer.state_dict())
    assert repr(OrderedDict(found["layer"])) == repr(layer.state_dict())


@pytest.mark.parametrize(
    "thing", [np.zeros(2), np.int64(3), {1, 2}, b"x", object()], ids=lambda thing: str(type(thing))
)
def test_other_things_are_refused_when_they_are_written(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"content\['a'\]\[1\]: expected tensors"):
        pack({"a": [1, thing]})


def safetensors_file(header: bytes | dict[str, Any], data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


class Bomb:
    """Makes a folder when it is unpickled."""

    def __reduce__(self) -> Any:
        return eval, ("__import__('os').mkdir(__import__('os').environ['EXPLODED'])",)


def write_sparse(path: Path, start: bytes, size: int) -> None:
    """A file that is large on paper and takes no room on the disk."""
    path.write_bytes(start)
    os.truncate(path, size)


def write_zip(path: Path, content: bytes) -> None:
    """A torch file with another pickle in it."""
    torch.save({"w": torch.zeros(3)}, path)
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, content if name.endswith("data.pkl") else part)


GIGABYTES_10 = 10 * 2**30
ONE_TENSOR = {"t": {"dtype": "U8", "shape": [GIGABYTES_10], "data_offsets": [0, GIGABYTES_10]}}

ATTACKS: dict[str, Callable[[Path], Any]] = {
    "a pickle that makes a folder": lambda path: path.write_bytes(pickle.dumps(Bomb())),
    "a torch file that makes a folder": lambda path: torch.save(Bomb(), path),
    "a pickle of many bytes": lambda path: path.write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", GIGABYTES_10) + b"."),
    "a pickle of a far memo": lambda path: path.write_bytes(b"\x80\x04Nr\xff\xff\xff\x7f."),
    "a torch file of a large bytearray": lambda path: write_zip(
        path, b"\x80\x02cbuiltins\nbytearray\nJ\0\0\0\x70\x85R."
    ),
    "a zip bomb": lambda path: write_zip(path, bytes(200 * 2**20)),
    "a header of 10 GB by name": lambda path: path.write_bytes(safetensors_file(b"{}", length=GIGABYTES_10)),
    "a header of 10 GB in fact": lambda path: write_sparse(
        path, safetensors_file(b"{}", length=GIGABYTES_10), GIGABYTES_10 + 8
    ),
    "a length beyond all": lambda path: path.write_bytes(safetensors_file(b"{}", length=2**64 - 1)),
    "a tensor of 10 GB by name": lambda path: path.write_bytes(safetensors_file(ONE_TENSOR, bytes(100))),
    "a tensor of 10 GB in fact": lambda path: write_sparse(path, safetensors_file(ONE_TENSOR), GIGABYTES_10 + 100),
    "a shape beyond its data": lambda path: path.write_bytes(
        safetensors_file({"t": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}}, bytes(4))
    ),
    "a product that overflows": lambda path: path.write_bytes(
        safetensors_file({"t": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}})
    ),
    "deep brackets": lambda path: path.write_bytes(safetensors_file({"__metadata__": {"content": "[" * 10**6}})),
    "deep tables": lambda path: path.write_bytes(safetensors_file(b'{"a":' * 10**6)),
}


def refuse_all(paths: list[Path]) -> None:
    """Reads files, for which there are 300 MB more than this process has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
    for path in paths:
        with pytest.raises(CheckpointError, match=f"^{re.escape(str(path))}"):
            load_checkpoint(path)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited in another way here")
def test_no_file_takes_memory_or_runs_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLODED", str(tmp_path / "exploded"))
    paths = []
    for number, (name, write) in enumerate(ATTACKS.items()):
        paths.append(tmp_path / f"{number:02d} {name}")
        write(paths[-1])
    process = multiprocessing.Process(target=refuse_all, args=(paths,))  # the limit stays with a process
    process.start()
    process.join()
    assert process.exitcode == 0
    assert not (tmp_path / "exploded").exists()
