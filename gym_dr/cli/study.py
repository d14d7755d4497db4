"""``gymdr study FILE --output FOLDER``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.api.study import study
from gym_dr.cli.options import command_line, threads_option, trust_option
from gym_dr.errors import TrainingError
from gym_dr.runs.launch import LAUNCHERS


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--output", required=True, metavar="FOLDER", help="folder of the study")
@click.option("--launcher", metavar="|".join(LAUNCHERS), default="local", show_default=True, help="where runs train")
@click.option("--workers", type=click.IntRange(min=1), help="runs in parallel on this machine  [default: cores]")
@threads_option
@click.option("--ray-address", help="address of a running Ray cluster  [default: start one on this machine]")
@click.option("--overwrite", multiple=True, metavar="VARIANT", help="train an edited variant again; repeatable")
@trust_option
def command(file: str, **options: Any) -> None:
    """Train, evaluate and compare variants over seeds, from one file.

    FILE lists the variants, the seeds and the evaluation; docs/guides/studies.md describes the format. The command
    keeps existing results: it continues a study that was stopped or killed, to the same result, and trains only new
    variants and seeds.
    """
    found = study(file, command=command_line(), **options)
    click.echo(found.text)
    click.echo(f"\nWrote {found.folder}")
    if found.missing:
        raise TrainingError(f"Missing runs: {', '.join(found.missing)}.")
