"""``gym_dr.tune``: searches options with Optuna, and ends in a file that ``gymdr train`` takes."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.compiled.threads import usable_threads
from gym_dr.errors import ConfigError, LostRunError, RunFolderError, TrainingError
from gym_dr.randomization.files import read_table
from gym_dr.runs.config import OpenedRun, check_device, differences
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.folder import RunFolder, seed_name
from gym_dr.runs.lock import locked
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.plain import refuse_links
from gym_dr.runs.processes import Command, run_commands, trusting
from gym_dr.runs.progress import Progress
from gym_dr.runs.sources import source_of
from gym_dr.runs.stopping import StopRequest, explain_interrupt, stop_signals
from gym_dr.studies.tune_file import Tuning, read_tuning
from gym_dr.version import WRITTEN_BY, __version__

if TYPE_CHECKING:
    import optuna
    import pandas as pd

FORMAT, VERSION = "gym_dr tuning", 1
DOCUMENT, STORAGE, RUNS, TRIALS, BEST, PAGE = "tune.json", "optuna.db", "runs", "trials.csv", "best.json", "tune.html"
STUDY = "gym_dr"  # its name in the storage
REPORTS = 10  # of a run's training return, at each of which the trial may be pruned
PATIENCE = 60.0  # s to wait for other workers' writes into the storage
ENOUGH = 10  # complete trials, for importances
PLOTS = ("optimization_history", "slice", "parallel_coordinate", "intermediate_values", "param_importances")


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
    trials: pd.DataFrame = dataclasses.field(repr=False)
    best: int
    value: float
    config: Path


def tune(
    tuning: str | Path | Mapping[str, Any],
    *,
    output: str | Path,
    workers: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> TuneResult:
    """Searches options of an algorithm with Optuna; the best ones are then in ``best.json`` in the folder.

    A trial trains a run for each seed of the file, one after another. Its value is the mean return of evaluation
    episodes over them. The same call continues a tuning that was stopped or killed; trials that were interrupted are
    tried again. A script that registers its own environment must call this under ``if __name__ == "__main__":``, since
    each worker runs the script.

    Example:
        >>> found = gym_dr.tune("examples/tune/cart_pole.toml", output="runs/tuned")
        >>> run = gym_dr.train("ppo", config=found.config, seed=1)

    Args:
        tuning: A TOML or JSON file, or a mapping of the same content; docs/guides/tune.md describes the format.
        output: Folder of the tuning.
        workers: Trials in parallel on this machine; None for one per core. With 1, it gives the same result again.
        trust: Modules that the file may import.
        progress: Whether to print a line for each trial.
        command: The command line, recorded in the folders of runs.

    Raises:
        UnknownNameError: A key, option, environment, preset, parameter, sampler or pruner is unknown.
        ConfigError: A package is missing, the file or a value cannot be used, or the folder holds another tuning.
        RandomizationError: A range is impossible.
        RunFolderError: The folder holds something else, or cannot be written.
        BusyFolderError: Another process is working on the tuning.
        LostRunError: A worker was killed.
        TrainingError: No trial could be completed.
        Interrupted: A signal stopped the tuning.
    """
    from gym_dr.reports.page import check_installed  # heavy

    check_installed()
    plan = read_tuning(tuning, trust)
    settings = plan.config({}).settings
    check_device(settings.device)
    check_loggers(settings.loggers)
    folder = Path(output)
    _prepare(folder, plan)
    message = "Stopped. Run the same command, or make the same call, to go on."
    with locked(folder), explain_interrupt(message):
        with _opened(folder, plan) as study:
            _enqueue(study, plan)
            left = plan.trials - len(_finished(study))
        size = min(workers or usable_threads(), left)
        shares = [
            Share(worker=i, count=left // size + (i < left % size), command=command, progress=progress)
            for i in range(size)
        ]
        # the module of the environment is imported already
        trusted = [source_of(plan.env)]
        if size == 1:
            try_trials(tuning, folder, shares[0], trusted)
        elif shares:
            _try_in_processes(tuning, folder, shares, trusted)
        with _opened(folder, plan) as study:
            return _finish(study, plan, folder)


# ---- folder and storage ----------------------------------------------------------------------------------------------


def _prepare(folder: Path, plan: Tuning) -> None:
    """Makes the folder of a tuning, or checks that it holds this one."""
    path = folder / DOCUMENT
    head, decisive = {"format": FORMAT, "version": VERSION}, json.loads(json.dumps(plan.decisive))
    with os_errors(folder):
        if not path.exists():
            if folder.exists() and any(child.name[0] != "." for child in folder.iterdir()):
                raise RunFolderError(f"{folder}: already exists and holds no tuning; choose another `output`.")
            folder.mkdir(parents=True, exist_ok=True)
            form = {**head, WRITTEN_BY: __version__, **decisive}
            write_atomically(path, (json.dumps(form, indent=2) + "\n").encode())
        refuse_links([path, folder / STORAGE, folder / RUNS, *folder.glob(f"{RUNS}/*"), *folder.glob(f"{RUNS}/*/*-*")])
    saved = read_table(path)
    if {**saved, **head} != saved or not decisive.keys() <= saved.keys():
        raise RunFolderError(f"{path}: expected a {FORMAT}, version {VERSION}; choose another `output`.")
    changes = differences(saved["config"], plan.config({}))
    changes += [f"{name} was changed" for name in ("search", "evaluation") if saved[name] != decisive[name]]
    if changes:
        raise ConfigError(
            f"{folder}: holds another tuning, with whose trials new ones could not be compared: {', '.join(changes)}. "
            "Change it back, or choose another `output`."
        )


@contextlib.contextmanager
def _opened(folder: Path, plan: Tuning) -> Iterator[optuna.Study]:
    """Opens Optuna's study, which is in an SQLite file in the folder."""
    import optuna
    from sqlalchemy import engine

    file = engine.URL.create("sqlite", database=str((folder / STORAGE).resolve())).render_as_string()
    storage = optuna.storages.RDBStorage(file, engine_kwargs={"connect_args": {"timeout": PATIENCE}})
    try:
        yield optuna.create_study(
            storage=storage, study_name=STUDY, direction="maximize", load_if_exists=True, pruner=plan.pruner()
        )
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _enqueue(study: optuna.Study, plan: Tuning) -> None:
    """Enqueues the first trial of a new tuning, or those that were interrupted."""
    from optuna.trial import TrialState

    if plan.first and not study.get_trials(deepcopy=False):
        study.enqueue_trial(dict(plan.first))
    for trial in study.get_trials(states=[TrialState.RUNNING]):
        study.tell(trial.number, state=TrialState.FAIL)
        study.enqueue_trial(trial.params)


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that count: all but those that were interrupted or have not begun."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE, TrialState.PRUNED])


