"""The trials of a tuning: each trains a run for each seed and evaluates it; Optuna chooses their options."""

from __future__ import annotations

import contextlib
import json
import math
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.compiled.threads import usable_threads
from gym_dr.errors import ConfigError, GymDrError, LostRunError, TrainingError
from gym_dr.runs.config import check_device, differences
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.folder import RunFolder, seed_name
from gym_dr.runs.launch import call_in_processes
from gym_dr.runs.lock import FolderLock
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.plain import refuse_links
from gym_dr.runs.progress import Progress
from gym_dr.runs.stopping import StopRequest, stop_signals
from gym_dr.studies.document import TUNING
from gym_dr.studies.tune_file import Tuning, read_tuning
from gym_dr.studies.variants import inner_table

if TYPE_CHECKING:
    import optuna
    import pandas as pd

REPORTS = 10  # of a run's training return, at each of which the trial may be pruned
PATIENCE = 60.0  # s to wait for other workers' writes into the storage


@dataclass(frozen=True, kw_only=True, eq=False)
class TuneResult:
    """What a tuning has found.

    Attributes:
        folder: Its folder.
        trials: A row for each trial, as in ``trials.csv``.
        best: The number of the best trial.
        value: Its mean return.
        config: The file with its options, for ``config`` of ``gym_dr.train``.
    """

    folder: Path
    trials: pd.DataFrame = field(repr=False)
    best: int
    value: float
    config: Path


@contextlib.contextmanager
def locked_tuning(folder: Path, plan: Tuning) -> Iterator[None]:
    """Takes a folder for a tuning, for the block.

    Args:
        folder: The folder, which may be new, or hold the same tuning.
        plan: The tuning.

    Raises:
        ConfigError: The folder holds another tuning.
        RunFolderError: The folder holds something else, or cannot be written.
        BusyFolderError: Another process is working on the tuning.
    """
    settings = plan.variant({}).config.settings
    check_device(settings.device)
    check_loggers(settings.loggers)
    form = json.loads(json.dumps(plan.to_dict()))
    there = TUNING.read(folder, *form)
    if there is None:
        with os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        TUNING.write(folder, form)
    else:
        changes = differences(inner_table(there, "config"), plan.variant({}).config)
        changes += [f"{name} was changed" for name in ("search", "evaluation") if there[name] != form[name]]
        if changes:
            raise ConfigError(
                f"{folder}: holds another tuning, with whose trials new ones could not be compared: "
                f"{', '.join(changes)}. Change it back, or choose another `output`."
            )
    refuse_links([folder / "optuna.db", folder / "runs", *folder.glob("runs/*"), *folder.glob("runs/*/*-*")])
    with FolderLock(folder).held():
        yield


@contextlib.contextmanager
def open_storage(folder: Path) -> Iterator[optuna.Study]:
    """Opens Optuna's study, which is in an SQLite file in the folder."""
    import optuna
    from sqlalchemy import engine

    file = engine.URL.create("sqlite", database=str((folder / "optuna.db").resolve())).render_as_string()
    storage = optuna.storages.RDBStorage(file, engine_kwargs={"connect_args": {"timeout": PATIENCE}})
    try:
        yield optuna.create_study(storage=storage, study_name="gym_dr", direction="maximize", load_if_exists=True)
    finally:
        storage.remove_session()
        storage.engine.dispose()


def finished_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that count: all but those that were interrupted or have not begun."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE, TrialState.PRUNED])


