"""``gym_dr.study`` and ``gym_dr.tune``: many trainings from one file, compared, or searched for good options."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import as_path, needs
from gym_dr.evaluation.evaluate import playing
from gym_dr.runs.environments import source_of
from gym_dr.runs.launch import Launch
from gym_dr.runs.session import show_results
from gym_dr.runs.terminal import explain_interrupt
from gym_dr.studies.folder import study_runs, train_missing
from gym_dr.studies.plan import read_study

if TYPE_CHECKING:
    from gym_dr.studies.results import StudyResult
    from gym_dr.studies.tune import TuneResult

PAGE = "tune.html"


def study(
    study: str | Path | Mapping[str, Any],
    *,
    output: str | Path,
    launcher: str = "local",
    workers: int | None = None,
    num_threads: int | None = None,
    ray_address: str | None = None,
    overwrite: Collection[str] = (),
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> StudyResult:
    """Trains the variants of a study with all of its seeds, evaluates them on the same draws and compares them.

    Existing results are kept: the same call continues a study that was stopped or killed, to the same files, and trains
    only new variants and seeds. A run that fails does not stop the others. A script that registers its own environment
    must call this under ``if __name__ == "__main__":``, since each run's process runs the script.

    Example:
        >>> found = gym_dr.study("examples/studies/lander.toml", output="runs/pay")
        >>> found.comparisons.query("statistic == 'mean' and p_holm < 0.05")

    Args:
        study: A TOML or JSON file, or a mapping of the same content; docs/guides/studies.md describes the format.
        output: Folder of the study.
        launcher: Where runs train: "local" or "ray".
        workers: Runs in parallel on this machine; None for one per core, or fewer that have ``num_threads``.
        num_threads: Threads of each run, and of the evaluation; see ``gym_dr.train``.
        ray_address: Address of a running Ray cluster; None starts one on this machine.
        overwrite: Variants that were edited after their training, to train again.
        trust: Modules that the file may import.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command line, recorded in the folder.

    Returns:
        The results, the evaluation behind them, and the missing runs.

    Raises:
        UnknownNameError: A key, variant, setting, environment, preset or parameter is unknown.
        ConfigError: The study cannot be used, or a variant was edited after its training.
        RandomizationError: A range is impossible.
        RunFolderError: The folder holds something else, or cannot be written.
        BusyFolderError: Another process is working on the study.
        TrainingError: No run could be trained.
        Interrupted: A signal stopped the study.
    """
    needs("A report", "report", "jinja2", "plotly")
    from gym_dr.reports.assemble import assemble  # heavy, as those below
    from gym_dr.reports.comparison import Comparison, Group
    from gym_dr.reports.page import write_report
    from gym_dr.studies.results import evaluate_runs

    how = Launch(launcher=launcher, workers=workers, num_threads=num_threads, ray_address=ray_address)
    plan, folder = read_study(study, trust), as_path(output)
    message = "Stopped. Run the same command, or make the same call, to go on."
    with explain_interrupt(message), study_runs(folder, plan, overwrite, command) as runs:
        # the environment's source was already imported when the study was read
        missing = train_missing(runs, how, trust=[source_of(plan.env)], display="bar" if progress else "nothing")
        with playing(progress, plan.sets, num_threads=num_threads) as display:
            found = evaluate_runs(plan, folder, runs, missing, command=command, progress=display)
            groups = [Group(name=name, policies=tuple(of.values())) for name, of in found.policies.items()]
            page = assemble(
                Comparison(groups=groups, evaluation=found.evaluation),
                command,
                compared=(found.findings, found.tables[1:]),
            )
            names = " and ".join(found.policies) if len(groups) < 3 else f"{len(groups)} variants"
            write_report(dataclasses.replace(page, title=f"Study: {names} on {plan.env}"), folder / "report.html")
        for run in runs:
            if run.name not in missing:
                show_results(run.folder, run.config, found.evaluation.statistics(run.name))
    return found


def tune(
    tuning: str | Path | Mapping[str, Any],
    *,
    output: str | Path,
    workers: int | None = None,
    num_threads: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> TuneResult:
    """Searches options of an algorithm with Optuna, and writes the best ones to ``best.json`` in the folder.

    A trial trains a run for each seed of the file, one after another. Its value is the mean return over their
    evaluation episodes. The same call continues a tuning that was stopped or killed; interrupted trials begin anew. A
    script that registers its own environment must call this under ``if __name__ == "__main__":``, since workers run it.

    Example:
        >>> found = gym_dr.tune("examples/tune/cart_pole.toml", output="runs/tuned")
        >>> run = gym_dr.train("ppo", config=found.config, seed=1)

    Args:
        tuning: A TOML or JSON file, or a mapping of the same content; docs/guides/tune.md describes the format.
        output: Folder of the tuning.
        workers: Trials in parallel on this machine; None for one per core, or fewer that have ``num_threads``. With 1,
            the same call gives the same trials.
        num_threads: Threads of each trial; see ``gym_dr.train``.
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
    needs("Tuning", "tune", "optuna", "plotly")
    from gym_dr.reports.tuning import write_tuning_page  # heavy, as those below
    from gym_dr.studies.tune import claimed_tuning, search
    from gym_dr.studies.tune_file import read_tuning

    how = Launch(workers=workers, num_threads=num_threads)
    plan, folder = read_tuning(tuning, trust), as_path(output)
    message = "Stopped. Run the same command, or make the same call, to go on."
    with claimed_tuning(folder, plan), explain_interrupt(message):
        found = search(tuning, plan, folder, how, command=command, progress=progress)
        write_tuning_page(found, plan.head.algorithm, folder / PAGE)
    return found
