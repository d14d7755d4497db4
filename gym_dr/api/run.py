"""Trained runs as objects that read their folders on demand, and training to the end: with plots and an evaluation."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from gym_dr.errors import ConfigError, Interrupted, RunFolderError, as_path, listed, shortened
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.results import Evaluation, read_document
from gym_dr.evaluation.suite import sets_for
from gym_dr.evaluation.summary import SUMMARY, aggregate
from gym_dr.plugins.loading import load_plugins
from gym_dr.policies.open import open_runs
from gym_dr.policies.origins import run_policy
from gym_dr.randomization.sampler import ParamSampler
from gym_dr.reports.plots import plot_growth, plot_training
from gym_dr.runs.config import OpenedRun, RunConfig, check_device
from gym_dr.runs.configure import open_run
from gym_dr.runs.folder import CONFIG, PICTURE_MARK, RunFolder, check_output, expand, read_plain, write_atomically
from gym_dr.runs.launch import Launch, launch
from gym_dr.runs.loggers import check_loggers
from gym_dr.runs.metrics import read_csv, read_metrics
from gym_dr.runs.session import TrainingCallback, run_sampler
from gym_dr.runs.terminal import Display, StopRequest, explain_interrupt, stop_signals
from gym_dr.runs.train import limited_threads, train_run, working_on
from gym_dr.table import Cell, Row, Table

if TYPE_CHECKING:
    import pandas as pd


MAX_SUMMARY = 2**26  # bytes of a summary


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Run:
    """One run in its folder; ``gym_dr.load_run`` opens it.

    Example:
        >>> run = gym_dr.load_run("runs/first")
        >>> run.metrics.plot("steps", "return_mean")
        >>> actions = run.policy()(observations)
    """

    _opened: OpenedRun

    @property
    def folder(self) -> RunFolder:
        """Its folder, with the names of its files."""
        return self._opened.folder

    @property
    def config(self) -> RunConfig:
        """The resolved configuration."""
        return self._opened.config

    @property
    def path(self) -> Path:
        """Path of its folder."""
        return self.folder.path

    @property
    def algorithm(self) -> str:
        """The name of its algorithm."""
        return self.config.algorithm

    @property
    def opened(self) -> list[OpenedRun]:
        """This run as a list, like ``Runs.opened``."""
        return [self._opened]

    @property
    def metrics(self) -> pd.DataFrame:
        """The rows of ``metrics.csv``, one per update.

        Raises:
            RunFolderError: There are none, or the file is damaged.
        """
        return read_metrics(self.folder)

    @property
    def draws(self) -> pd.DataFrame:
        """The rows of ``draws.csv``, one per training episode: its draw, return and steps.

        Raises:
            RunFolderError: The file is missing or damaged.
        """
        return read_csv(self.folder.draws, ("return",))

    @property
    def sampler(self) -> ParamSampler:
        """The sampler of its draws, in the state of the newest checkpoint.

        Its ``draw`` repeats the values of any row of ``draws`` from the row's key: seed, draw index and version.

        Raises:
            ConfigError: The environment has no parameters.
            CheckpointError: There is no usable checkpoint.
        """
        return run_sampler(self.folder, self.config)

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation in its folder, made after training or by ``gym_dr.evaluate``; None if there is none.

        Raises:
            RunFolderError: It is damaged.
        """
        document = read_document(self.folder.evaluation)
        return Evaluation.load(self.folder.evaluation, document) if document and document["complete"] else None

    def policy(self, *, deterministic: bool = False) -> Callable[..., npt.NDArray[Any]]:
        """The policy in its newest checkpoint, as a function.

        It takes observations ``(N, ...)`` and returns actions for the environment, or one observation ``(...)`` and
        returns its action. Observations are those of the training environment, unnormalized. A run that was trained
        with ``context="observation"`` also observes the draw: wrap the environment in
        ``DrawContext(envs, "observation", run.config.context_ranges, span=0.25)``. A run with ``stack_observations`` or
        ``observe_reward`` needs ``FrameStack(envs, ...)``, inside ``DrawContext``.

        A policy with memory takes batches only, and also ``episode_starts`` ``(N,)``: True where an observation is the
        first of an episode.

        Example:
            >>> act = run.policy(deterministic=True)
            >>> actions = act(observations)
            >>> action = act(observations[0])

        Args:
            deterministic: Whether to take the most likely of discrete actions. If not, they are sampled, as in
                evaluations, from a generator with a fixed seed. Continuous actions are the mean in both cases.

        Raises:
            ConfigError: The algorithm cannot make a policy from its saved state, or not a deterministic one. Calling
                the policy raises it for observations of another shape.
            CheckpointError: There is no usable checkpoint.
        """
        return run_policy(self._opened, deterministic=deterministic)

    def export(self, output: str | Path) -> Path:
        """Writes its policy as an ONNX file, which runs without gym_dr and without torch.

        The file takes observations ``(N, ...)`` as the training environment returns them, and gives the actions of
        ``policy(deterministic=True)``. One with memory also takes a state and ``episode_start``, and gives the next
        state.

        Example:
            >>> run.export("policy.onnx")

        Args:
            output: The file, which ends in ``.onnx``; an existing one is replaced.

        Returns:
            Its path.

        Raises:
            ConfigError: The name has another ending, the package onnx is missing, or the algorithm's network is not one
                of gym_dr's.
            CheckpointError: There is no usable checkpoint.
            RunFolderError: The file cannot be written.
        """
        from gym_dr.policies.export import export_policy  # heavy

        return export_policy(open_runs(self.opened)[0], output)

    def resume(
        self,
        *,
        loggers: Sequence[str] | None = None,
        progress: bool = True,
        callback: TrainingCallback | None = None,
        num_threads: int | None = None,
    ) -> Run:
        """Resumes from the newest checkpoint, to the same result as without the interruption.

        Args:
            loggers: Loggers from now on; empty for none, None for no change.
            progress: Whether to show progress.
            callback: See ``gym_dr.train``.
            num_threads: See ``gym_dr.train``.

        Returns:
            The run, trained and evaluated.

        Raises:
            CheckpointError: There is nothing usable to resume from.
            TrainingError: Training cannot continue.
            Interrupted: A signal stopped the run; the message says how to continue.
        """
        check_callback(callback)
        run = _ready(self, loggers)
        train_and_evaluate(
            run._opened,
            resume=True,
            display="bar" if progress else "nothing",
            callback=callback,
            num_threads=num_threads,
        )
        return run

    def __repr__(self) -> str:
        settings = self.config.settings
        return f"Run({str(self.path)!r}: {self.algorithm} on {settings.env}, seed {settings.seed})"

    def _repr_html_(self) -> str:
        """Settings and results, as far as the folder has them, for notebooks."""
        settings = self.config.settings
        rows = [("algorithm", self.algorithm), ("environment", settings.env), ("seed", str(settings.seed))]
        rows += [(f"draws of {name}", repr(rule)) for name, rule in (self.config.randomization or {}).items()]
        with contextlib.suppress(RunFolderError):
            last = self.metrics.iloc[-1]
            mean = last["return_mean"]  # NaN before the first episode has ended
            rows += [
                ("updates", f"{int(last['update']) + 1:,} of {self.config.options.updates:,}"),
                ("environment steps", f"{int(last['steps']):,}"),
                ("training return, mean of 100 episodes", "no episode yet" if math.isnan(mean) else f"{mean:.1f}"),
            ]
        tables = [Table(rows=rows, caption=str(self.path)).__html__()]
        with contextlib.suppress(RunFolderError):
            tables += [] if (found := self.evaluation) is None else [found._repr_html_()]
        return "\n".join(tables)


