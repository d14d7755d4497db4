"""The version of gym_dr, and of the files that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gym_dr.errors import RunFolderError

__version__ = "0.4.0"

WRITTEN_BY = "gym_dr"  # the key under which files say what wrote them
_ONLY_IN_0_3 = {"reserved_seeds", "references", "gap"}  # keys of a run, an evaluation, a study


def check_written_by(path: Path, form: Mapping[str, Any]) -> None:
    """Refuses files of versions before 0.4, which did not record their version.

    Raises:
        RunFolderError: It is such a file.
    """
    if not isinstance(form.get(WRITTEN_BY), str):
        version = "0.3" if _ONLY_IN_0_3 & form.keys() else "0.2"
        raise RunFolderError(
            f"{path}: was written by gym_dr {version}, and this is {__version__}, which reads folders of 0.4.0 and "
            f"later. Read it with that version (pip install 'gym-dr=={version}.*'), or make it again in another folder."
        )
