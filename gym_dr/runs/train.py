"""Trains, plots and evaluates one run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping

from gym_dr.errors import Interrupted, InvalidActionError, LostRunError, PluginError, TrainingError
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.sets import sets_for
from gym_dr.policies.open import open_runs
from gym_dr.randomization.space import switch_notes
from gym_dr.reports.growth import plot_growth
from gym_dr.reports.plots import plot_training
from gym_dr.runs.config import OpenedRun, RunConfig
from gym_dr.runs.configure import family_defaults
from gym_dr.runs.environments import lost_worker
from gym_dr.runs.feed import LoggerFeed
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.progress import Display, Progress
from gym_dr.runs.session import EndedEarly, RunSession, TrainingCallback
from gym_dr.runs.stopping import StopRequest, explain_interrupt, stop_signals
from gym_dr.training.api import Algorithm


def train_run(
    run: OpenedRun,
    *,
    resume: bool,
    display: Display = "bar",
    stop: StopRequest | None = None,
    callback: TrainingCallback | None = None,
) -> None:
    """Trains a run whose folder has its configuration, draws the plots and evaluates.

    Args:
        run: The run.
        resume: Whether to resume from the newest checkpoint, if there is one.
        display: How to show progress.
        stop: Set by the caller's signal handler; None if there is none.
        callback: See ``gym_dr.train``.

    Raises:
        PluginError: The algorithm's function cannot be imported, or a logger cannot be opened.
        CheckpointError: There is nothing usable to resume from.
        BusyFolderError: Another process writes into the folder.
        LostRunError: A worker process of async environments died.
        TrainingError: Training cannot continue.
        Interrupted: A signal stopped the run; the message says how to continue.
    """
    folder, config, algorithm = run.folder, run.config, run.algorithm
    stop = stop or StopRequest()
    with (
        one_thread(),
        folder.locked(),
        stop_signals(stop),
        contextlib.closing(LoggerFeed(folder, config, required=not resume)) as feed,
    ):
        _train(folder, config, algorithm, stop, resume, display, callback, feed)
        unfinished = "Trained, but stopped before the plots and the evaluation were done."
        with explain_interrupt(f"{unfinished} Continue with: gymdr resume {folder.path}"):
            _plot_and_evaluate(folder, config, algorithm, stop, feed)
    if stop.number:  # too late to stop anything, but the sender expects the exit code
        raise Interrupted(f"Stopped after everything was done. Run folder: {folder.path}", stop.number)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limits torch, and products of matrices in compiled code, to one thread.

    More slow small networks down, most of all where other programs are busy, and sums would depend on their number.
    """
    import scipy.linalg  # noqa: F401  heavy; numba's products are its, and only libraries that are loaded are limited
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def _train(
    folder: RunFolder,
    config: RunConfig,
    algorithm: Algorithm,
    stop: StopRequest,
    resume: bool,
    display: Display,
    callback: TrainingCallback | None,
    feed: LoggerFeed,
) -> None:
    """Trains until the end, the callback's or a signal: the first stops after the current update, a second at once."""
    try:
        train = algorithm.train_function()
    except Exception as error:  # a plugin's module may raise anything when it is imported
        raise PluginError(f"Algorithm {algorithm.name!r}: {algorithm.train!r} cannot be imported: {error}") from error
    title, total = f"{algorithm.name} seed {config.settings.seed}", config.options.updates
    with Progress("update", display) as progress:
        if family := _family_settings(config, algorithm):
            progress.note(f"{title}: defaults for {config.settings.env}: {', '.join(family)}")
        if config.space is not None and config.randomization is not None:
            for note in switch_notes(config.randomization, config.space):
                progress.note(f"{title}: {note}")

        def report(updates: int, row: Mapping[str, float]) -> None:
            mean = row["return_mean"]
            result = "no episode yet" if math.isnan(mean) else f"return {mean:.1f}"
            progress(title, updates, total, steps=row["steps"], result=result)

        session = RunSession(
            folder, config, report, resume=resume, stop=lambda: stop.number, callback=callback, feed=feed
        )
        progress(title, session.first_update, total)
        try:
            train(session, config.options)
        except (TrainingError, InvalidActionError) as error:
            raise TrainingError(f"Update {session.updates_made}: {error} {session.last_good()}") from error
        except EndedEarly:
            progress.note(
                f"{title}: the callback ended the run after {session.updates_made} of {total} updates. Train the "
                f"others with: gymdr resume {folder.path}"
            )
        except KeyboardInterrupt as stopped:
            raise Interrupted(
                f"Stopped with {session.updates_made} of {total} updates made and {session.updates_saved} saved. "
                f"Continue, to the same result as without the stop, with: gymdr resume {folder.path}",
                *stopped.args[-1:],
            ) from None
        except Exception as error:
            if config.settings.vectorization != "async" or (lost := lost_worker(error, session.envs)) is None:
                raise
            raise LostRunError(f"{lost} Continue with: gymdr resume {folder.path}") from error
        finally:
            session.close()


def _family_settings(config: RunConfig, algorithm: Algorithm) -> list[str]:
    """Defaults of the environment's family that replace the algorithm's and that no option overrides."""
    chosen = {**vars(config.options), **vars(config.settings)}
    defaults = family_defaults(algorithm, config.settings.env)
    return [f"{name} {value}" for name, value in defaults.items() if chosen[name] == value]


def _plot_and_evaluate(
    folder: RunFolder, config: RunConfig, algorithm: Algorithm, stop: StopRequest, feed: LoggerFeed
) -> None:
    """Draws the plots and evaluates. Episodes played before an interruption are not repeated."""
    stop.check()
    plot_growth(folder, config, folder.growth)
    plot_training([folder], folder.plots)  # last: a run with this plot is finished
    stop.check()
    if config.settings.eval_episodes and algorithm.policy_loader() is not None:
        policies = open_runs([OpenedRun(folder=folder, config=config, algorithm=algorithm)])
        sets = sets_for(policies, (), config.settings.eval_episodes)
        found = evaluate_policies(policies, sets, folder.evaluation, progress=lambda *_: stop.check())
        feed.evaluated(found.statistics(policies[0].name))