# ---- trials ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Share:
    """The trials that one worker makes."""

    worker: int  # its number
    count: int
    command: str  # recorded in the folders of runs
    progress: bool  # whether to print a line for each trial


def try_trials(tuning: str | Path | Mapping[str, Any], folder: Path, share: Share, trust: Collection[str]) -> None:
    """Makes a worker's trials; raises what ``tune`` raises."""
    from gym_dr.runs.train import one_thread  # heavy

    stop = StopRequest()
    display = Progress("trial", "lines" if share.progress else "nothing")
    plan = read_tuning(tuning, trust)
    with stop_signals(stop), one_thread(), _opened(folder, plan) as study:
        for _ in range(share.count):
            stop.check()
            # each trial has random numbers of its own: those of a stream would not be the same after a stop
            study.sampler = plan.sampler(len(_finished(study)), share.worker)
            trial = study.ask(dict(plan.search))
            text = _try(study, trial, plan, folder, share.command, stop)
            display.note(f"trial {trial.number}: {text} ({len(_finished(study))} of {plan.trials} done)")


def _try_in_processes(
    tuning: str | Path | Mapping[str, Any], folder: Path, shares: Sequence[Share], trust: Collection[str]
) -> None:
    """Has each worker make its trials in a process of its own; raises what ``tune`` raises."""
    file = json.dumps(tuning, default=lambda value: value.to_dict()) if isinstance(tuning, Mapping) else str(tuning)
    commands: dict[str, Command] = {
        str(share.worker): [
            *("tune", file, "--output", str(folder), "--share", json.dumps(vars(share))),
            *trusting(trust),
        ]
        for share in shares
    }
    ended = run_commands(commands, len(shares)).values()
    if any(one.code < 0 for one in ended):
        raise LostRunError(f"{folder}: a worker was killed. Run the same command, or make the same call, to go on.")
    if problems := sorted({one.message for one in ended if one.code}):
        raise TrainingError("\n".join(problems))


