"""Trains runs, and finishes them: with plots and an evaluation, or, for several seeds, with their aggregate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, Interrupted, shortened
from gym_dr.evaluation.aggregate import aggregate
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.suite import sets_for
from gym_dr.policies.open import open_runs
from gym_dr.reports.plots import plot_growth, plot_training
from gym_dr.runs.config import OpenedRun
from gym_dr.runs.durable import check_output
from gym_dr.runs.folder import PICTURE_MARK, RunFolder
from gym_dr.runs.launch import Launch, launch
from gym_dr.runs.session import TrainingCallback
from gym_dr.runs.terminal import Display, StopRequest, explain_interrupt, stop_signals
from gym_dr.runs.train import limited_threads, train_run, working_on


def train_and_evaluate(
    run: OpenedRun,
    *,
    resume: bool,
    display: Display,
    callback: TrainingCallback | None = None,
    num_threads: int | None = None,
) -> None:
    """Trains a run, plots its training and evaluates its policy. Episodes that were played before are not repeated.

    Args:
        run: The run; its folder holds the configuration.
        resume: Whether to resume from the newest checkpoint, if there is one.
        display: How to show progress.
        callback: See ``gym_dr.train``.
        num_threads: See ``gym_dr.train``.

    Raises:
        Interrupted: A signal stopped the run; the message says how to continue.
        GymDrError: See ``train_run``.
    """
    folder, config, stop = run.folder, run.config, StopRequest()
    with working_on(run, stop, new=not resume, num_threads=num_threads) as loggers:
        for picture in (folder.plots, folder.growth):
            check_output(picture, PICTURE_MARK)
        train_run(run, stop, loggers, resume=resume, display=display, callback=callback)
        unfinished = "Trained, but stopped before the plots and the evaluation were done."
        with limited_threads(), explain_interrupt(f"{unfinished} Continue with: gymdr resume {folder.path}"):
            stop.check()
            plot_growth(folder, config)
            plot_training([folder], folder.plots)  # last: a run with this plot is finished
            stop.check()
            if config.settings.eval_episodes and run.algorithm.policy_loader() is not None:
                policies = open_runs([run])
                sets = sets_for(policies, (), config.settings.eval_episodes)
                found = evaluate_policies(policies, sets, folder.evaluation, progress=lambda *_: stop.check())
                loggers.evaluated(found.statistics(policies[0].name))
    if stop.number:  # too late to stop anything, but the sender expects the exit code
        raise Interrupted(f"Stopped after everything was done. Run folder: {folder.path}", stop.number)


def check_callback(callback: Any, seeds: Sequence[int] | None = None) -> None:
    """Checks that a callback, if there is one, can be called, and that it need not be called in other processes.

    Raises:
        ConfigError: It cannot, or there are several seeds.
    """
    if callback is not None and not callable(callback):
        raise ConfigError(f"callback: expected a function of a row of metrics, got {shortened(callback)}.")
    if callback is not None and seeds is not None:
        raise ConfigError("callback: expected `seed`, got `seeds`, which train in processes of their own.")


def train_seeds(
    folders: Sequence[RunFolder], root: Path, how: Launch, *, trust: Collection[str], progress: bool
) -> None:
    """Trains the runs in a folder and writes their aggregate; raises what ``launch`` and ``aggregate_runs`` raise."""
    launch(folders, how, trust=trust, display="bar" if progress else "nothing")
    aggregate_runs(folders, root)


def aggregate_runs(folders: Sequence[RunFolder], root: Path) -> None:
    """Writes the aggregate of several trained seeds.

    Raises:
        RunFolderError: A run has no metrics, or a file cannot be written.
        Interrupted: A signal arrived.
    """
    stop = StopRequest()
    with explain_interrupt(f"All runs are trained. Aggregate them with: gymdr resume {root}"):
        with stop_signals(stop):
            plot_training(folders, root / folders[0].plots.name)
            aggregate(folders, root)
        stop.check()
