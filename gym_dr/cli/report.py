"""``gymdr report RUN ...`` and ``gymdr report --policy ...``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.cli.options import command_line, policy_options
from gym_dr.experiments.report import report


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@policy_options
@click.option("--output", metavar="HTML", help="file to write  [default: report.html, in RUN if it is the only one]")
@click.option(
    "--evaluation",
    metavar="FOLDER",
    help="what 'gymdr evaluate' wrote  [default: where it writes; for several policies beside HTML]",
)
def command(runs: tuple[str, ...], others: tuple[str, ...], **options: Any) -> None:
    """Write one HTML file that says how robust policies are, to what, and which of them is better where.

    It opens from disk and needs no network. What the evaluation lacks is played first: nominal values, the draws of
    training, and points that fill the distribution of those draws. A RUN that is a folder of seeds stands for all.
    """
    click.echo(f"Wrote {report([*runs, *others], command=command_line(), **options)}")
