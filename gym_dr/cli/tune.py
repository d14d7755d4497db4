"""``gymdr tune FILE --output FOLDER``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from gym_dr.api.study import PAGE, tune
from gym_dr.cli.options import command_line, threads_option, trust_option
from gym_dr.runs.environments import import_source


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--output", required=True, metavar="FOLDER", help="folder of the tuning")
@click.option("--workers", type=click.IntRange(min=1), help="trials in parallel on this machine  [default: cores]")
@threads_option
@click.option("--share", hidden=True)  # of a worker process; FILE may then be the content of a file
@trust_option
def command(file: str, share: str | None, **options: Any) -> None:
    """Search options of an algorithm with Optuna, on seeds that reports then refuse.

    FILE lists the options to search, the seeds and the evaluation; docs/guides/tune.md describes the format. The same
    command continues a tuning that was stopped or killed. It ends with a file for --config of gymdr train.
    """
    if share is not None:
        from gym_dr.studies.tune import Share, try_trials  # heavy

        for source in options["trust"]:
            import_source(file, source)
        tuning = json.loads(file) if file.startswith("{") else file
        where, one = Path(options["output"]), Share(**json.loads(share))
        try_trials(tuning, where, one, options["trust"], options["num_threads"])
        return
    found = tune(file, command=command_line(), **options)
    click.echo(f"Trial {found.best} is the best: mean return {found.value:.1f}")
    click.echo(f"Wrote {found.config} and {found.folder / PAGE}")
