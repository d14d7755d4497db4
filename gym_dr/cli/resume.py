"""``gymdr resume RUN``."""

from __future__ import annotations

import click

from gym_dr.cli.options import NumberList, trust_option
from gym_dr.cli.tables import show_training
from gym_dr.experiments.run import load_run
from gym_dr.runs.config import ON_NAN
from gym_dr.wording import flag


@click.command()
@click.argument("run")
@click.option("--on-nan", type=click.Choice(ON_NAN), help="what to do from now on if an update is not finite")
@click.option(
    flag("loggers"),
    "loggers",
    type=NumberList(str),
    help="tools that show the run from now on, and what it has written so far; see gymdr list loggers; or none",
)
@trust_option
def command(run: str, on_nan: str | None, loggers: tuple[str, ...] | None, trust: tuple[str, ...]) -> None:
    """Resume an interrupted run.

    Training continues from the newest checkpoint in the folder RUN and ends as it would have without the interruption.
    A folder of several seeds stands for all of its runs.
    """
    chosen = () if loggers == ("none",) else loggers
    show_training(load_run(run, trust).resume(on_nan=on_nan, loggers=chosen))
