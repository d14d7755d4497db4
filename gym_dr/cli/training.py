"""One run from its folder to its pictures: what ``gymdr train`` and ``gymdr resume`` share."""

from __future__ import annotations

import click

from gym_dr.cli.progress import Progress
from gym_dr.errors import PluginError
from gym_dr.evaluation.plots import plot_training
from gym_dr.evaluation.policies import evaluate_run
from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.training.api import Algorithm


def run_training(folder: RunFolder, config: RunConfig, algorithm: Algorithm, *, resume: bool, bar: bool = True) -> None:
    """Trains, draws the plots and evaluates, showing each.

    Args:
        folder: Of the run, with its configuration written.
        config: Resolved.
        algorithm: What trains.
        resume: Whether to go on from the newest checkpoint.
        bar: Whether a terminal gets a progress bar; runs beside each other print lines.

    Raises:
        PluginError: The algorithm's function cannot be imported.
        CheckpointError: There is nothing usable to resume from.
        TrainingError: Training cannot go on.
    """
    import torch  # heavy

    # the networks are small: more threads cost more than they bring, and sums would depend on the number of cores
    torch.set_num_threads(1)
    try:
        train = algorithm.train_function()
    except Exception as error:  # whatever a stranger's module raises when it is imported
        raise PluginError(f"Algorithm {algorithm.name!r}: {algorithm.train!r} cannot be imported: {error}") from error
    session = RunSession(folder, config, lambda updates, row: progress(updates, row), resume=resume)
    title = f"{algorithm.name} seed {config.settings.seed}"
    try:
        with Progress(config.options.updates, session.first_update, title, bar=bar) as progress:
            train(session, config.options)
    except KeyboardInterrupt:
        click.echo(f"Stopped. Go on from the last checkpoint with: gymdr resume {folder.path}", err=True)
        raise
    finally:
        session.close()
    plot_training([folder], folder.plots)
    if config.settings.eval_episodes and algorithm.policy_loader() is not None:
        show_evaluation(evaluate_run(folder, config, algorithm, config.settings.eval_episodes))
    click.echo(f"Run folder: {folder.path}")


def show_evaluation(result: dict[str, object]) -> None:
    """Prints the statistics of an evaluation, a line for each distribution of parameters."""
    for name, statistics in result.items():
        if isinstance(statistics, dict):
            success = f", {statistics['success_rate']:.0%} solved" if "success_rate" in statistics else ""
            click.echo(
                f"Evaluation on {name:8} {statistics['mean']:8.1f} +- {statistics['std']:.1f} "
                f"({statistics['episodes']} episodes{success})"
            )
