from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from gym_dr.errors import CheckpointError
from gym_dr.runs.checkpoint import (
    MAX_CHECKPOINTS,
    checkpoint_paths,
    load_checkpoint,
    load_newest,
    pack,
    save_checkpoint,
    unpack,
)
from gym_dr.runs.folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", '{"gym_dr": "0.4.0", "algorithm": "a2c"}', overwrite=False)


def save(folder: RunFolder, update: int) -> Path:
    weights = {"layer": torch.full((2, 3), float(update))}
    return save_checkpoint(folder, update, {"actor": weights, "critic": weights, "n": update}, {"steps": 8}, {"a": [1]})


def test_the_newest_checkpoint_comes_back_as_it_was_saved(folder: RunFolder) -> None:
    for update in (9, 10, 100):
        save(folder, update)
    content = load_newest(folder)
    assert (content["update"], content["state"]["n"], content["session"]) == (100, 100, {"steps": 8})
    assert torch.equal(content["state"]["actor"]["layer"], torch.full((2, 3), 100.0))


def test_only_the_newest_few_are_kept(folder: RunFolder) -> None:
    for update in range(1, MAX_CHECKPOINTS + 4):
        save(folder, update)
    assert [path.name for path in checkpoint_paths(folder)] == [f"update-{n:08d}.safetensors" for n in (4, 5, 6)]


def test_weights_are_loaded_by_plain_torch(folder: RunFolder) -> None:
    save(folder, 7)
    for path in folder.weights:
        assert torch.equal(torch.load(path, weights_only=True)["layer"], torch.full((2, 3), 7.0))


def test_a_folder_of_checkpoints_that_was_deleted_is_made_again(folder: RunFolder) -> None:
    folder.checkpoints.rmdir()
    assert save(folder, 1).is_file()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-700])


def change(**values: Any) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(pack({**unpack(path), **values}))

    return damage


def lose_the_state(path: Path) -> None:
    content = unpack(path)
    del content["state"]
    path.write_bytes(pack(content))


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "truncated": truncate,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello, I am no checkpoint"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: (path.rename(path.with_name("x")), path.symlink_to(path.with_name("x"))),
    "a torch file": lambda path: torch.save({"layer": torch.zeros(3)}, path),
    "a pickle": lambda path: path.write_bytes(pickle.dumps({"format": "gym_dr checkpoint"}, protocol=4)),
    "other safetensors": lambda path: path.write_bytes(safetensors.torch.save({"layer": torch.zeros(3)})),
    "of something else": lambda path: path.write_bytes(pack({"layer": torch.zeros(3)})),
    "of another version": change(version=99),
    "without state": lose_the_state,
    "with a number as state": change(state=3),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_file_that_is_not_a_whole_checkpoint_is_named_and_kept(kind: str, folder: RunFolder) -> None:
    path = save(folder, 1)
    DAMAGE[kind](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(CheckpointError) as error:
        load_newest(folder)
    assert str(error.value).startswith(f"{path}: ")
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_missing_checkpoint_is_named(folder: RunFolder) -> None:
    with pytest.raises(CheckpointError, match="checkpoints: there is no checkpoint of this run"):
        load_newest(folder)
    with pytest.raises(CheckpointError, match=r"x: cannot be read: No such file"):
        load_checkpoint(folder.checkpoints / "x")


def test_a_state_that_is_not_plain_is_refused_by_name(folder: RunFolder) -> None:
    with pytest.raises(CheckpointError, match=r"content\['state'\]\['seen'\]: expected tensors, .* got ndarray"):
        save_checkpoint(folder, 1, {"seen": np.zeros(3)}, {}, {})
    assert checkpoint_paths(folder) == []
