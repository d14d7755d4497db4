"""``gymdr resume RUN``."""

from __future__ import annotations

import shlex

import click

from gym_dr.api.run import Run, Runs, load_run
from gym_dr.cli.options import NumberList, threads_option, trust_option
from gym_dr.errors import counted
from gym_dr.runs.environments import source_of


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


def show_training(trained: Run | Runs) -> None:
    """Prints a line for each set of a run's evaluation, or a table over seeds."""
    trust = source_of(trained.opened[0].config.settings.env)  # to be named, since its code would run
    place = shlex.join([str(trained.path), *(["--trust", trust] if trust else [])])
    if isinstance(trained, Runs):
        click.echo(trained.table)
        click.echo(f"Run folders: {trained.path}/seed-*\nNext: gymdr evaluate {place} or gymdr report {place}")
        return
    evaluation = trained.evaluation if trained.config.settings.eval_episodes else None
    for row in evaluation.document["results"] if evaluation else ():
        found = row["statistics"]
        solved = f", {found['success_rate']['value']:.0%} solved" if "success_rate" in found else ""
        mean, std = found["mean"]["value"], found["std"]["value"]
        spread = "" if std is None else f", standard deviation {std:.1f}"
        spread += f" ({counted(row['episodes'], 'episode')}{solved})"
        click.echo(f"Evaluation on {row['set']:8} mean return {mean:.1f}{spread}")
    click.echo(f"Run folder: {trained.path}")
    click.echo(f"Next: gymdr evaluate {place}, gymdr report {place} or gymdr play {place}")
