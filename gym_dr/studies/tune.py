"""The trials of a tuning: Optuna chooses options, and a trial trains and evaluates a run with them for each seed."""

from __future__ import annotations

import contextlib
import json
import math
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
from optuna.trial import TrialState
from sqlalchemy import engine

from gym_dr.errors import ConfigError, GymDrError, LostRunError, RunFolderError, TrainingError, raised_as
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.policies.open import open_runs
from gym_dr.runs.config import OpenedRun, check_device, differences
from gym_dr.runs.environments import source_of
from gym_dr.runs.folder import RunFolder, refuse_links, seed_name, write_atomically
from gym_dr.runs.launch import Command, Launch, processes_at_once, run_commands, trusting
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.terminal import Progress, StopRequest, stop_signals
from gym_dr.runs.train import limited_threads, train_run, working_on
from gym_dr.studies.folder import claimed
from gym_dr.studies.tune_file import Tuning, read_tuning
from gym_dr.studies.variants import inner_table

REPORTS = 10  # of a run's training return; at each, the trial may be pruned
PATIENCE = 60.0  # s to wait for other workers' writes into the storage
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)  # others were interrupted or have not begun


@dataclass(frozen=True, kw_only=True, eq=False)
class TuneResult:
    """The result of a tuning.

    Attributes:
        folder: Its folder.
        trials: A row for each trial, as in ``trials.csv``.
        best: The number of the best trial.
        value: The best trial's mean return.
        config: The file with the best trial's options, for ``config`` of ``gym_dr.train``.
    """

    folder: Path
    trials: pd.DataFrame = field(repr=False)
    best: int
    value: float
    config: Path


@dataclass(frozen=True, kw_only=True)
class Share:
    """One worker's trials.

    Attributes:
        worker: The worker's number.
        count: Number of trials.
        command: The command line, recorded in the folders of runs.
        progress: Whether to print a line for each trial.
    """

    worker: int
    count: int
    command: str
    progress: bool


def claimed_tuning(folder: Path, plan: Tuning) -> contextlib.AbstractContextManager[None]:
    """Locks a folder for a tuning in the block; see ``claimed``.

    Raises:
        ConfigError: The folder holds another tuning.
    """
    config, form = plan.variant({}).config, json.loads(json.dumps(plan.to_dict()))
    check_device(config.settings.device)
    check_loggers(config.settings.loggers)

    def check(there: Mapping[str, Any]) -> None:
        refuse_links([folder / "optuna.db", folder / "runs", *folder.glob("runs/*"), *folder.glob("runs/*/*-*")])
        changes = differences(inner_table(there, "config"), config)
        changes += [f"{name} was changed" for name in ("search", "evaluation") if there.get(name) != form[name]]
        if changes:
            raise ConfigError(
                f"{folder}: holds another tuning, whose trials cannot be compared with new ones: "
                f"{', '.join(changes)}. Change it back, or choose another `output`."
            )

    return claimed(folder, "tuning", "tune.json", form, check)


@contextlib.contextmanager
def open_storage(folder: Path) -> Iterator[optuna.Study]:
    """Opens Optuna's study in the folder's SQLite file.

    Raises:
        RunFolderError: The file holds something else, or the block fails on what it holds.
    """
    path = (folder / "optuna.db").resolve()
    with raised_as(RunFolderError, f"{path}: cannot be used for this tuning"), contextlib.ExitStack() as stack:
        file = engine.URL.create("sqlite", database=str(path)).render_as_string()
        storage = optuna.storages.RDBStorage(file, engine_kwargs={"connect_args": {"timeout": PATIENCE}})
        stack.callback(storage.engine.dispose)
        stack.callback(storage.remove_session)
        study = optuna.create_study(storage=storage, study_name="gym_dr", direction="maximize", load_if_exists=True)
        if study.direction != optuna.study.StudyDirection.MAXIMIZE:
            raise ValueError("its study minimizes")
        yield study


