"""The example of a logger for Weights & Biases, offline."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wandb.proto.wandb_internal_pb2 import Record

from tests.integrations.training import SMALL, UPDATES, gymdr, rows

pytestmark = pytest.mark.integration

HEADER, BLOCK = 7, 32768  # bytes, of LevelDB's log format, which W&B's files have


def records(path: Path) -> Iterator[Any]:
    """What a file of an offline run holds."""
    content, place, parts = path.read_bytes(), HEADER, b""
    while place + HEADER <= len(content):
        if BLOCK - place % BLOCK < HEADER:  # the rest of a block is padding
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + HEADER])
        place += HEADER
        parts += content[place : place + length]
        place += length
        if kind in (1, 4):  # whole, or the last part
            record = Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


def test_an_offline_run_has_every_point_and_the_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    gymdr("train", "a2c", *SMALL, "--log", "wandb", "--run-dir", "run", cwd=tmp_path)
    (file,) = (tmp_path / "run" / "loggers" / "wandb").glob("wandb/offline-run-*/run-*.wandb")
    found, results, histograms = [], set(), set()
    for record in records(file):
        for item in record.history.item:
            name = item.key or "/".join(item.nested_key)
            histograms |= {record.history.step.num} if name.startswith("draws/length") else set()
            if name == "training/episodes":
                found.append((record.history.step.num, float(json.loads(item.value_json))))
        results |= {item.key or "/".join(item.nested_key) for item in record.summary.update}
    assert found == [(int(row["steps"]), float(row["episodes"])) for row in rows(tmp_path / "run")]
    assert len(found) == UPDATES
    assert len(histograms) == UPDATES // 2  # a checkpoint after every second one
    assert "evaluation/training/mean" in results
