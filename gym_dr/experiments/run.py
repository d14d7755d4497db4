"""Trained runs as objects that read their folders on demand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import RunFolderError
from gym_dr.experiments.configure import open_run
from gym_dr.experiments.launch import aggregate_runs, launch
from gym_dr.runs.config import RunConfig, check_device
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import CONFIG, RunFolder, expand
from gym_dr.training.api import Algorithm, Policy

if TYPE_CHECKING:
    import pandas as pd

    from gym_dr.evaluation.results import Evaluation
    from gym_dr.randomization.sampler import ParamSampler


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Run:
    """One run in its folder; ``gym_dr.load_run`` opens it.

    Example:
        >>> run = gym_dr.load_run("runs/first")
        >>> run.metrics.plot("steps", "return_mean")
        >>> actions = run.policy()(observations)

    Attributes:
        folder: Its folder, with the names of its files.
        config: The resolved configuration.
    """

    folder: RunFolder
    config: RunConfig
    _algorithm: Algorithm  # of its configuration

    @property
    def path(self) -> Path:
        """Path of its folder."""
        return self.folder.path

    @property
    def algorithm(self) -> str:
        """The name of its algorithm."""
        return self.config.algorithm

    @property
    def parts(self) -> tuple[RunFolder, RunConfig, Algorithm]:
        """Folder, configuration and algorithm."""
        return self.folder, self.config, self._algorithm

    @property
    def metrics(self) -> pd.DataFrame:
        """The rows of ``metrics.csv``, one per update.

        Raises:
            RunFolderError: There are none, or the file is damaged.
        """
        from gym_dr.evaluation.plots import read_metrics  # heavy

        return read_metrics(self.folder)

    @property
    def draws(self) -> pd.DataFrame:
        """The rows of ``draws.csv``, one per training episode: its draw, return and steps.

        Raises:
            RunFolderError: The file is missing or damaged.
        """
        from gym_dr.evaluation.report.training import read_draws  # heavy

        return read_draws(self.folder)

    @property
    def sampler(self) -> ParamSampler:
        """The sampler of its draws, in the state of the newest checkpoint.

        Its ``replay`` reproduces the values of any earlier row of ``draws`` from the row's version and source.

        Raises:
            ConfigError: The environment has no parameters.
            CheckpointError: There is no usable checkpoint.
        """
        from gym_dr.runs.session import run_sampler  # heavy

        return run_sampler(self.folder, self.config)

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation in its folder, made after training or by ``gym_dr.evaluate``; None if there is none.

        Raises:
            RunFolderError: It is damaged.
        """
        from gym_dr.evaluation.results import Evaluation, read_document

        document = read_document(self.folder.evaluation)
        return Evaluation.load(self.folder.evaluation) if document and document["complete"] else None

    def policy(self) -> Policy:
        """The policy in its newest checkpoint: observations ``(N, ...)`` -> actions for the environment.

        Raises:
            ConfigError: The algorithm cannot make a policy from its saved state.
            CheckpointError: There is no usable checkpoint.
        """
        from gym_dr.evaluation.policies import load_run_policy

        return load_run_policy(*self.parts)

    def resume(self, *, on_nan: str | None = None, progress: bool = True) -> Run:
        """Resumes from the newest checkpoint and reaches the same result as an uninterrupted run.

        Args:
            on_nan: What to do from now on if an update is not finite, "stop" or "skip"; None for no change.
            progress: Whether to show progress.

        Returns:
            The run, trained and evaluated.

        Raises:
            CheckpointError: There is nothing usable to resume from.
            TrainingError: Training cannot continue.
            Interrupted: A signal stopped the run; the message says how to continue.
        """
        from gym_dr.experiments.one_run import train_run  # heavy

        run = _ready(self, on_nan)
        train_run(*run.parts, resume=True, display="bar" if progress else "nothing")
        return run

    def __repr__(self) -> str:
        settings = self.config.settings
        return f"Run({str(self.path)!r}: {self.algorithm} on {settings.env}, seed {settings.seed})"


