"""``gym_dr.tune``: searches options with Optuna, and ends in a file that ``gymdr train`` takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import as_path, needs
from gym_dr.runs.launch import Launch
from gym_dr.runs.terminal import explain_interrupt

if TYPE_CHECKING:
    from gym_dr.studies.tune import TuneResult

PAGE = "tune.html"


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
