"""Opens logs of episodes in any form."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gym_dr.errors import LogError, as_path
from gym_dr.fitting.logs import EXPECTED, LoggedEpisode, read_log
from gym_dr.integrations.minari import find_dataset, read_minari, root


def open_log(source: Any) -> list[LoggedEpisode]:
    """Opens a log: what ``read_log`` reads, data sets of Minari, or a list of these.

    Args:
        source: See ``gym_dr.fitting.logs.read_log``; a text may also be the path of a data set of Minari, or its id in
            Minari's folder if there is no file or folder of this name.

    Returns:
        The episodes, at least one, checked.

    Raises:
        LogError: There is no such log, it is damaged or inconsistent, or names a file twice.
        ConfigError: It is a data set of Minari, which is not installed.
    """
    _check_once(list(log_paths(source)))
    return read_log(_read(source))


def log_paths(source: Any) -> Iterator[Path]:
    """The files and folders that a log names, links resolved; for a data set of Minari, its folder."""
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        for one in source:
            yield from log_paths(one)
    elif isinstance(source, str | os.PathLike):
        path = as_path(source)
        found = find_dataset(path) or path
        if found.exists():
            yield Path(os.path.realpath(found))


def _check_once(paths: Sequence[Path]) -> None:
    """Raises LogError if a file would be read twice, by its name or through its folder."""
    for path, count in Counter(paths).items():
        if count > 1 or path.parent in paths:
            got = "it twice" if count > 1 else "the file and its folder"
            raise LogError(f"{path}: expected each log once, got {got}.")


def _read(source: Any) -> Any:
    """The source, with data sets of Minari replaced by their episodes."""
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [_read(one) for one in source]
    if not isinstance(source, str | os.PathLike):
        return source
    path = as_path(source)
    if (found := find_dataset(path)) is not None:
        return read_minari(found)
    if not path.exists():
        raise LogError(
            f"{path}: expected {EXPECTED}, or a data set of Minari, its folder or its id in {root()}; got nothing of "
            "this name."
        )
    return path
