"""Opens run folders named on the command line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from gym_dr.errors import ConfigError, GymDrError
from gym_dr.plugins.manager import PluginHost, load_plugins
from gym_dr.runs.config import RunConfig, build_config, read_config_file
from gym_dr.runs.environments import check_module
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm

FC = TypeVar("FC", bound=Callable[..., Any])


def plugin_host() -> PluginHost:
    """All plugins, with a line on stderr for each that is broken."""
    host = load_plugins()
    for problem in host.problems():
        click.echo(f"Warning: {problem}", err=True)
    return host


def trust_option(function: FC) -> FC:
    """The option ``--trust``."""
    option = click.option(
        "--trust", multiple=True, metavar="MODULE", help="a module that the configuration may have imported; repeatable"
    )
    return option(function)


def open_run(path: str, trusted: Collection[str] = ()) -> tuple[RunFolder, RunConfig, Algorithm]:
    """A run's folder, its configuration and the algorithm that trains it.

    The folder may be a stranger's: what it says is data, and leads to no other file and no code.

    Args:
        path: Of the folder.
        trusted: Modules that its configuration may have imported.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: Its configuration cannot be read, or names a module or a file.
        UnknownNameError: Its algorithm or environment is not installed.
    """
    folder = RunFolder.open(path)
    algorithm = plugin_host().algorithm(folder.read_config()["algorithm"])
    parts = read_config_file(str(folder.config), algorithm)
    try:
        check_module(parts["settings"].get("env", ""), trusted)
        if isinstance(parts.get("randomization"), str):
            raise ConfigError("randomization: expected a table in a run folder, got a name.")
        config = build_config(algorithm, parts["settings"], parts["options"], parts.get("randomization"))
    except GymDrError as error:
        raise type(error)(f"{folder.config}: {error}") from None
    return folder, config, algorithm