class Runs(Sequence[Run]):
    """Runs in one folder that differ only in their seeds.

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
    def opened(self) -> list[OpenedRun]:
        """The runs."""
        return [run._opened for run in self]

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

        Columns are the number of seeds, the mean with its 95 % interval (``mean_low``, ``mean_high``; Student's t),
        the standard deviation, and the interquartile mean. For a single seed all but the means are nan.

        Raises:
            RunFolderError: There is no summary yet, since not all runs are trained.
        """
        import pandas as pd  # heavy

        try:
            rows = json.loads(read_plain(self.path / SUMMARY, MAX_SUMMARY))
            table = pd.DataFrame({name: {**row, "seeds": len(row["seeds"])} for name, row in rows.items()}).T
            return table.astype(float)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise RunFolderError(
                f"{self.path}: holds no summary of its runs. Continue with: gymdr resume {self.path}"
            ) from None

    @property
    def table(self) -> Table:
        """``summary`` as a table, with the same errors."""
        rows: list[Row] = []
        for name, row in self.summary.iterrows():
            mean, low, high, std, iqm = (
                "-" if math.isnan(row[key]) else f"{row[key]:.1f}"
                for key in ("mean", "mean_low", "mean_high", "std", "iqm")
            )
            interval = "" if low == "-" else f"{low} to {high}"
            rows.append([str(name), f"{row['seeds']:.0f}", Cell(mean, interval), std, iqm])
        return Table(rows=rows, columns=("", "seeds", "mean (95 % over seeds)", "SD", "IQM"))

    def resume(
        self, *, loggers: Sequence[str] | None = None, progress: bool = True, num_threads: int | None = None
    ) -> Runs:
        """Resumes every run; see ``Run.resume``."""
        how = Launch(num_threads=num_threads)
        runs = [_ready(run, loggers) for run in self]
        train_seeds([run.folder for run in runs], self.path, how, trust=self._trust, progress=progress)
        return Runs(self.path, runs, self._trust)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Runs({str(self.path)!r}: {listed([run.path.name for run in self])})"

    def _repr_html_(self) -> str:
        """Statistics over seeds, or the runs if they are not all trained, for notebooks."""
        try:
            table = self.table
        except RunFolderError:
            table = Table(rows=[(run.path.name,) for run in self])
        return dataclasses.replace(table, caption=str(self.path)).__html__()


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
    load_plugins()
    root = as_path(path)
    runs = [Run(open_run(folder.path, trust)) for folder in expand([str(root)])]
    return runs[0] if (root / CONFIG).is_file() else Runs(root, runs, trust)


