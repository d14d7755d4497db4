"""The files that a fit writes: its randomization, its particles and its page."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.errors import ConfigError
from gym_dr.fitting.results import Fit
from gym_dr.randomization.files import randomization_text


@dataclass(frozen=True)
class FitFiles:
    """Where a fit writes."""

    randomization: Path  # such as fitted.toml; the others lie beside it

    @property
    def particles(self) -> Path:
        """The draws of the posterior."""
        return self.randomization.with_suffix(".npz")

    @property
    def page(self) -> Path:
        """The report."""
        return self.randomization.with_suffix(".html")

    def check(self, logs: Collection[Path]) -> None:
        """Checks that all can be written, before anything is fitted.

        Args:
            logs: Files and folders of the log, without links.

        Raises:
            ConfigError: The path does not end in .toml, its folder does not exist, or a file would replace one of the
                log or lie between them.
        """
        path = self.randomization
        if path.suffix != ".toml" or not path.parent.is_dir():
            raise ConfigError(f"`output`: expected a file that ends in .toml in an existing folder, got {str(path)!r}.")
        for file in (path, self.particles, self.page):
            place = Path(os.path.realpath(file))
            if place in logs or place.parent in logs:
                raise ConfigError(f"`output`: expected a file that is not part of the log, got {str(file)!r}.")


def particle_bytes(fit: Fit) -> bytes:
    """The content of the file of particles: an array for each parameter."""
    columns: dict[str, Any] = {str(name): values.to_numpy() for name, values in fit.particles.items()}
    archive = io.BytesIO()
    np.savez_compressed(archive, **columns)
    return archive.getvalue()


def randomization_bytes(fit: Fit, command: str, notes: Sequence[str] = ()) -> bytes:
    """The content of the file of the randomization, with the command, the findings and notes as a comment."""
    comment = [f"Found by: {command}" if command else "Found by gym_dr.fit", *fit.findings, *notes]
    return randomization_text(fit.randomization, "\n".join(comment)).encode()
