"""Loggers: tools that show runs while they train, such as TensorBoard.

A run's files hold all that it logs; a logger only shows it, from the time it is opened. When a run resumes, its loggers
get the points after the newest checkpoint a second time, with the same values.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, PluginError
from gym_dr.registry import Registry


class LogWriter(Protocol):
    """A logger's writer for one run."""

    def write(self, step: int, scalars: Mapping[str, float], histograms: Mapping[str, Array]) -> None:
        """Takes the values of a step.

        Args:
            step: Environment steps of the run so far, more than in the call before. A resumed run repeats, for a new
                writer, those after its newest checkpoint.
            scalars: Name, such as "training/return_mean" -> finite number.
            histograms: Name, such as "draws/gravity" -> samples ``(count,)``; empty at most steps.
        """

    def results(self, step: int, values: Mapping[str, float]) -> None:
        """Takes results, such as "evaluation/nominal/mean", again each time that a finished run is resumed."""

    def close(self) -> None:
        """Flushes and closes the writer."""


@dataclass(frozen=True, kw_only=True)
class Logger:
    """A logger by name; plugins register theirs."""

    name: str  # as in --log NAME; of lower-case letters, digits, "-" and "_"
    summary: str  # one line, for gymdr list loggers
    # (folder for its files: RUN/loggers/NAME; the run's configuration in the form of config.json) -> LogWriter; or
    # "module:name", imported when it is used
    open: str | Callable[[Path, Mapping[str, Any]], LogWriter]
    module: str = ""  # module that it needs and that may be missing
    install: str = ""  # command that installs it; by default pip's for the module
    files: str = ""  # pattern of its files' names; they go when another run replaces theirs, and other files stay

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", self.name):  # the name of a folder
            raise PluginError(
                f"Logger {self.name!r}: expected a name of lower-case letters, digits, '-' and '_', such as 'my-tool'."
            )


LOGGERS: Registry[Logger] = Registry("logger")
FIELD = "loggers"  # of the settings


def check_loggers(names: Any) -> None:
    """Checks that loggers exist and can be used, before anything is written.

    Raises:
        UnknownNameError: There is no such logger.
        ConfigError: The names are not a list of distinct texts, or a logger's package is missing.
    """
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"`{FIELD}`: expected a list of names, such as ['tensorboard'], got {names!r}.")
    if len(set(names)) != len(names):
        raise ConfigError(f"`{FIELD}`: expected distinct names, got {', '.join(names)}.")
    for name in names:
        logger = LOGGERS.get(name)
        if logger.module and not _is_installed(logger.module):
            install = logger.install or f"pip install {logger.module}"
            raise ConfigError(f"`{FIELD}={(name,)!r}` needs {logger.module}: {install}")


def _is_installed(module: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError):  # a parent package is missing
        return importlib.util.find_spec(module) is not None
    return False
