"""A logger that keeps what it gets in a file, one line for each call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gym_dr.arrays import Array
from gym_dr.runs.loggers import Logger

NAME = "calls.jsonl"


class RecordingWriter:
    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path / NAME
        self.config = config

    def write(self, step: int, scalars: Mapping[str, float], histograms: Mapping[str, Array]) -> None:
        found = {name: values.tolist() for name, values in histograms.items()}
        self._append(kind="write", step=step, scalars=dict(scalars), histograms=found)

    def results(self, step: int, values: Mapping[str, float]) -> None:
        self._append(kind="results", step=step, values=dict(values))

    def close(self) -> None:
        self._append(kind="close", step=-1)

    def _append(self, **call: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(call) + "\n")


def calls(path: Path) -> list[dict[str, Any]]:
    """What a recording logger got, from the folder for its files."""
    file = path / NAME
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


RECORDING = Logger(name="recording", summary="Keeps what it gets.", open=RecordingWriter, files=NAME)
