"""``gym_dr.tune``: searches options with Optuna, and ends in a file that ``gymdr train`` takes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import os
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from filelock import FileLock

from gym_dr.errors import BusyFolderError, ConfigError, LostRunError, RunFolderError, TrainingError
from gym_dr.experiments.launch import call_in_processes
from gym_dr.experiments.progress import Progress
from gym_dr.randomization.files import read_table
from gym_dr.runs.config import SETTINGS, check_device, differences
from gym_dr.runs.configure import build_config
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.folder import RunFolder, seed_name
from gym_dr.runs.lock import FolderLock
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.plain import refuse_links
from gym_dr.runs.stopping import StopRequest, explain_interrupt, stop_signals
from gym_dr.studies.tune_file import Tuning, read_tuning
from gym_dr.wording import counted

if TYPE_CHECKING:
    import optuna
    import pandas as pd

FORMAT, VERSION = "gym_dr tuning", 1
DOCUMENT, STORAGE, RUNS, TRIALS, BEST, PAGE = "tune.json", "optuna.db", "runs", "trials.csv", "best.toml", "tune.html"
CLAIMS = ".claims"  # locked while a process takes its next trial, or writes what came out
REPORTS = 10  # of a run's training return, at each of which the trial may be pruned
PATIENCE = 60.0  # s to wait for other processes' writes into a file of SQLite


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
    """Searches options of an algorithm with Optuna; the best ones are then in ``best.toml`` in the folder.

    A trial trains a run for each seed of the file, one after another. Its value is the mean return of evaluation
    episodes over them. The same call continues a tuning that was stopped or killed, and several processes may work on
    one folder at once. Scripts must call this under ``if __name__ == "__main__":``, since workers import the script.

    Example:
        >>> found = gym_dr.tune("examples/tune/cart_pole.toml", output="runs/tuned")
        >>> run = gym_dr.train("ppo", config=found.config, seed=1)

    Args:
        tuning: A TOML or JSON file, or a mapping of the same content; docs/guides/tune.md describes the format.
        output: Folder of the tuning.
        workers: Trials in parallel on this machine; None for one per core. With 1, it gives the same result again.
        trust: Modules that the file may import.
        progress: Whether to print a line for each trial.
        command: The command line, recorded in the folder.

    Raises:
        UnknownNameError: A key, option, environment, preset, parameter, sampler or pruner is unknown.
        ConfigError: A package is missing, the file, a value or the storage cannot be used, or the folder holds another
            tuning.
        RandomizationError: A range is impossible.
        RunFolderError: The folder holds something else, or cannot be written.
        LostRunError: A worker was killed.
        TrainingError: No trial could be completed.
        Interrupted: A signal stopped the tuning.
    """
    from gym_dr.evaluation.report.page import check_installed  # heavy

    check_installed()
    plan = read_tuning(tuning, trust)
    settings = plan.config({}).settings
    check_device(settings.device)
    check_loggers(settings.loggers)
    folder = Path(output)
    _prepare(folder, plan)
    # the module of the environment is imported already
    call = tuning, folder, [plan.env.rpartition(":")[0]], command, progress
    with explain_interrupt("Stopped. Run the same again to continue."):
        with _opened(folder, plan) as search:
            left = plan.trials - sum(trial.state.is_finished() for trial in search.trials)
        if (size := min(workers or os.cpu_count() or 1, left)) > 1:
            _, lost = call_in_processes(_work, {str(number): call for number in range(size)}, size)
            if lost:
                raise LostRunError(f"{folder}: a worker was killed. Run the same again to continue.")
        elif size == 1:
            stop = StopRequest()
            with stop_signals(stop):
                _work(*call, stop)
        with _opened(folder, plan) as search, search.claims:
            return search.finish(command)


# ---- the folder ------------------------------------------------------------------------------------------------------


def _prepare(folder: Path, plan: Tuning) -> None:
    """Makes the folder of a tuning, or checks that it holds this one."""
    choose, path = "choose another `output`", folder / DOCUMENT
    with os_errors(folder):
        names = [child.name for child in folder.iterdir()] if folder.exists() else []
        if path.name not in names and any(name[0] != "." for name in names):
            raise RunFolderError(f"{folder}: already exists and holds no tuning; {choose}.")
        folder.mkdir(parents=True, exist_ok=True)
        runs = [folder / RUNS, *folder.glob(f"{RUNS}/*"), *folder.glob(f"{RUNS}/*/*-*")]
        refuse_links([path, folder / STORAGE, folder / CLAIMS, *runs])
    head, decisive = {"format": FORMAT, "version": VERSION}, json.loads(json.dumps(plan.decisive))
    with FileLock(folder / CLAIMS):
        if not path.exists():
            form = {**head, "id": uuid.uuid4().hex, **decisive}
            write_atomically(path, (json.dumps(form, indent=2) + "\n").encode())
    saved = read_table(path)
    if {**saved, **head} != saved or not {"id", *decisive} <= saved.keys():
        raise RunFolderError(f"{path}: expected a {FORMAT}, version {VERSION}; {choose}.")
    changes = differences(saved["config"], plan.config({}))
    changes += [f"{name} was changed" for name in ("search", "evaluation") if saved[name] != decisive[name]]
    if changes:
        raise ConfigError(
            f"{folder}: holds another tuning, with whose trials new ones could not be compared: {', '.join(changes)}. "
            f"Change it back, or {choose}."
        )


@contextlib.contextmanager
def _opened(folder: Path, plan: Tuning) -> Iterator[_Search]:
    """Opens the storage. The study in it is named after the folder's id, so that folders never share trials."""
    import optuna
    from sqlalchemy import engine, exc

    file = engine.URL.create("sqlite", database=str((folder / STORAGE).resolve())).render_as_string()
    options = {} if plan.storage else {"connect_args": {"timeout": PATIENCE}}
    claims, name = FileLock(folder / CLAIMS), f"gym_dr {read_table(folder / DOCUMENT)['id']}"
    with contextlib.ExitStack() as closing:
        try:
            with claims:
                storage = optuna.storages.RDBStorage(plan.storage or file, engine_kwargs=options)
                closing.callback(storage.engine.dispose)
                closing.callback(storage.remove_session)
                study = optuna.create_study(
                    storage=storage, study_name=name, direction="maximize", load_if_exists=True, pruner=plan.pruner()
                )
                if plan.first and not study.get_trials(deepcopy=False):
                    study.enqueue_trial(dict(plan.first))
        except (ImportError, exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            raise ConfigError(f"[optuna]: storage: cannot be used: {str(error).splitlines()[0]}") from None
        yield _Search(plan=plan, folder=folder, study=study, claims=claims)


# ---- trials ----------------------------------------------------------------------------------------------------------


def _work(given: Any, folder: Path, trust: Collection[str], command: str, progress: bool, stop: StopRequest) -> None:
    """Finishes trials until none is left that no other process works on."""
    from gym_dr.experiments.one_run import one_thread  # heavy

    with (
        _opened(folder, read_tuning(given, trust)) as search,
        one_thread(),
        Progress("trial", "lines" if progress else "nothing") as display,
    ):
        while claimed := search.claim():
            trial, lock = claimed
            try:
                stop.check()
                search.finish_trial(trial, command, stop)
            finally:
                lock.release()
            display.note(search.tell_of(trial.number))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """A tuning whose storage is open."""

    plan: Tuning
    folder: Path
    study: optuna.Study
    claims: FileLock

    @property
    def trials(self) -> list[optuna.trial.FrozenTrial]:
        """Those that count; nothing is known of one whose process was killed before it had its params."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name not in ("WAITING", "FAIL")]

    @property
    def best(self) -> optuna.trial.FrozenTrial | None:
        """The complete trial with the highest value."""
        complete = [trial for trial in self.trials if trial.state.name == "COMPLETE"]
        return max(complete, key=lambda trial: trial.value or 0.0, default=None)

    def claim(self) -> tuple[optuna.Trial, FolderLock] | None:
        """The next trial and the lock of its folder: one that a killed process had, or a new one."""
        import optuna

        with self.claims:
            for trial in self.trials:
                if trial.state.name == "RUNNING" and trial.params.keys() != self.plan.search.keys():
                    self.study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
                elif trial.state.name == "RUNNING" and (lock := self._locked(trial.number)):
                    return optuna.Trial(self.study, trial._trial_id), lock
            if len(self.trials) >= self.plan.trials:
                return None
            self.study.sampler = self.plan.sampler(len(self.trials))
            new = self.study.ask(dict(self.plan.search))
            lock = self._locked(new.number)
            return None if lock is None else (new, lock)

    def _locked(self, number: int) -> FolderLock | None:
        """The lock of a trial's folder; None if another process has it."""
        lock = FolderLock(self.folder / RUNS / f"trial-{number}")
        with os_errors(lock.folder), contextlib.suppress(BusyFolderError):
            lock.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            return lock
        return None

    def finish_trial(self, trial: optuna.Trial, command: str, stop: StopRequest) -> None:
        """Trains and evaluates a trial's runs, and saves its value or why it has none."""
        import optuna

        pruned = optuna.trial.TrialState.PRUNED
        try:
            returns = [self._return(trial, number, command, stop) for number in range(len(self.plan.seeds))]
        except optuna.TrialPruned:
            self.study.tell(trial, state=pruned)
        except (TrainingError, ConfigError) as error:
            trial.set_user_attr("reason", str(error))
            self.study.tell(trial, state=pruned)  # from which samplers learn, other than from failed ones
        else:
            trial.set_user_attr("returns", returns)
            self.study.tell(trial, sum(returns) / len(returns))
            with self.claims:
                self._write_best(self.best or self.trials[0])

    def _return(self, trial: optuna.Trial, place: int, command: str, stop: StopRequest) -> float:
        """The mean return of a trial's run with one of the seeds, which is trained unless it is already."""
        import optuna

        from gym_dr.evaluation.evaluate import evaluate_policies
        from gym_dr.experiments.one_run import train_run
        from gym_dr.policies.open import open_runs

        config = self.plan.config(trial.params)
        config = dataclasses.replace(config, settings=dataclasses.replace(config.settings, seed=self.plan.seeds[place]))
        run = RunFolder(self.folder / RUNS / f"trial-{trial.number}" / seed_name(config.settings.seed))
        if not run.config.exists():
            RunFolder.create(run.path, config.to_json(), overwrite=False, command=command)
        elif changes := differences(RunFolder.open(run.path).read_config(), config):
            raise RunFolderError(f"{run.path}: is not of this trial, whose {', '.join(changes)}. Remove it.")
        reported = {*self.study.get_trials(deepcopy=False)[trial.number].intermediate_values}  # by a killed process
        judged: set[int] = set()

        def report(row: Mapping[str, float]) -> None:
            number = place * REPORTS + (int(row["update"]) + 1) * REPORTS // config.options.updates
            if number == place * REPORTS or number in judged or math.isnan(row["return_mean"]):  # no episode has ended
                return
            judged.add(number)
            if number not in reported:
                trial.report(row["return_mean"], number)
            if trial.should_prune():
                raise optuna.TrialPruned

        parts = run, config, self.plan.algorithm
        if not run.plots.exists():  # which come last
            train_run(*parts, resume=True, display="nothing", stop=stop, callback=report)
        policies, cells = open_runs([parts]), self.plan.cells
        found = evaluate_policies(policies, [cells], run.evaluation, progress=lambda *_: stop.check())
        return float(found.returns(cells.name).mean())

    def tell_of(self, number: int) -> str:
        """A line about a trial."""
        row = next(row for row in self._rows() if row["trial"] == number)
        done = sum(trial.state.is_finished() for trial in self.trials)
        best = "" if self.best is None else f", best {self.best.value:.1f}, trial {self.best.number}"
        what = f"{row['value']:.1f}" if row["state"] == "complete" else f"{row['state']} {row['reason']}".rstrip()
        return f"trial {number}: {what} ({done} of {self.plan.trials} done{best})"

    def finish(self, command: str) -> TuneResult:
        """Writes what came out."""
        import pandas as pd  # heavy, as those below

        from gym_dr.evaluation.report.page import write_report
        from gym_dr.evaluation.report.tuning import tuning_report

        if (best := self.best) is None:
            lines = [self.tell_of(trial.number) for trial in self.trials[:3]]
            raise TrainingError("\n".join([f"{self.folder}: no trial is complete.", *lines]))
        table = pd.DataFrame(self._rows())
        write_atomically(self.folder / TRIALS, table.to_csv(index=False).encode())
        *texts, train = self._write_best(best)
        title = f"Tuning: {self.plan.algorithm.name} on {self.plan.env}"
        write_report(tuning_report(self.study, table, title, texts, train, command), self.folder / PAGE)
        value = float(best.value or 0.0)
        return TuneResult(folder=self.folder, trials=table, best=best.number, value=value, config=self.folder / BEST)

    def _rows(self) -> list[dict[str, Any]]:
        """What is known of each trial."""
        rows = []
        for trial in self.trials:
            reason, state = trial.user_attrs.get("reason", ""), trial.state.name.lower()
            value = trial.value if state == "complete" else math.nan  # a pruned one has that of its last report
            returns = trial.user_attrs.get("returns", [math.nan] * len(self.plan.seeds))
            each = {seed_name(seed): one for seed, one in zip(self.plan.seeds, returns, strict=True)}
            head = {"trial": trial.number, "state": "failed" if reason else state, "value": value}
            rows.append({**head, **each, **trial.params, "reason": reason})
        return rows

    def _write_best(self, best: optuna.trial.FrozenTrial) -> list[str]:
        """Writes what differs from the defaults in the best trial; returns its comment, a command at the end."""
        plan, path, config = self.plan, self.folder / BEST, self.plan.config(best.params)
        form, name, sampler = config.to_dict(), plan.algorithm.name, config.settings.sampler
        usual = build_config(plan.algorithm, {"env": plan.env}, randomization="none").to_dict() | {sampler: {}}
        content: dict[str, Any] = {"algorithm": name, "env": plan.env, "randomization": form["randomization"] or "none"}
        names = [one for one in SETTINGS if one not in ("env", "seed", "eval_episodes")]
        content |= {one: form[one] for one in names if form[one] != usual[one]}
        for table in {name, sampler} & form.keys():
            options = form[table].items()
            content[table] = {one: value for one, value in options if value not in (None, usual[table].get(one))}
        chosen = ", ".join(f"{one} {value}" for one, value in best.params.items())
        done = sum(trial.state.is_finished() for trial in self.trials)
        seed = next(number for number in itertools.count(1) if number not in config.settings.reserved_seeds)
        texts = [
            f"Trial {best.number} is the best: {best.value:.1f} with {chosen}.",
            f"{counted(done, 'trial')}, each trained with seeds {', '.join(map(str, plan.seeds))}.",
            f"A value is the mean return of {counted(plan.cells.num_episodes, 'episode')} on {plan.cells.name} a seed. "
            "Other seeds will return less: the trial was chosen on these.",
            f"gymdr train {name} --config {path} --seed {seed}",
        ]
        comment = "".join(f"# {line}\n" for line in texts)
        write_atomically(path, f"{comment}\n{tomli_w.dumps(content)}".encode())
        return texts
