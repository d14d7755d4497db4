"""One run from its folder to its pictures: what ``gymdr train`` and ``gymdr resume`` share."""

from __future__ import annotations

import click

from gym_dr.cli.progress import Progress
from gym_dr.cli.tables import show_short
from gym_dr.errors import PluginError
from gym_dr.evaluation.default_sets import nominal_and_training
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.plots import plot_training
from gym_dr.evaluation.policies import open_policies
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.runs.stopping import StopRequest, stop_signals
from gym_dr.training.api import Algorithm, Train


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
        BusyFolderError: Another process writes into the folder.
        TrainingError: Training cannot go on.
        KeyboardInterrupt: A signal has ended the run; its number is the argument, if it was not while Python began.
    """
    use_one_thread()
    try:
        train = algorithm.train_function()
    except Exception as error:  # whatever a stranger's module raises when it is imported
        raise PluginError(f"Algorithm {algorithm.name!r}: {algorithm.train!r} cannot be imported: {error}") from error
    stop = StopRequest()
    with folder.locked(), stop_signals(stop):
        if folder.killed_owner:
            click.echo(f"{folder.path}: {folder.killed_owner} was killed and holds it no longer.", err=True)
        _train(folder, config, algorithm, train, stop, resume=resume, bar=bar)
        try:
            _look_at_result(folder, config, algorithm, stop)
        except KeyboardInterrupt:
            click.echo(
                "Trained, but stopped before the plots and the evaluation were done. Go on with: "
                f"gymdr resume {folder.path}",
                err=True,
            )
            raise
    click.echo(f"Run folder: {folder.path}")
    stop.check()  # a signal that came when all was done is told all the same


def _look_at_result(folder: RunFolder, config: RunConfig, algorithm: Algorithm, stop: StopRequest) -> None:
    """Draws the plots and evaluates. Episodes that were played before an interruption are not played again."""
    stop.check()
    plot_training([folder], folder.plots)
    stop.check()
    if config.settings.eval_episodes and algorithm.policy_loader() is not None:
        policies = open_policies([(folder, config, algorithm)])
        sets = nominal_and_training(policies, param_space_of(config.settings.env), config.settings.eval_episodes)
        show_short(evaluate_policies(policies, sets, folder.evaluation, progress=lambda *_: stop.check()))


def _train(
    folder: RunFolder,
    config: RunConfig,
    algorithm: Algorithm,
    train: Train,
    stop: StopRequest,
    *,
    resume: bool,
    bar: bool,
) -> None:
    """Trains until the end or until a signal: the first ends the run after the update under way, a second at once."""
    session = RunSession(
        folder,
        config,
        lambda updates, row: progress(updates, row),
        resume=resume,
        stop=lambda: stop.number,
    )
    title = f"{algorithm.name} seed {config.settings.seed}"
    try:
        with Progress(config.options.updates, session.first_update, title, bar=bar) as progress:
            train(session, config.options)
    except KeyboardInterrupt:
        click.echo(
            f"Stopped with {session.updates_made} of {config.options.updates} updates made and {session.updates_saved} "
            f"saved. Go on, to the result of a run that was never stopped, with: gymdr resume {folder.path}",
            err=True,
        )
        raise
    finally:
        session.close()


def use_one_thread() -> None:
    """Makes torch use one: networks are small, more cost more than they bring, and sums would depend on it."""
    import torch  # heavy

    torch.set_num_threads(1)
