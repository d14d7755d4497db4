"""``gym_dr.study``: trains variants x seeds from one file, evaluates them on the same draws and compares them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import ConfigError, RunFolderError, TrainingError, check_known
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.config import OpenedRun, RunConfig, check_device, differences
from gym_dr.runs.durable import os_errors, remove_unfinished, write_atomically
from gym_dr.runs.folder import CONFIG, RunFolder, check_seeds, seed_name
from gym_dr.runs.launch import Launch, train_folders
from gym_dr.runs.lock import locked
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.plain import read_plain
from gym_dr.runs.progress import Display, Progress
from gym_dr.runs.run_loggers import show_results
from gym_dr.runs.stopping import explain_interrupt
from gym_dr.studies.plan import FORMAT, VERSION, Study, Variant, read_study
from gym_dr.version import check_written_by
from gym_dr.wording import counted, listed

if TYPE_CHECKING:
    import pandas as pd

    from gym_dr.evaluation.results import Evaluation
    from gym_dr.studies.tables import StudyTables

DOCUMENT, RUNS, EVALUATION = "study.json", "runs", "evaluation"
MAX_DOCUMENT = 2**26  # bytes of ``study.json`` that are read
RESULTS, COMPARISONS, TABLES, TIMES = "results.csv", "comparisons.csv", "tables.md", "times.csv"
PAGE = "report.html"


@dataclass(frozen=True, repr=False, eq=False)
class StudyResult:
    """A study that has been evaluated.

    Attributes:
        folder: Folder of the study.
        tables: Its results.
    """

    folder: Path
    tables: StudyTables

    @property
    def results(self) -> pd.DataFrame:
        """A row for each variant, set and statistic, as in ``results.csv``."""
        return self.tables.results

    @property
    def comparisons(self) -> pd.DataFrame:
        """A row for each difference between variants, set and statistic, as in ``comparisons.csv``."""
        return self.tables.comparisons

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation, with all episodes."""
        return self.tables.evaluation

    @property
    def missing(self) -> Mapping[str, str]:
        """Runs that are not in the tables: "VARIANT/seed-N" -> reason."""
        return self.tables.missing

    def __repr__(self) -> str:
        plan = self.tables.study
        missing = f", {len(self.missing)} runs missing" if self.missing else ""
        names = listed([variant.name for variant in plan.variants])
        return f"StudyResult({str(self.folder)!r}: {names} on {plan.env}, {plan.counts} each{missing})"

    def _repr_html_(self) -> str:
        """All tables, for notebooks."""
        return "\n".join(table.__html__() for table in self.tables.tables)


@dataclass(frozen=True)
class _StudyRun:
    """One run of a study, trained or not."""

    variant: Variant
    seed: int
    folder: RunFolder

    @property
    def name(self) -> str:
        return f"{self.variant.name}/{seed_name(self.seed)}"

    @property
    def config(self) -> RunConfig:
        return self.variant.with_seed(self.seed)

    @property
    def exists(self) -> bool:
        return bool(self.folder.config.exists())

    def changes(self) -> list[str]:
        """How the run in the folder differs from the study."""
        return differences(self.folder.read_config(), self.config) if self.exists else []

    @property
    def finished(self) -> bool:
        """Whether the run is trained; its plots come last."""
        return bool(self.folder.plots.exists() and updates_saved(self.folder) == self.config.options.updates)


