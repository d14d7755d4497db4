"""``gymdr resume RUN``."""

from __future__ import annotations

import click

from gym_dr.api.run import load_run
from gym_dr.cli.options import NumberList, threads_option, trust_option
from gym_dr.cli.tables import show_training


@click.command()
@click.argument("run")
@click.option(
    "--log",
    "loggers",
    type=NumberList(str),
    help="loggers from now on, or none; see gymdr list loggers",
)
@click.option("--quiet", is_flag=True, help="show neither progress nor results")
@threads_option
@trust_option
def command(
    run: str, loggers: tuple[str, ...] | None, quiet: bool, num_threads: int | None, trust: tuple[str, ...]
) -> None:
    """Resume an interrupted run.

    Training continues from the newest checkpoint in the folder RUN and ends as it would have without the interruption.
    A folder of several seeds stands for all of its runs.
    """
    chosen = () if loggers == ("none",) else loggers
    trained = load_run(run, trust).resume(loggers=chosen, progress=not quiet, num_threads=num_threads)
    if not quiet:
        show_training(trained)
