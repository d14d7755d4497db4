"""Prints the results of training and evaluation."""

from __future__ import annotations

import shlex

import click

from gym_dr.api.run import Run, Runs
from gym_dr.evaluation.results import Evaluation, sampler_notes
from gym_dr.evaluation.statistics import ONE_TRAINING
from gym_dr.runs.sources import source_of
from gym_dr.wording import counted


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


def show_evaluation(evaluation: Evaluation) -> None:
    """Prints, for each set, statistics, worst cells, sensitivities and differences."""
    success = evaluation.document["success"]
    solved = "" if success is None else f", success: a return of at least {success:g}"
    click.echo(f"{evaluation.document['env']}{solved}")
    for note in sampler_notes(evaluation.document):
        click.echo(note)
    for table in evaluation.tables:
        click.echo(f"\n{table}")
    click.echo(f"\nIntervals of 95 % are over episodes. {ONE_TRAINING}")
