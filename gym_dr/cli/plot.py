"""``gymdr plot RUN ...``."""

from __future__ import annotations

from pathlib import Path

import click

from gym_dr.errors import as_path
from gym_dr.reports.plots import plot_training
from gym_dr.runs.folder import PICTURE_MARK, check_output, expand


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--output", metavar="PNG", help="file to write  [default: training.png in RUN, or comparison.png]")
def command(runs: tuple[str, ...], output: str | None) -> None:
    """Plot return, entropy, losses and terms of the reward, of one run or several.

    A folder of several seeds stands for all of its runs.
    """
    folders = expand(list(runs))
    single = folders[0].plots if len(folders) == 1 else None
    path = as_path(output) if output else single or Path("comparison.png")
    check_output(path, b"" if output else PICTURE_MARK)
    plot_training(folders, path)
    click.echo(f"Wrote {path}")
