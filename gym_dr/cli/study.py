"""``gymdr study FILE --output FOLDER``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.cli.options import command_line, trust_option
from gym_dr.errors import TrainingError
from gym_dr.experiments.launch import LAUNCHERS
from gym_dr.experiments.study import study


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--output", required=True, metavar="FOLDER", help="the study's own folder")
@click.option("--launcher", metavar="|".join(LAUNCHERS), default="local", show_default=True, help="what trains")
@click.option("--workers", type=click.IntRange(min=1), help="runs at a time on this machine  [default: cores]")
@click.option("--ray-address", help="of a running Ray cluster  [default: one is started on this machine]")
@click.option("--overwrite", multiple=True, metavar="VARIANT", help="train a variant again that was edited; repeatable")
@trust_option
def command(file: str, **options: Any) -> None:
    """Train, evaluate and compare variants over seeds, from one file.

    FILE names the variants, the seeds and where policies are evaluated; docs/guides/studies.md has the format. What is
    there already is kept: a study that was stopped or killed goes on with the same command and ends with the same
    files, and another variant or seed trains only that.
    """
    found = study(file, command=command_line(), **options)
    click.echo(found.tables.markdown())
    click.echo(f"Wrote {found.folder}")
    if found.missing:
        raise TrainingError(f"{len(found.missing)} of the runs are missing: {', '.join(found.missing)}.")
