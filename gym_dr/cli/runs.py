"""Opens run folders named on the command line."""

from __future__ import annotations

import click

from gym_dr.errors import GymDrError
from gym_dr.plugins.manager import PluginHost, load_plugins
from gym_dr.runs.config import RunConfig, build_config, read_config_file
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm


def plugin_host() -> PluginHost:
    """All plugins, with a line on stderr for each that is broken."""
    host = load_plugins()
    for problem in host.problems():
        click.echo(f"Warning: {problem}", err=True)
    return host


def open_run(path: str) -> tuple[RunFolder, RunConfig, Algorithm]:
    """A run's folder, its configuration and the algorithm that trains it.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: Its configuration cannot be read.
        UnknownNameError: Its algorithm or environment is not installed.
    """
    folder = RunFolder.open(path)
    algorithm = plugin_host().algorithm(folder.read_config()["algorithm"])
    parts = read_config_file(str(folder.config), algorithm)
    try:
        config = build_config(algorithm, parts["settings"], parts["options"], parts.get("randomization"))
    except GymDrError as error:
        raise type(error)(f"{folder.config}: {error}") from None
    return folder, config, algorithm