def _try(study: optuna.Study, trial: optuna.Trial, plan: Tuning, folder: Path, command: str, stop: StopRequest) -> str:
    """Trains and evaluates a trial's runs, and tells Optuna its value; returns it, or why it has none."""
    import optuna

    try:
        returns = [_return(trial, number, plan, folder, command, stop) for number in range(len(plan.seeds))]
    except optuna.TrialPruned:
        reason = "pruned"
    except (TrainingError, ConfigError) as error:
        reason = str(error)
    else:
        study.tell(trial, sum(returns) / len(returns))
        return f"{sum(returns) / len(returns):.1f}"
    trial.set_user_attr("reason", reason)
    study.tell(trial, state=optuna.trial.TrialState.PRUNED)  # from which samplers learn, other than from failed ones
    return reason


def _return(trial: optuna.Trial, place: int, plan: Tuning, folder: Path, command: str, stop: StopRequest) -> float:
    """Trains a trial's run with one of the seeds; returns its mean return."""
    from gym_dr.evaluation.evaluate import evaluate_policies
    from gym_dr.policies.open import open_runs
    from gym_dr.runs.train import train_run, working_on

    config = plan.config(trial.params)
    config = dataclasses.replace(config, settings=dataclasses.replace(config.settings, seed=plan.seeds[place]))
    path = folder / RUNS / f"trial-{trial.number}" / seed_name(config.settings.seed)
    run = RunFolder.create(path, config.to_json(), overwrite=False, command=command)
    opened = OpenedRun(folder=run, config=config, algorithm=plan.algorithm)
    report = _reporter(trial, place, config.options.updates)
    with working_on(opened, new=True, stop=stop) as work:
        train_run(work, resume=False, display="nothing", callback=report)
    found = evaluate_policies(open_runs([opened]), [plan.cells], run.evaluation, progress=lambda *_: stop.check())
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


# ---- what is written -------------------------------------------------------------------------------------------------


def _finish(study: optuna.Study, plan: Tuning, folder: Path) -> TuneResult:
    """Writes the trials, the best options and the page."""
    trials = study.trials_dataframe(attrs=("number", "state", "value", "params", "user_attrs"))
    with os_errors(folder):
        write_atomically(folder / TRIALS, trials.to_csv(index=False).encode())
    if not (trials["state"] == "COMPLETE").any():
        reasons = "\n".join(dict.fromkeys(str(trial.user_attrs.get("reason")) for trial in _finished(study)[:3]))
        raise TrainingError(f"{folder}: no trial is complete:\n{reasons}")
    best, path = study.best_trial, folder / BEST
    form = plan.config(best.params).to_dict()
    del form["seed"], form["eval_episodes"]  # other seeds are to be trained, and then evaluated
    write_atomically(path, (json.dumps(form, indent=2) + "\n").encode())
    value = float(best.value or 0.0)
    title = f"Trial {best.number} is the best: mean return {value:.1f}"
    write_atomically(folder / PAGE, _page(study, title, f"gymdr train {plan.algorithm.name} --config {path}").encode())
    return TuneResult(folder=folder, trials=trials, best=best.number, value=value, config=path)


def _page(study: optuna.Study, title: str, command: str) -> str:
    """Optuna's plots as a page that needs no network."""
    from optuna import visualization

    names = PLOTS if len(study.get_trials(deepcopy=False)) >= ENOUGH else PLOTS[:-1]
    figures = [getattr(visualization, f"plot_{name}")(study) for name in names]
    plots = [figure.to_html(full_html=False, include_plotlyjs=not index) for index, figure in enumerate(figures)]
    head = f"<meta charset='utf-8'><title>{html.escape(title)}</title>"
    return "\n".join([head, f"<h1>{html.escape(title)}</h1>", f"<pre>{html.escape(command)}</pre>", *plots])
