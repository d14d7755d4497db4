"""``gymdr evaluate RUN ...``."""

from __future__ import annotations

import click

from gym_dr.cli.runs import open_run


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--episodes", type=click.IntRange(min=1), default=100, show_default=True, help="on each distribution")
def command(runs: tuple[str, ...], episodes: int) -> None:
    """Evaluate trained policies on the nominal environment and on the draws that they were trained on.

    Policies act as in training, so A2C samples its actions; all meet the same seeds. Writes evaluation.json into each
    RUN.
    """
    from gym_dr.cli.training import show_evaluation  # heavy
    from gym_dr.evaluation.policies import evaluate_run
    from gym_dr.runs.folder import expand

    for folder in expand(list(runs)):
        click.echo(f"{folder.path}:")
        show_evaluation(evaluate_run(*open_run(str(folder.path)), episodes))