def _ready(run: Run, loggers: Sequence[str] | None) -> Run:
    """Prepares a run to be resumed here; loggers that are not None change its configuration, also in its folder.

    Raises:
        ConfigError: Its device is not available, or a logger's package is missing.
        UnknownNameError: There is no such logger.
    """
    check_device(run.config.settings.device)
    if loggers is None:
        return run
    check_loggers(loggers)
    changed = dataclasses.replace(run.config, settings=dataclasses.replace(run.config.settings, loggers=tuple(loggers)))
    with run.folder.locked():
        write_atomically(run.folder.config, changed.to_json().encode())
    return Run(dataclasses.replace(run._opened, config=changed))


# ---- training to the end ---------------------------------------------------------------------------------------------


def train_and_evaluate(
    run: OpenedRun,
    *,
    resume: bool,
    display: Display,
    callback: TrainingCallback | None = None,
    num_threads: int | None = None,
) -> None:
    """Trains a run, plots its training and evaluates its policy. Episodes that were played before are not repeated.

    Args:
        run: The run; its folder holds the configuration.
        resume: Whether to resume from the newest checkpoint, if there is one.
        display: How to show progress.
        callback: See ``gym_dr.train``.
        num_threads: See ``gym_dr.train``.

    Raises:
        Interrupted: A signal stopped the run; the message says how to continue.
        GymDrError: See ``train_run``.
    """
    folder, config, stop = run.folder, run.config, StopRequest()
    with working_on(run, stop, new=not resume, num_threads=num_threads) as loggers:
        for picture in (folder.plots, folder.growth):
            check_output(picture, PICTURE_MARK)
        train_run(run, stop, loggers, resume=resume, display=display, callback=callback)
        unfinished = "Trained, but stopped before the plots and the evaluation were done."
        with limited_threads(), explain_interrupt(f"{unfinished} Continue with: gymdr resume {folder.path}"):
            stop.check()
            plot_growth(folder, config)
            plot_training([folder], folder.plots)  # last: a run with this plot is finished
            stop.check()
            if config.settings.eval_episodes and run.algorithm.policy_loader() is not None:
                policies = open_runs([run])
                sets = sets_for(policies, (), config.settings.eval_episodes)
                found = evaluate_policies(policies, sets, folder.evaluation, progress=lambda *_: stop.check())
                loggers.evaluated(found.statistics(policies[0].name))
    if stop.number:  # too late to stop anything, but the sender expects the exit code
        raise Interrupted(f"Stopped after everything was done. Run folder: {folder.path}", stop.number)


def check_callback(callback: Any, seeds: Sequence[int] | None = None) -> None:
    """Checks that a callback, if there is one, can be called, and that it need not be called in other processes.

    Raises:
        ConfigError: It cannot, or there are several seeds.
    """
    if callback is not None and not callable(callback):
        raise ConfigError(f"callback: expected a function of a row of metrics, got {shortened(callback)}.")
    if callback is not None and seeds is not None:
        raise ConfigError("callback: expected `seed`, got `seeds`, which train in processes of their own.")


def train_seeds(
    folders: Sequence[RunFolder], root: Path, how: Launch, *, trust: Collection[str], progress: bool
) -> None:
    """Trains the runs in a folder and writes their aggregate; raises what ``launch`` and ``aggregate_runs`` raise."""
    launch(folders, how, trust=trust, display="bar" if progress else "nothing")
    aggregate_runs(folders, root)


def aggregate_runs(folders: Sequence[RunFolder], root: Path) -> None:
    """Writes the aggregate of several trained seeds.

    Raises:
        RunFolderError: A run has no metrics, or a file cannot be written.
        Interrupted: A signal arrived.
    """
    stop = StopRequest()
    with explain_interrupt(f"All runs are trained. Aggregate them with: gymdr resume {root}"):
        with stop_signals(stop):
            plot_training(folders, root / folders[0].plots.name)
            aggregate(folders, root)
        stop.check()
