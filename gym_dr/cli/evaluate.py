"""``gymdr evaluate RUN ...`` and ``gymdr evaluate --policy ...``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.api.evaluate import evaluate
from gym_dr.cli.options import (
    chosen_draws,
    command_line,
    opened_policies,
    physics_options,
    policy_options,
    reference_option,
    threads_option,
)
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.evaluation.results import Evaluation, sampler_notes
from gym_dr.evaluation.sets import EvaluationSet, grid, sobol
from gym_dr.evaluation.statistics import ONE_TRAINING


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@policy_options
@reference_option
@physics_options
@click.option(
    "--grid",
    "axes",
    multiple=True,
    metavar="NAME=LOW:HIGH:COUNT",
    help="values of a parameter, including both ends; repeatable, to play all combinations of several parameters",
)
@click.option(
    "--sobol",
    "points",
    type=int,
    metavar="POINTS",
    help="Sobol sequences through the training distribution, for sensitivity indices; POINTS is a power of 2 from 4",
)
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    help="episodes per cell  [default: 100 for nominal values and draws, 20 for --grid, 5 for --sobol]",
)
@click.option(
    "--success",
    type=float,
    metavar="RETURN",
    help="return from which an episode counts as solved  [default: as before in the folder, or the environment's]",
)
@click.option(
    "--output",
    metavar="FOLDER",
    help="folder for the results  [default: RUN/evaluation; NAME-evaluation for one --policy; required for several]",
)
@threads_option
def command(
    runs: tuple[str, ...],
    others: tuple[str, ...],
    references: tuple[str, ...],
    axes: tuple[str, ...],
    points: int | None,
    params: tuple[str, ...],
    randomize: tuple[str, ...],
    stochastic: bool,
    **options: Any,
) -> None:
    """Evaluate policies on nominal values, on their training draws, and on other values that you choose.

    Policies are runs or, with --policy, ONNX files, Stable-Baselines3 files or functions of your own. All play the same
    draws and seeds, so differences between them are paired. A folder of several seeds stands for all of its runs.
    Evaluating again adds to the results; an interrupted evaluation resumes where it stopped.
    """
    shared = {name: options.pop(name) for name in ("episodes", "success", "output", "num_threads")}
    played = chosen_draws(options["randomization"], randomize, params)
    if others and not (randomize or params):  # --randomization holds their training draws
        played = None
    policies = opened_policies([*runs, *others], references, stochastic=stochastic or None, **options)
    sets: list[Any] = [
        *([grid_of(axes)] if axes else []),
        *([] if points is None else [sobol(points)]),
        *([] if played is None else [played]),
    ]
    evaluation = evaluate(policies, sets, command=command_line(), **shared)
    _show(evaluation)
    click.echo(f"Wrote {evaluation.folder}")


def _show(evaluation: Evaluation) -> None:
    """Prints, for each set, statistics, worst cells, sensitivities and differences."""
    success = evaluation.document["success"]
    solved = "" if success is None else f", success: a return of at least {success:g}"
    click.echo(f"{evaluation.document['env']}{solved}")
    for note in sampler_notes(evaluation.document):
        click.echo(note)
    for table in evaluation.tables:
        click.echo(f"\n{table}")
    click.echo(f"\nIntervals of 95 % are over episodes. {ONE_TRAINING}")


def grid_of(texts: tuple[str, ...]) -> EvaluationSet:
    """Reads ``--grid NAME=LOW:HIGH:COUNT`` options; names may contain colons.

    Raises:
        ConfigError: A text is malformed.
        RandomizationError: A name is given twice.
    """
    axes: dict[str, Any] = {}
    for text in texts:
        name, _, values = (part.strip() for part in text.partition("="))
        if name in axes:
            raise RandomizationError(f"--grid: parameter {name!r} is given twice.")
        try:
            low, high, count = values.split(":") if name else []
            axes[name] = float(low), float(high), int(count)
        except ValueError:
            raise ConfigError(
                f"--grid: expected NAME=LOW:HIGH:COUNT such as gravity=-12:-2:11, got {text!r}."
            ) from None
    return grid(**axes)
