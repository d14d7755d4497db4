"""``gym_dr.train``: a run, or one for each of several seeds, from options to results."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, GymDrError, LostRunError
from gym_dr.experiments.configure import resolve_config
from gym_dr.experiments.launch import aggregate_runs, check_launcher, launch
from gym_dr.experiments.run import Run, Runs
from gym_dr.plugins.manager import load_plugins
from gym_dr.randomization.presets import preset_of
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.runs.config import RunConfig, check_device
from gym_dr.runs.environments import param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.training.registry import find_algorithm


def train(
    algorithm: str,
    *,
    run_dir: str | Path | None = None,
    seeds: Sequence[int] | None = None,
    launcher: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    config: str | Path | None = None,
    trust: Collection[str] = (),
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: bool = True,
    command: str = "",
    **options: Any,
) -> Run | Runs:
    """Trains an algorithm as ``gymdr train`` does: into a run folder, with plots and an evaluation at the end.

    An interrupt (Ctrl-C, or a notebook's stop button) ends it after the update under way; ``load_run(...).resume()``
    goes on. A script that trains several ``seeds`` calls this under ``if __name__ == "__main__":``, since each seed's
    process imports the script.

    Example:
        >>> run = gym_dr.train("a2c", run_dir="runs/wind", seed=1, randomize={"wind_power": (0, 20)}, gamma=0.99)
        >>> run.evaluation.summary

    Args:
        algorithm: Its name, as in ``gymdr list algorithms``.
        run_dir: The run's own folder; None for one in ``runs/`` that is named after what is trained.
        seeds: Several seeds, a run for each.
        launcher: What trains several seeds: "local" or "ray".
        workers: Seeds at a time on this machine; None for one a core.
        ray_address: Of a running Ray cluster; None starts one on this machine.
        config: A TOML or JSON file with settings; keywords override it, and it overrides the defaults.
        trust: Modules that the file may have imported.
        randomization: As an environment takes it: a preset, a mapping, a ``Randomization`` or a file; None for the
            file's, or else "default".
        randomize: Rules for single parameters, such as ``{"gravity": Uniform(-12, -2)}``; put over ``randomization`` if
            that is given, and else alone.
        overwrite: Whether a run that is in the folder already is replaced.
        progress: Whether to show it: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command that asked for the training, recorded in the run folder.
        **options: Settings of every run (``env``, ``seed``, ``num_envs``, ...) and of the algorithm's configuration;
            ``gymdr train NAME --help`` lists them.

    Returns:
        The ``Run``; with ``seeds`` the ``Runs``.

    Raises:
        UnknownNameError: The algorithm, an option, the environment, a preset or a parameter is unknown.
        ConfigError: A value has the wrong type or is out of range, or the file cannot be used.
        RandomizationError: A range is impossible.
        RunFolderError: The folder is taken or cannot be written.
        TrainingError: Training cannot go on.
        Interrupted: A signal has ended the training; the message says how to go on.
    """
    load_plugins()
    found = find_algorithm(algorithm)
    launching: dict[str, Any] = {"launcher": launcher, "workers": workers, "ray_address": ray_address}
    _check_seeds(seeds, options, launching)
    each = [options] if seeds is None else [{**options, "seed": seed} for seed in seeds]
    configs = [resolve_config(found, given, config, trust, randomization, randomize) for given in each]
    check_device(configs[0].settings.device)
    check_launcher(launcher)
    root = Path(run_dir or _default_folder(configs[0], several=seeds is not None))
    folders = _make_folders(root, configs, several=seeds is not None, overwrite=overwrite, command=command)
    runs = [Run(folder, one, found) for folder, one in zip(folders, configs, strict=True)]
    try:
        if seeds is None:
            from gym_dr.experiments.one_run import train_run  # heavy

            train_run(*runs[0].parts, resume=False, display="bar" if progress else "nothing")
            return runs[0]
        trusted = [configs[0].settings.env.rpartition(":")[0]]  # imported here already, when it was resolved
        launch(folders, **launching, trust=trusted, display="lines" if progress else "nothing")
        aggregate_runs(folders, root)
        return Runs(root, runs, trusted)
    except LostRunError:
        raise  # nothing is wrong with those that had not begun: gymdr resume begins them
    except GymDrError:
        for folder in folders:
            folder.discard_if_unused()
        raise
    finally:
        for folder in folders:
            folder.delete_replaced()


def _check_seeds(seeds: Sequence[int] | None, options: Mapping[str, Any], launching: Mapping[str, Any]) -> None:
    """Checks that what is for several seeds comes with them."""
    if seeds is None:
        for name, value in launching.items():
            if value not in (None, "local"):
                raise ConfigError(f"--{name.replace('_', '-')}: expected with --seeds, which it is for.")
        return
    if "seed" in options:
        raise ConfigError("Expected --seed or --seeds, got both.")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"--seeds: expected each seed once, got {','.join(map(str, seeds)) or 'none'}.")


def _make_folders(
    root: Path, configs: Sequence[RunConfig], *, several: bool, overwrite: bool, command: str
) -> list[RunFolder]:
    """The folders of new runs with their configurations; none is made or changed where one cannot be."""
    paths = [root / f"seed-{config.settings.seed}" for config in configs] if several else [root]
    if several and (root / "config.json").is_file():
        raise ConfigError(f"{root}: is the folder of a single run; choose another --run-dir for several seeds.")
    others = sorted({child.name for child in root.glob("seed-*")} - {path.name for path in paths}) if several else []
    if others:
        raise ConfigError(f"{root}: holds the runs {', '.join(others)} of another command; choose another --run-dir.")
    for path in paths:  # all of them before the first is touched
        RunFolder(path).check_free(overwrite=overwrite)
    return [
        RunFolder.create(path, config.to_json(), overwrite=overwrite, command=command)
        for path, config in zip(paths, configs, strict=True)
    ]


def _default_folder(config: RunConfig, *, several: bool) -> Path:
    """A free folder, named after what is trained; reports show the last part of its name."""
    settings, space = config.settings, param_space_of(config.settings.env)
    drawn = [] if space is None or config.randomization is None else [preset_of(config.randomization, space)]
    learning = [] if settings.sampler == UNIFORM else [settings.sampler]
    name = "-".join([config.algorithm, *drawn, *learning, "seeds" if several else f"seed{settings.seed}"])
    place = Path("runs") / settings.env.rpartition("/")[2].rpartition(":")[2]
    return next(path for path in (place / f"{name}{end}" for end in _endings()) if not path.exists())


def _endings() -> Iterator[str]:
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))
