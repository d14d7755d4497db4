"""``gymdr evaluate RUN ...``."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gym_dr.cli.runs import open_run, trust_option
from gym_dr.errors import ConfigError

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet
    from gym_dr.evaluation.policies import RunPolicy

EPISODES = {"draws": 100, "cell": 20, "sobol": 5}  # of nominal and of distributions, of a cell, of a Sobol point


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--grid",
    "axes",
    multiple=True,
    metavar="NAME=LOW:HIGH:COUNT",
    help="values of a parameter, both ends included; give it several times for every combination",
)
@click.option("--corners", is_flag=True, help="the corners of the box that the runs were trained on")
@click.option(
    "--sobol", type=int, metavar="POINTS", help="fill that box and tell which parameter matters; POINTS is a power of 2"
)
@click.option("--protocol", type=click.Choice(["dre"]), help="nominal, random and extreme as in Packer et al. 2018")
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    help="of each cell  [default: 100 of nominal values and distributions, 20 of --grid and --corners, 5 of --sobol]",
)
@click.option("--success", type=float, metavar="RETURN", help="from which an episode is solved  [default: the env's]")
@click.option("--output", metavar="FOLDER", help="where results go  [default: RUN/evaluation; needed for several RUNs]")
@trust_option
def command(
    runs: tuple[str, ...], output: str | None, success: float | None, trust: tuple[str, ...], **options: Any
) -> None:
    """Evaluate trained policies on nominal values, on what they were trained on, and wherever else they are sent.

    All policies meet the same draws and the same seeds, so that
    differences between them are paired. A RUN that is a folder of seeds stands for all of them. Evaluating again adds
    to the results; what was interrupted goes on where it stopped.
    """
    from gym_dr.cli.progress import EpisodeProgress  # heavy, as those below
    from gym_dr.cli.tables import show_evaluation
    from gym_dr.cli.training import use_one_thread
    from gym_dr.evaluation.evaluate import evaluate_policies, success_threshold
    from gym_dr.evaluation.policies import open_policies
    from gym_dr.evaluation.results import evaluation_folder
    from gym_dr.runs.folder import expand

    if success is not None and not math.isfinite(success):
        raise ConfigError(f"--success: expected a finite return, got {success}.")
    folder = evaluation_folder(runs, output)
    policies = open_policies([open_run(str(run.path), trust) for run in expand(list(runs))])
    if options["protocol"] and success_threshold(policies[0].env, success) is None:
        raise ConfigError(f"--protocol dre counts successes, but {policies[0].env} has no threshold: give --success.")
    sets = _sets(policies, **options)
    use_one_thread()
    try:
        with EpisodeProgress() as progress:
            evaluation = evaluate_policies(
                policies,
                sets,
                folder,
                success=success,
                command=_command_line(runs, output=output, success=success, trust=trust, **options),
                progress=progress,
            )
    except KeyboardInterrupt:
        click.echo("Stopped. Finished cells are kept; the same command goes on from there.", err=True)
        raise
    show_evaluation(evaluation)
    click.echo(f"Wrote {folder}")


def _sets(
    policies: Sequence[RunPolicy],
    *,
    axes: tuple[str, ...],
    corners: bool,
    sobol: int | None,
    protocol: str | None,
    episodes: int | None,
) -> list[CellSet]:
    """Where to look, all checked."""
    from gym_dr.evaluation import cells, default_sets
    from gym_dr.runs.environments import param_space_of

    space = param_space_of(policies[0].env)
    sets = default_sets.nominal_and_training(policies, space, episodes or EPISODES["draws"])
    if not (axes or corners or sobol is not None or protocol):
        return sets
    if space is None:
        raise ConfigError(
            f"{policies[0].env} has no parameters to vary: expected no --grid, --corners, --sobol, --protocol."
        )
    if protocol:
        sets += default_sets.dre(space, episodes or EPISODES["draws"])
    if axes:
        read = [cells.parse_axis(text) for text in axes]
        twice = [name for name, _ in read if sum(name == other for other, _ in read) > 1]
        if twice:
            raise ConfigError(f"--grid: parameter {twice[0]!r} is given twice.")
        grid = cells.grid(space, dict(read), episodes or EPISODES["cell"])
        for switch in grid.fixed:
            click.echo(f"--grid: {switch} is on in every cell, since others have no effect without it.", err=True)
        sets.append(grid)
    if corners or sobol is not None:
        box = cells.training_box(space, [policy.config.randomization for policy in policies])
        if corners:
            sets.append(cells.corners(box, episodes or EPISODES["cell"]))
        if sobol is not None:
            sets.append(cells.sobol(box, sobol, episodes or EPISODES["sobol"]))
    return sets


def _command_line(
    runs: tuple[str, ...],
    *,
    axes: tuple[str, ...],
    corners: bool,
    sobol: int | None,
    protocol: str | None,
    episodes: int | None,
    success: float | None,
    output: str | None,
    trust: tuple[str, ...],
) -> str:
    """The command that was given, to be given again."""
    words = ["gymdr", "evaluate", *runs]
    for text in axes:
        words += ["--grid", text]
    for module in trust:
        words += ["--trust", module]
    words += ["--corners"] if corners else []
    named = {"sobol": sobol, "protocol": protocol, "episodes": episodes, "success": success, "output": output}
    for name, value in named.items():
        words += [] if value is None else [f"--{name}", str(value)]
    return shlex.join(words)
