"""``gym_dr.train``: trains a run, or one for each of several seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from gym_dr.api.run import Run, Runs, check_callback, train_and_evaluate, train_seeds
from gym_dr.errors import ConfigError, GymDrError, Interrupted, LostRunError, as_path
from gym_dr.options import plain
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.config import OpenedRun, check_device, check_not_reserved, with_total_steps
from gym_dr.runs.configure import build_config
from gym_dr.runs.create import default_folder, make_folders
from gym_dr.runs.environments import source_of
from gym_dr.runs.launch import Launch
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.session import TrainingCallback
from gym_dr.training.registry import find_algorithm


def train(
    algorithm: str,
    *,
    run_dir: str | Path | None = None,
    seeds: Sequence[int] | None = None,
    launcher: str = "local",
    workers: int | None = None,
    num_threads: int | None = None,
    ray_address: str | None = None,
    config: str | Path | None = None,
    trust: Collection[str] = (),
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    total_steps: int | None = None,
    overwrite: bool = False,
    progress: bool = True,
    callback: TrainingCallback | None = None,
    command: str = "",
    **options: Any,
) -> Run | Runs:
    """Trains an algorithm as ``gymdr train`` does, into a run folder with plots and an evaluation at the end.

    An interrupt (Ctrl-C, or a notebook's stop button) stops training after the current update;
    ``load_run(...).resume()`` continues it. A script that registers its own environment and trains several ``seeds``
    must call this under ``if __name__ == "__main__":``, since each seed's process runs the script.

    Example:
        >>> run = gym_dr.train("a2c", run_dir="runs/gusty", seed=1, randomize={"wind_power": (0, 20)}, gamma=0.99)
        >>> run.evaluation.summary
        >>> gym_dr.train("ppo", callback=lambda row: row["return_mean"] > 200)  # until it lands

    Args:
        algorithm: Name of the algorithm, as in ``gymdr list algorithms``.
        run_dir: Folder of the run; None for a new one in ``runs/``, named after environment, algorithm and seed.
        seeds: Several seeds, a run for each.
        launcher: Where several seeds train: "local" or "ray".
        workers: Seeds in parallel on this machine; None for one per core, or fewer that have ``num_threads``.
        num_threads: Threads of native environments and compiled learners, on which results do not depend; None for one
            per core, divided by the seeds in parallel. A task on Ray has one.
        ray_address: Address of a running Ray cluster; None starts one on this machine.
        config: A TOML or JSON file with settings; keywords override it, and it overrides the defaults.
        trust: Modules that the file may import.
        randomization: A preset, a mapping, a ``Randomization`` or a file; None for that of ``config``, or else
            "default".
        randomize: Rules for single parameters, such as ``{"gravity": Uniform(-12, -2)}``, added to ``randomization`` if
            there is one; otherwise no other parameter varies.
        total_steps: Environment steps to train for, in place of ``updates``, rounded up to whole updates.
        overwrite: Whether to replace an existing run in the folder.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        callback: Called after each update with its row of ``metrics.csv``, such as ``{"update": 0, "steps": 2048,
            "return_mean": -180.0, ...}``. If it returns True, the run ends: the update is saved, plotted and evaluated.
            ``Run.resume`` trains the other updates, with new episodes. Not with ``seeds``, which train in processes.
        command: The command line, recorded in the run folder; ``overwrite`` replaces one of ``gymdr`` only.
        **options: Settings of the run (``env``, ``seed``, ``num_envs``, ...) and options of the algorithm and the
            sampler; ``gymdr train NAME --help`` lists them.

    Returns:
        The ``Run``, or ``Runs`` with ``seeds``.

    Raises:
        UnknownNameError: The algorithm, an option, the environment, a preset or a parameter is unknown.
        ConfigError: A value has the wrong type or is out of range, a seed is reserved, or the file cannot be used.
        RandomizationError: A range is impossible.
        RunFolderError: The folder is not free or cannot be written.
        TrainingError: Training cannot continue.
        Interrupted: A signal stopped the training; the message says how to continue.
    """
    load_plugins()
    found = find_algorithm(algorithm)
    seeds = None if seeds is None else [plain(seed) for seed in seeds]
    how = Launch(launcher=launcher, workers=workers, num_threads=num_threads, ray_address=ray_address)
    _check_seeds(seeds, options, how)
    check_callback(callback, seeds)
    each = [options] if seeds is None else [{**options, "seed": seed} for seed in seeds]
    configs = [
        build_config(found, one, config=config, trust=trust, randomization=randomization, randomize=randomize)
        for one in each
    ]
    for one in configs:
        check_not_reserved("`seed`", [one.settings.seed], one.settings.reserved_seeds)
    if total_steps is not None:
        if "updates" in options:
            raise ConfigError("Expected `updates` or `total_steps`, got both.")
        configs = [with_total_steps(one, total_steps) for one in configs]
    check_device(configs[0].settings.device)
    check_loggers(configs[0].settings.loggers)
    root = as_path(run_dir or default_folder(configs[0], several=seeds is not None))
    folders = make_folders(root, configs, several=seeds is not None, overwrite=overwrite, command=command)
    runs = [OpenedRun(folder=folder, config=one, algorithm=found) for folder, one in zip(folders, configs, strict=True)]
    try:
        if seeds is None:
            train_and_evaluate(
                runs[0],
                resume=False,
                display="bar" if progress else "nothing",
                callback=callback,
                num_threads=num_threads,
            )
            return Run(runs[0])
        trusted = [source_of(configs[0].settings.env)]  # already imported
        train_seeds(folders, root, how, trust=trusted, progress=progress)
        return Runs(root, [Run(one) for one in runs], trusted)
    except (LostRunError, Interrupted):
        raise  # keep runs that have not started: gymdr resume starts them
    except (GymDrError, KeyboardInterrupt):  # Ctrl-C before its handler is set, as while torch is imported
        for folder in folders:
            folder.discard_if_unused()
        raise


def _check_seeds(seeds: Sequence[int] | None, options: Mapping[str, Any], how: Launch) -> None:
    """Checks the seeds, and that there are seeds for the options of several."""
    if seeds is None:
        for name, value in vars(how).items():
            if name != "num_threads" and value != getattr(Launch, name):
                raise ConfigError(f"`{name}`: expected with `seeds`, got none.")
        return
    if "seed" in options:
        raise ConfigError("Expected `seed` or `seeds`, got both.")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"`seeds`: expected distinct seeds, got {','.join(map(str, seeds)) or 'none'}.")