def search(
    tuning: str | Path | Mapping[str, Any],
    plan: Tuning,
    folder: Path,
    how: Launch,
    *,
    command: str,
    progress: bool,
) -> TuneResult:
    """Makes the trials that are missing; writes ``trials.csv`` and ``best.json``.

    Args:
        tuning: As the user gave it, for workers to read.
        plan: The tuning, read.
        folder: Its folder, locked.
        how: How many trials at once, and on how many threads.
        command: The command line.
        progress: Whether to print a line for each trial.

    Raises:
        LostRunError: A worker was killed.
        TrainingError: No trial is complete, or a worker failed.
    """
    with open_storage(folder) as study:
        for trial in study.get_trials(states=[TrialState.RUNNING]):  # interrupted
            study.tell(trial.number, state=TrialState.FAIL)
        if plan.first and not study.get_trials(states=[*FINISHED, TrialState.WAITING]):
            study.enqueue_trial(plan.first)
        finished = study.get_trials(states=FINISHED)
        if any(trial.params.keys() != plan.search.keys() for trial in finished):
            raise ValueError("trials lack their options")
        left = plan.head.trials - len(finished)
    size = min(processes_at_once(how.workers, how.num_threads), left)
    shares = [
        Share(worker=i, count=left // size + (i < left % size), command=command, progress=progress) for i in range(size)
    ]
    trusted = [source_of(plan.head.env)]  # already imported when the tuning was read
    if size == 1:
        try_trials(tuning, folder, shares[0], trusted, how.num_threads)
    elif shares:
        _try_in_processes(tuning, folder, shares, trusted, how.num_threads)
    with open_storage(folder) as study:
        return _write_result(study, plan, folder)


def _try_in_processes(
    tuning: str | Path | Mapping[str, Any],
    folder: Path,
    shares: Sequence[Share],
    trust: Collection[str],
    num_threads: int | None,
) -> None:
    """Runs each worker in its own process; see ``search``."""
    file = json.dumps(tuning, default=lambda value: value.to_dict()) if isinstance(tuning, Mapping) else str(tuning)
    commands: dict[str, Command] = {
        str(share.worker): [
            *("tune", file, "--output", str(folder), "--share", json.dumps(vars(share))),
            *trusting(trust),
        ]
        for share in shares
    }
    ended = run_commands(commands, len(shares), num_threads=num_threads).values()
    if any(one.lost for one in ended):
        raise LostRunError(f"{folder}: a worker was killed. Run the same command, or make the same call, to go on.")
    if problems := sorted({one.message for one in ended if one.code}):
        raise TrainingError("\n".join(problems))


def try_trials(
    tuning: str | Path | Mapping[str, Any],
    folder: Path,
    share: Share,
    trust: Collection[str],
    num_threads: int | None = None,
) -> None:
    """Makes a worker's trials.

    Args:
        tuning: As the user gave it.
        folder: Its folder.
        share: How many trials, and for which worker.
        trust: Modules that the tuning may import.
        num_threads: See ``limited_threads``.
    """
    stop, plan = StopRequest(), read_tuning(tuning, trust)
    display = Progress("trial", "lines" if share.progress else "nothing")
    with stop_signals(stop), limited_threads(num_threads), open_storage(folder) as study:
        study.pruner = plan.pruner()
        for _ in range(share.count):
            stop.check()
            # each trial has its own random numbers, which do not change after a stop
            study.sampler = plan.sampler_of(len(study.get_trials(deepcopy=False, states=FINISHED)), share.worker)
            trial = study.ask(dict(plan.search))
            result = _try(study, trial, plan, folder, share.command, stop)
            done = f"{len(study.get_trials(deepcopy=False, states=FINISHED))} of {plan.head.trials} done"
            display.note(f"trial {trial.number}: {result} ({done})")


def _try(study: optuna.Study, trial: optuna.Trial, plan: Tuning, folder: Path, command: str, stop: StopRequest) -> str:
    """Trains and evaluates a trial's runs and tells Optuna the value; returns the value or the failure as text."""
    try:
        returns = [_return(trial, place, plan, folder, command, stop) for place in range(len(plan.head.seeds))]
        value = sum(returns) / len(returns)
        study.tell(trial, value)
        return f"{value:.1f}"
    except optuna.TrialPruned:
        reason = "pruned"
    except (TrainingError, ConfigError) as error:
        reason = str(error)
    except GymDrError:  # such as a full disk: all trials would fail
        raise
    except Exception as error:  # a bug in a plugin's algorithm or in gym_dr: other trials continue
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
    trial.set_user_attr("reason", reason)
    study.tell(trial, state=TrialState.PRUNED)  # samplers learn from pruned trials, but not from failed ones
    return reason


def _return(trial: optuna.Trial, place: int, plan: Tuning, folder: Path, command: str, stop: StopRequest) -> float:
    """Trains and evaluates a trial's run with one of the seeds; returns its mean return."""
    variant, seed = plan.variant(trial.params), plan.head.seeds[place]
    config = variant.with_seed(seed)
    path = folder / "runs" / f"trial-{trial.number}" / seed_name(seed)
    run = RunFolder.create(path, config.to_json(), overwrite=False, command=command)
    opened = OpenedRun(folder=run, config=config, algorithm=variant.algorithm)
    report = _reporter(trial, place, config.options.updates)
    with working_on(opened, stop, new=True) as loggers:
        train_run(opened, stop, loggers, resume=False, display="nothing", callback=report)
    found = evaluate_policies(open_runs([opened]), [plan.cells], run.evaluation, progress=lambda *_: stop.check())
    value = float(found.returns(plan.cells.name).mean())
    trial.set_user_attr(path.name, value)
    return value


def _reporter(trial: optuna.Trial, place: int, updates: int) -> Callable[[Mapping[str, float]], None]:
    """A callback that reports a run's training return; reports are numbered on from those of earlier runs."""
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
    write_atomically(folder / "trials.csv", trials.to_csv(index=False, float_format=float.__repr__).encode())
    if not (trials["state"] == "COMPLETE").any():
        finished = study.get_trials(states=FINISHED)
        reasons = "\n".join(dict.fromkeys(str(trial.user_attrs.get("reason")) for trial in finished[:3]))
        raise TrainingError(f"{folder}: no trial is complete:\n{reasons}")
    best, path = study.best_trial, folder / "best.json"
    form = plan.variant(best.params).config.to_dict()
    del form["seed"], form["eval_episodes"]  # the user trains other seeds, and evaluates those
    write_atomically(path, (json.dumps(form, indent=2) + "\n").encode())
    return TuneResult(folder=folder, trials=trials, best=best.number, value=float(best.value or 0.0), config=path)