def study(
    study: str | Path | Mapping[str, Any],
    *,
    output: str | Path,
    launcher: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    overwrite: Collection[str] = (),
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> StudyResult:
    """Trains the variants of a study with all of its seeds, evaluates them on the same draws and compares them.

    Existing results are kept: the same call continues a study that was stopped or killed and ends with the same files,
    and a new variant or seed trains only that. A run that fails does not stop the others. Scripts must call this under
    ``if __name__ == "__main__":``, since each run's process imports the script.

    Example:
        >>> found = gym_dr.study("examples/studies/lander.toml", output="runs/pay")
        >>> found.comparisons.query("statistic == 'mean' and p_holm < 0.05")

    Args:
        study: A TOML or JSON file, or a mapping of the same content; docs/guides/studies.md describes the format.
        output: Folder of the study.
        launcher: Where runs train: "local" or "ray".
        workers: Runs in parallel on this machine; None for one per core.
        ray_address: Address of a running Ray cluster; None starts one on this machine.
        overwrite: Variants that were edited after their training, to train again.
        trust: Modules that the file may import.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command line, recorded in the folder.

    Returns:
        The tables, the evaluation behind them, and the missing runs.

    Raises:
        UnknownNameError: A key, variant, setting, environment, preset or parameter is unknown.
        ConfigError: The study cannot be used, or a variant was edited after its training.
        RandomizationError: A range is impossible.
        RunFolderError: The folder holds something else, or cannot be written.
        BusyFolderError: Another process is working on the study.
        TrainingError: No run could be trained.
        Interrupted: A signal stopped the study.
    """
    from gym_dr.reports.page import check_installed  # heavy

    check_installed()
    how = Launch(launcher=launcher, workers=workers, ray_address=ray_address)
    plan = read_study(study, trust)
    for name in overwrite:
        check_known("variant", name, plan.budgets)
    for variant in plan.variants:
        check_device(variant.config.settings.device)
        check_loggers(variant.config.settings.loggers)
    folder = Path(output)
    _check_folder(folder, plan)
    with os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with (
        locked(folder),
        explain_interrupt("Stopped. Run the same command, or make the same call, to go on."),
    ):
        _check_folder(folder, plan)  # again: another process may have changed it
        remove_unfinished(folder, folder / EVALUATION)
        runs = [
            _StudyRun(variant, seed, RunFolder(folder / RUNS / variant.name / seed_name(seed)))
            for seed in plan.seeds  # all variants with the first seed come first
            for variant in plan.variants
            if seed in plan.seeds_of[variant.name]
        ]
        edited = _check_edits(runs, overwrite)
        write_atomically(folder / DOCUMENT, (json.dumps(plan.to_dict(), indent=2) + "\n").encode())
        for run in runs:
            if not run.exists or run.name in edited:
                form, replaced = run.config.to_json(), run.exists
                RunFolder.create(run.folder.path, form, overwrite=replaced, command=command)
            elif run.folder.read_config().get("loggers", []) != list(run.config.settings.loggers):
                write_atomically(run.folder.config, run.config.to_json().encode())  # all else is the same
        missing = _train(plan, runs, how, display="bar" if progress else "nothing")
        done = {v.name: [run for run in runs if run.variant is v and run.name not in missing] for v in plan.variants}
        done = {name: found for name, found in done.items() if found}
        if not done:
            lines = "\n".join(f"  {name}: {reason}" for name, reason in missing.items())
            raise TrainingError(f"{folder}: no run could be trained:\n{lines}")
        return _evaluate(plan, folder, done, missing, command, progress)


# ---- the folder ------------------------------------------------------------------------------------------------------


def _check_folder(folder: Path, plan: Study) -> None:
    """Checks that a folder is free for the study or holds it; changes nothing."""
    choose = "choose another `output`"
    with os_errors(folder, "read"):
        if folder.exists() and not folder.is_dir():
            raise RunFolderError(f"{folder}: is a file; {choose}.")
        if not (folder / DOCUMENT).exists():
            if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
                raise RunFolderError(f"{folder}: already exists and holds no study; {choose}.")
            return
        _check_links(folder, plan)
        try:
            there = json.loads(read_plain(folder / DOCUMENT, MAX_DOCUMENT))
            found = there["format"], there["version"]
            env, variants = str(there["env"]), set(there["variants"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunFolderError(f"{folder / DOCUMENT}: is not a gym_dr study ({error!r}); {choose}.") from None
    check_written_by(folder / DOCUMENT, there)
    if found != (FORMAT, VERSION):
        raise RunFolderError(f"{folder / DOCUMENT}: expected {FORMAT}, version {VERSION}, got {found}; {choose}.")
    if env != plan.env or not variants & set(plan.budgets):
        raise RunFolderError(f"{folder}: holds another study, {', '.join(sorted(variants))} on {env}; {choose}.")


def _check_links(folder: Path, plan: Study) -> None:
    """Checks that nothing in a study's folder, which may be a stranger's, leads elsewhere."""
    runs = [folder / RUNS / name / seed_name(seed) for name, seeds in plan.seeds_of.items() for seed in seeds]
    check_seeds(folder, [folder / DOCUMENT, folder / RUNS, *dict.fromkeys(run.parent for run in runs), *runs])
    for run in runs:
        if (run / CONFIG).exists():
            RunFolder.open(run)  # checks its files


def _check_edits(runs: Sequence[_StudyRun], overwrite: Collection[str]) -> set[str]:
    """Rejects variants that were edited after their training; returns the names of runs to overwrite."""
    edited = [(run, changes) for run in runs if (changes := run.changes())]
    refused = {run.variant.name: changes for run, changes in edited if run.variant.name not in overwrite}
    lines = [
        f"  {name}: {', '.join(changes)}. Give it another name, or train it again: `overwrite={[name]}`"
        for name, changes in refused.items()
    ]
    if lines:
        raise ConfigError("\n".join(["Variants were edited after their training:", *lines]))
    return {run.name for run, _ in edited}


# ---- training --------------------------------------------------------------------------------------------------------


def _train(plan: Study, runs: Sequence[_StudyRun], how: Launch, *, display: Display) -> dict[str, str]:
    """Trains missing runs; returns those that are still missing, and why."""
    waiting = [run for run in runs if not run.finished]
    if not waiting:
        return {}
    budgets = ", ".join(dict.fromkeys(f"{steps:,}" if steps else "by episodes" for steps in plan.budgets.values()))
    equal = "equal" if plan.same_budget() else "unequal"
    what = f"{counted(len(plan.variants), 'variant')} x {plan.counts}"
    done = f"{len(runs) - len(waiting)} of {counted(len(runs), 'run')} trained"
    for note in (*plan.notes, f"{what}, {done}; {equal} budgets of environment steps: {budgets}"):
        Progress("run", display).note(note)
    trust = [plan.env.rpartition(":")[0]]  # already imported when the study was read
    failed = train_folders([run.folder for run in waiting], how, trust=trust, display=display)
    left = [run for run in waiting if str(run.folder.path) in failed or not run.finished]
    return {run.name: str(failed.get(str(run.folder.path), "not finished")) for run in left}


# ---- evaluation ------------------------------------------------------------------------------------------------------


def _evaluate(
    plan: Study,
    folder: Path,
    done: Mapping[str, Sequence[_StudyRun]],
    missing: Mapping[str, str],
    command: str,
    progress: bool,
) -> StudyResult:
    """Plays missing episodes and writes tables, pictures and the page."""
    from gym_dr.evaluation.evaluate import evaluate_policies, playing  # heavy, as those below
    from gym_dr.policies.open import open_runs
    from gym_dr.reports.assemble import assemble
    from gym_dr.reports.comparison import Comparison, Group
    from gym_dr.reports.page import write_report
    from gym_dr.studies.tables import StudyTables

    trained = [run for found in done.values() for run in found]
    opened = open_runs(
        [OpenedRun(folder=run.folder, config=run.config, algorithm=run.variant.algorithm) for run in trained]
    )
    policies = [
        dataclasses.replace(policy, name=run.name, reference=run.variant.name in plan.references)
        for policy, run in zip(opened, trained, strict=True)
    ]
    place = folder / EVALUATION
    with playing(progress) as display:
        evaluation = evaluate_policies(
            policies, plan.sets, place, success=plan.success, only=True, command=command, progress=display
        )
        seeds = {name: [run.seed for run in found] for name, found in done.items()}
        tables = StudyTables(study=plan, evaluation=evaluation, runs=seeds, missing=missing)
        written = {RESULTS: tables.results, COMPARISONS: tables.comparisons, TIMES: _times(trained)}
        for name, table in written.items():
            write_atomically(folder / name, table.to_csv(index=False).encode())
        write_atomically(folder / TABLES, tables.markdown().encode())
        by_name = {policy.name: policy for policy in policies}
        groups = [Group(name=n, policies=tuple(by_name[run.name] for run in found)) for n, found in done.items()]
        comparison = Comparison(groups=groups, evaluation=evaluation)
        page = assemble(comparison, command, compared=(tables.findings, tables.tables))
        names = " and ".join(done) if len(done) < 3 else f"{len(done)} variants"
        write_report(dataclasses.replace(page, title=f"Study: {names} on {plan.env}"), folder / PAGE)
        for run in trained:
            show_results(run.folder, run.config, evaluation.statistics(run.name))
    return StudyResult(folder, tables)


def _times(runs: Sequence[_StudyRun]) -> pd.DataFrame:
    """A row for each run: its environment steps, without reset steps, and its training time."""
    import pandas as pd  # heavy

    from gym_dr.runs.metrics import read_metrics

    rows = []
    for run in runs:
        last = read_metrics(run.folder).iloc[-1]
        head = {"variant": run.variant.name, "seed": run.seed, "budget": run.variant.budget}
        rows.append({**head, "steps": int(last["steps"]), "seconds": float(last["seconds"])})
    return pd.DataFrame(rows)
