"""The JSON document that says which study or tuning a folder holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_dr.errors import RunFolderError
from gym_dr.randomization.files import read_table
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.plain import refuse_links
from gym_dr.version import WRITTEN_BY, __version__, check_written_by


@dataclass(frozen=True, kw_only=True)
class Document:
    """A kind of document.

    Attributes:
        name: Of the file.
        kind: What its folder holds.
        version: Of its format.
    """

    name: str
    kind: str
    version: int = 1

    @property
    def _head(self) -> dict[str, Any]:
        return {"format": f"gym_dr {self.kind}", WRITTEN_BY: __version__, "version": self.version}

    def write(self, folder: Path, form: Mapping[str, Any]) -> None:
        """Writes the document; ``form`` is its content."""
        write_atomically(folder / self.name, (json.dumps({**self._head, **form}, indent=2) + "\n").encode())

    def read(self, folder: Path, *keys: str) -> dict[str, Any] | None:
        """The content of the document in a folder, which may be a stranger's; None if the folder is free.

        Args:
            folder: The folder.
            *keys: What the document must have.

        Raises:
            RunFolderError: The folder holds something else, or an older version wrote the document.
            ConfigError: The document cannot be read.
        """
        path, choose = folder / self.name, "choose another `output`."
        refuse_links([path])
        with os_errors(folder, "read"):
            if not path.is_file():
                if folder.exists() and any(child.name[0] != "." for child in folder.iterdir()):
                    raise RunFolderError(f"{folder}: already exists and holds no {self.kind}; {choose}")
                return None
        form = read_table(path)
        if any(form.get(key) != self._head[key] for key in ("format", "version")) or not {*keys} <= form.keys():
            raise RunFolderError(f"{path}: expected a {self._head['format']}, version {self.version}; {choose}")
        check_written_by(path, form)
        return form


STUDY = Document(name="study.json", kind="study")
TUNING = Document(name="tune.json", kind="tuning")
