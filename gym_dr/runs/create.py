"""Makes the folders of new runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.randomization.presets import preset_of
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.runs.config import RunConfig, named_runs
from gym_dr.runs.folder import AGGREGATE, CONFIG, RunFolder, check_seeds, seed_name


def make_folders(
    root: Path, configs: Sequence[RunConfig], *, several: bool, overwrite: bool, command: str
) -> list[RunFolder]:
    """Makes the folders of new runs with their configurations, or none if one cannot be made.

    Args:
        root: The folder of a single run, or for the folders of several seeds.
        configs: The configurations.
        several: Whether ``root`` holds several seeds.
        overwrite: Whether to replace existing runs.
        command: The command line, if there was one.

    Raises:
        RunFolderError: A path holds something else, or cannot be written.
        ConfigError: ``root`` holds runs of another training, or a run would replace the run that it starts from.
    """
    paths = [root / seed_name(config.settings.seed) for config in configs] if several else [root]
    if several:
        if (root / CONFIG).is_file():
            raise ConfigError(
                f"{root}: is the run folder of a single seed; choose another `run_dir` for several seeds."
            )
        if others := sorted({child.name for child in root.glob("seed-*")} - {path.name for path in paths}):
            raise ConfigError(
                f"{root}: holds the runs {', '.join(others)} of another training; choose another `run_dir`."
            )
        check_seeds(root, paths)
        for taken in [root / name for name in AGGREGATE if (root / name).exists()]:
            if not any(path.exists() for path in paths):
                raise RunFolderError(f"{taken}: already exists and is not of runs. Choose another `run_dir`.")
    for path, config in zip(paths, configs, strict=True):  # check all before creating any
        RunFolder(path).check_free(overwrite=overwrite)
        for name, other in named_runs(config).items():
            if other == path.resolve():
                raise ConfigError(f"`{name}`: {path} would be replaced; choose another `run_dir`.")
    return [
        RunFolder.create(path, config.to_json(), overwrite=overwrite, command=command)
        for path, config in zip(paths, configs, strict=True)
    ]


def default_folder(config: RunConfig, *, several: bool) -> Path:
    """A free folder, named after the configuration; reports show the last part of its name."""
    settings, space = config.settings, config.space
    drawn = [] if space is None or config.randomization is None else [preset_of(config.randomization, space)]
    learning = [] if settings.sampler == UNIFORM else [settings.sampler]
    name = "-".join([config.algorithm, *drawn, *learning, "seeds" if several else f"seed{settings.seed}"])
    place = Path("runs") / settings.env.rpartition("/")[2].rpartition(":")[2]
    numbered = (place / f"{name}-{number}" for number in itertools.count(2))
    return next(path for path in itertools.chain([place / name], numbered) if not path.exists())