def search(
    given: str | Path | Mapping[str, Any], plan: Tuning, folder: Path, *, workers: int | None, command: str, progress: bool
) -> TuneResult:
    """Makes the trials that are missing; writes ``trials.csv`` and ``best.json``.

    Args:
        given: The tuning as the user gave it, for workers to read.
        plan: The tuning.
        folder: Its folder, which is locked.
        workers: See ``gym_dr.tune``, as for the others.
        command: The command line.
        progress: Whether to print a line for each trial.

    Raises:
        LostRunError: A worker was killed.
        TrainingError: No trial is complete, or a worker failed.
    """
    from optuna.trial import TrialState

    with open_storage(folder) as study:
        for trial in study.get_trials(states=[TrialState.RUNNING]):  # of workers that were killed
            study.tell(trial.number, state=TrialState.FAIL)
        if plan.first and not (finished_trials(study) or study.get_trials(states=[TrialState.WAITING])):
            study.enqueue_trial(plan.first)
        left = plan.head.trials - len(finished_trials(study))
    size = min(workers or usable_threads(), left)
    # the module of the environment is imported already
    shared = given, folder, [plan.head.env.rpartition(":")[0]], command, progress
    calls = {str(i): (*shared, i, left // size + (i < left % size)) for i in range(size)}
    answers = {"0": _work(*calls["0"])} if size == 1 else call_in_processes(_work, calls, size) if calls else {}
    if None in answers.values():
        raise LostRunError(f"{folder}: a worker was killed. Run the same command, or make the same call, to go on.")
    if problems := sorted(filter(None, answers.values())):
        raise TrainingError("\n".join(problems))
    with open_storage(folder) as study:
        return _write_result(study, plan, folder)


def _work(
    given: Any, folder: Path, trust: Collection[str], command: str, progress: bool, worker: int, count: int
) -> str:
    """Makes a number of trials; returns the message of an error that ends the tuning, or an empty text."""
    from gym_dr.runs.train import one_thread  # heavy

    stop = StopRequest()
    display = Progress("trial", "lines" if progress else "nothing")
    try:
        plan = read_tuning(given, trust)

        def show(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            result = trial.user_attrs.get("reason") or f"{trial.value:.1f}"
            done = f"{len(finished_trials(study))} of {plan.head.trials} done"
            display.note(f"trial {trial.number}: {result} ({done})")

        with stop_signals(stop), one_thread(), open_storage(folder) as study:
            study.pruner = plan.pruner()
            for _ in range(count):
                stop.check()
                # each trial has random numbers of its own: those of a stream would not be the same after a stop
                study.sampler = plan.sampler_of(len(finished_trials(study)), worker)
                study.optimize(lambda trial: _value(trial, plan, folder, command, stop), n_trials=1, callbacks=[show])
    except GymDrError as error:
        return str(error)
    return ""


def _value(trial: optuna.Trial, plan: Tuning, folder: Path, command: str, stop: StopRequest) -> float:
    """Trains and evaluates a trial's runs; returns the mean of their returns."""
    import optuna

    for name, one in plan.search.items():
        _suggest(trial, name, one)
    try:
        returns = [_return(trial, number, plan, folder, command, stop) for number in range(len(plan.head.seeds))]
        return sum(returns) / len(returns)
    except optuna.TrialPruned:
        reason = "pruned"
    except (TrainingError, ConfigError) as error:
        reason = str(error)
    except GymDrError:  # such as a full disk, on which all trials would fail
        raise
    except Exception as error:  # a bug in a plugin's algorithm or in gym_dr: other trials continue
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
    trial.set_user_attr("reason", reason)
    raise optuna.TrialPruned  # from which samplers learn, other than from failed trials


def _suggest(trial: optuna.Trial, name: str, one: Any) -> None:
    """Has Optuna choose the value of an option."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(one, CategoricalDistribution):
        trial.suggest_categorical(name, one.choices)
    else:
        suggest = trial.suggest_int if isinstance(one, IntDistribution) else trial.suggest_float
        suggest(name, one.low, one.high, step=one.step, log=one.log)


def _return(trial: optuna.Trial, place: int, plan: Tuning, folder: Path, command: str, stop: StopRequest) -> float:
    """Trains and evaluates a trial's run with one of the seeds; returns its mean return."""
    from gym_dr.evaluation.evaluate import evaluate_policies
    from gym_dr.policies.open import open_runs
    from gym_dr.runs.train import train_run

    variant, seed = plan.variant(trial.params), plan.head.seeds[place]
    config = variant.with_seed(seed)
    path = folder / "runs" / f"trial-{trial.number}" / seed_name(seed)
    run = RunFolder.create(path, config.to_json(), overwrite=False, command=command)
    parts = run, config, variant.algorithm
    report = _reporter(trial, place, config.options.updates)
    train_run(*parts, resume=False, display="nothing", stop=stop, callback=report)
    found = evaluate_policies(open_runs([parts]), [plan.cells], run.evaluation, progress=lambda *_: stop.check())
    value = float(found.returns(plan.cells.name).mean())
    trial.set_user_attr(path.name, value)
    return value


def _reporter(trial: optuna.Trial, place: int, updates: int) -> Callable[[Mapping[str, float]], None]:
    """A callback that reports a run's training return, numbered after those of the runs before it."""
    import optuna

    reported = place * REPORTS

    def report(row: Mapping[str, float]) -> None:
        nonlocal reported
        number = place * REPORTS + (int(row["update"]) + 1) * REPORTS // updates
        if number > reported and not math.isnan(row["return_mean"]):  # before the first episode has ended
            reported = number
            trial.report(row["return_mean"], number)
            if trial.should_prune():
                raise optuna.TrialPruned

    return report


def _write_result(study: optuna.Study, plan: Tuning, folder: Path) -> TuneResult:
    """Writes the trials and the best options."""
    trials = study.trials_dataframe(attrs=("number", "state", "value", "params", "user_attrs"))
    write_atomically(folder / "trials.csv", trials.to_csv(index=False).encode())
    if not (trials["state"] == "COMPLETE").any():
        reasons = "\n".join(dict.fromkeys(str(trial.user_attrs.get("reason")) for trial in finished_trials(study)[:3]))
        raise TrainingError(f"{folder}: no trial is complete:\n{reasons}")
    best, path = study.best_trial, folder / "best.json"
    form = plan.variant(best.params).config.to_dict()
    del form["seed"], form["eval_episodes"]  # other seeds are to be trained, and then evaluated
    write_atomically(path, (json.dumps(form, indent=2) + "\n").encode())
    return TuneResult(folder=folder, trials=trials, best=best.number, value=float(best.value or 0.0), config=path)
