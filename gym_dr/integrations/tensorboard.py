"""Runs in TensorBoard (https://www.tensorflow.org/tensorboard)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gym_dr.arrays import Array
from gym_dr.options import flattened


class TensorBoardWriter:
    """Writes an event file each time it is opened; TensorBoard shows all files of a folder as one run."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        """Starts a file.

        Args:
            path: The file's folder.
            config: The run's configuration, shown as text and, with the results, among the hyperparameters.
        """
        from torch.utils.tensorboard.writer import SummaryWriter  # heavy

        self._writer = SummaryWriter(str(path))
        self._config = config
        self._writer.add_text("configuration", f"```json\n{json.dumps(config, indent=2)}\n```", 0)

    def write(self, step: int, scalars: Mapping[str, float], histograms: Mapping[str, Array]) -> None:
        """See ``LogWriter.write``."""
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step)
        for name, values in histograms.items():
            self._writer.add_histogram(name, values, step)

    def results(self, step: int, values: Mapping[str, float]) -> None:
        """See ``LogWriter.results``."""
        from torch.utils.tensorboard.summary import hparams

        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        known = {
            name: value if isinstance(value, bool | int | float | str) else json.dumps(value)
            for name, value in flattened(self._config, ".").items()
        }
        for summary in hparams(known, dict(values)):  # add_hparams would make a folder of its own
            self._writer._get_file_writer().add_summary(summary)

    def close(self) -> None:
        """See ``LogWriter.close``."""
        self._writer.close()
