"""``gymdr resume RUN``."""

from __future__ import annotations

import click

from gym_dr.cli.runs import open_run


@click.command()
@click.argument("run")
def command(run: str) -> None:
    """Go on with a run that was interrupted.

    Training continues from the newest checkpoint in the folder RUN and ends as it would have without the interruption.
    """
    from gym_dr.cli.training import run_training  # heavy
    from gym_dr.runs.checkpoint import checkpoint_paths

    folder, config, algorithm = open_run(run)
    # a run that was stopped before its first checkpoint has nothing to go on from: it starts again
    run_training(folder, config, algorithm, resume=bool(checkpoint_paths(folder)))
