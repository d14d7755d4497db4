"""``gymdr resume RUN``."""

from __future__ import annotations

from pathlib import Path

import click

from gym_dr.cli.runs import open_run, trust_option


@click.command()
@click.argument("run")
@trust_option
def command(run: str, trust: tuple[str, ...]) -> None:
    """Go on with a run that was interrupted.

    Training continues from the newest checkpoint in the folder RUN and ends as it would have without the interruption.
    A folder of several seeds stands for all of its runs.
    """
    from gym_dr.cli.launch import launch, show_summary  # heavy, as those below
    from gym_dr.cli.training import run_training
    from gym_dr.evaluation.aggregate import aggregate
    from gym_dr.runs.config import check_device
    from gym_dr.runs.folder import expand

    folders = expand([run])
    opened = [open_run(str(folder.path), trust) for folder in folders]
    for _, config, _ in opened:
        check_device(config.settings.device)
    if folders[0].path == Path(run):
        run_training(*opened[0], resume=True)
    else:
        launch(folders, "local", workers=None, ray_address=None, trusted=trust)
        show_summary(aggregate(folders, Path(run)))
