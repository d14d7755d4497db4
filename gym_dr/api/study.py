"""``gym_dr.study``: trains variants x seeds from one file, evaluates them on the same draws and compares them."""

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