class Runs(Sequence[Run]):
    """A sequence of ``Run`` that differ only in their seed, in one folder.

    Example:
        >>> runs = gym_dr.load_run("runs/seeds")
        >>> runs.summary.loc["evaluation on nominal", "iqm"]
        >>> [run.config.settings.seed for run in runs]

    Attributes:
        path: The folder that holds their folders.
    """

    def __init__(self, path: Path, runs: Sequence[Run], trust: Collection[str] = ()) -> None:
        """Holds opened runs; ``gym_dr.load_run`` opens them from a path.

        Args:
            path: See the class.
            runs: In the order of their seeds.
            trust: Modules that their configurations may import.
        """
        self.path, self._runs, self._trust = path, tuple(runs), tuple(trust)

    @property
    def metrics(self) -> pd.DataFrame:
        """The metrics of all runs, with a column ``seed``.

        Raises:
            RunFolderError: A run has none.
        """
        import pandas as pd  # heavy

        return pd.concat([run.metrics.assign(seed=run.config.settings.seed) for run in self], ignore_index=True)

    @property
    def summary(self) -> pd.DataFrame:
        """Statistics over seeds of the final training return and each evaluation, one row each.

        Columns are the number of seeds, mean, standard deviation, and interquartile mean with its interval.

        Raises:
            RunFolderError: There is no summary yet, since not all runs are trained.
        """
        import pandas as pd  # heavy

        from gym_dr.evaluation.aggregate import SUMMARY

        try:
            rows = json.loads((self.path / SUMMARY).read_text(encoding="utf-8"))
            return pd.DataFrame({name: {**row, "seeds": len(row["seeds"])} for name, row in rows.items()}).T
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            raise RunFolderError(
                f"{self.path}: holds no summary of its runs. Continue with: gymdr resume {self.path}"
            ) from None

    def resume(self, *, on_nan: str | None = None, progress: bool = True) -> Runs:
        """Resumes every run; see ``Run.resume``."""
        runs = [_ready(run, on_nan) for run in self]
        folders = [run.folder for run in runs]
        launch(folders, trust=self._trust, display="lines" if progress else "nothing")
        aggregate_runs(folders, self.path)
        return Runs(self.path, runs, self._trust)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Runs({str(self.path)!r}: {', '.join(run.path.name for run in self)})"


RunLike = str | Path | Run | Runs


def load_run(path: str | Path, trust: Collection[str] = ()) -> Run | Runs:
    """Opens a run, or a folder of several seeds. The folder may be untrusted: opening it runs none of its code.

    Example:
        >>> gym_dr.load_run("runs/first").metrics["return_mean"].iloc[-1]

    Args:
        path: Path of the folder.
        trust: Modules that its configuration may import.

    Returns:
        A ``Run``, or ``Runs`` if the folder is not a run but holds folders ``seed-*``.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: A configuration cannot be read, or names a module that is not trusted.
        UnknownNameError: An algorithm or environment is not installed.
    """
    runs = [Run(*open_run(folder.path, trust)) for folder in expand([str(path)])]
    single = (Path(path) / CONFIG).is_file()
    return runs[0] if single else Runs(Path(path), runs, trust)


def _ready(run: Run, on_nan: str | None) -> Run:
    """Prepares a run to be resumed here; ``on_nan`` changes its configuration, also in its folder.

    Raises:
        ConfigError: Its device is not available.
        UnknownNameError: There is no such ``on_nan``.
    """
    check_device(run.config.settings.device)
    if on_nan is None:
        return run
    folder, config, algorithm = run.parts
    changed = dataclasses.replace(config, settings=dataclasses.replace(config.settings, on_nan=on_nan))
    with folder.locked():
        write_atomically(folder.config, changed.to_json().encode())
    return Run(folder, changed, algorithm)
