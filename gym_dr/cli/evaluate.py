"""``gymdr evaluate RUN ...`` and ``gymdr evaluate --policy ...``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.cli.options import command_line, policy_options, read_grid
from gym_dr.experiments.evaluate import PROTOCOLS, evaluate


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@policy_options
@click.option(
    "--grid",
    multiple=True,
    metavar="NAME=LOW:HIGH:COUNT",
    help="values of a parameter, both ends included; give it several times for every combination",
)
@click.option("--corners", is_flag=True, help="the corners of the box that the policies were trained on")
@click.option(
    "--sobol",
    type=int,
    metavar="POINTS",
    help="a Sobol sequence through the draws' quantiles: which parameter matters in training; POINTS is a power of 2",
)
@click.option("--sobol-box", type=int, metavar="POINTS", help="one that fills the box of --corners evenly")
@click.option("--protocol", type=click.Choice(PROTOCOLS), help="nominal, random and extreme as in Packer et al. 2018")
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    help="of each cell  [default: 100 of nominal values and draws, 20 of --grid and --corners, 5 of Sobol points]",
)
@click.option("--success", type=float, metavar="RETURN", help="from which an episode is solved  [default: the env's]")
@click.option(
    "--output",
    metavar="FOLDER",
    help="where results go  [default: RUN/evaluation; NAME-evaluation for one --policy; needed for several]",
)
def command(runs: tuple[str, ...], others: tuple[str, ...], grid: tuple[str, ...], **options: Any) -> None:
    """Evaluate policies on nominal values, on what they were trained on, and wherever else they are sent: runs, and
    with --policy those of Stable-Baselines3 or your own code.

    All policies meet the same draws and the same seeds, so that
    differences between them are paired. A RUN that is a folder of seeds stands for all of them. Evaluating again adds
    to the results; what was interrupted goes on where it stopped.
    """
    from gym_dr.cli.tables import show_evaluation  # heavy

    evaluation = evaluate([*runs, *others], grid=read_grid(grid), command=command_line(), **options)
    show_evaluation(evaluation)
    click.echo(f"Wrote {evaluation.folder}")
