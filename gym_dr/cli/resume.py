"""``gymdr resume RUN``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from gym_dr.cli.runs import open_run, trust_option
from gym_dr.runs.config import ON_NAN, RunConfig
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder


@click.command()
@click.argument("run")
@click.option("--on-nan", type=click.Choice(ON_NAN), help="what to do from now on about updates that are not finite")
@trust_option
def command(run: str, on_nan: str | None, trust: tuple[str, ...]) -> None:
    """Go on with a run that was interrupted.

    Training continues from the newest checkpoint in the folder RUN and ends as it would have without the interruption.
    A folder of several seeds stands for all of its runs.
    """
    from gym_dr.cli.launch import launch, sum_up  # heavy, as those below
    from gym_dr.cli.training import run_training
    from gym_dr.runs.config import check_device
    from gym_dr.runs.folder import expand

    folders = expand([run])
    opened = [open_run(str(folder.path), trust) for folder in folders]
    for _, config, _ in opened:
        check_device(config.settings.device)
    if on_nan is not None:
        opened = [(folder, _with_on_nan(folder, config, on_nan), algorithm) for folder, config, algorithm in opened]
    if folders[0].path == Path(run):
        run_training(*opened[0], resume=True)
    else:
        launch(folders, "local", workers=None, ray_address=None, trusted=trust)
        sum_up(folders, Path(run))


def _with_on_nan(folder: RunFolder, config: RunConfig, on_nan: str) -> RunConfig:
    """Changes the configuration, and the file that holds it."""
    changed = dataclasses.replace(config, settings=dataclasses.replace(config.settings, on_nan=on_nan))
    with folder.locked():
        write_atomically(folder.config, changed.to_json().encode())
    return changed
