"""A training run in progress: makes the algorithm's environments, writes the run's files and feeds its loggers."""

from __future__ import annotations

import contextlib
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.compiled.processors import usable_threads
from gym_dr.errors import (
    CheckpointError,
    ConfigError,
    PluginError,
    PluginWarning,
    RunFolderError,
    located,
    raised_as,
    warn,
)
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, EpisodeRecord, ParamSampler, Row, restore
from gym_dr.registry import load_object
from gym_dr.runs.checkpoint import checkpoint_paths, load_checkpoint, load_newest, not_finite, save_checkpoint
from gym_dr.runs.config import RunConfig, differences
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import end_workers, make_sampler, make_vector_env, wrap_for_policy
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.loggers import LOGGERS, LogWriter
from gym_dr.runs.metrics import CsvLog, last_row, size_of_rows
from gym_dr.training.api import TrainedNetworks, seed_for
from gym_dr.wrappers.adapt import AdaptParams
from gym_dr.wrappers.finite import RequireFinite
from gym_dr.wrappers.record import RecordEpisodes
from gym_dr.wrappers.resample import ResampleParams
from gym_dr.wrappers.vector_params import with_params

WINDOW = 100  # episodes in the running means of return and length
RESTART_INDEX = 2**32  # first seed index of restarts within segments; segments use smaller indices

UpdateCallback = Callable[[int, Mapping[str, float]], None]  # updates made, row of metrics
TrainingCallback = Callable[[dict[str, float]], bool | None]  # row of metrics -> True to end the run

MAX_REASON = 300  # characters of a failure's message


class EndedEarly(Exception):  # noqa: N818  no error: the callback asked for it
    """Ends an algorithm's loop after a saved update."""


class RunSession:
    """The first argument of an algorithm's ``train``; implements ``gym_dr.training.api.Session``."""

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        progress: UpdateCallback,
        *,
        resume: bool,
        check_stop: Callable[[], None] = lambda: None,
        callback: TrainingCallback | None = None,
        loggers: RunLoggers | None = None,
    ) -> None:
        """Prepares a new run, or one that resumes from its newest checkpoint.

        Args:
            folder: Folder of the run, with its configuration.
            config: The resolved configuration.
            progress: Called after each update with its metrics.
            resume: Whether to resume from the newest checkpoint; a run without checkpoints starts again.
            check_stop: Called after each update; what it raises ends the run.
            callback: Called after each update with its metrics; True saves the update and ends the run.
            loggers: Loggers of the run, closed by the caller; None for none.

        Raises:
            CheckpointError: The newest checkpoint is missing or cannot be used; nothing is changed.
            RunFolderError: Rows before it are missing; nothing is changed.
        """
        self.folder, self.config, self.progress = folder, config, progress
        self.seed, self.device = config.settings.seed, config.settings.device
        self.num_threads = usable_threads()
        self.restored: dict[str, Any] | None = None
        self.first_update = 0
        self.envs: RecordEpisodes | None = None
        self._resample: Callable[[], None] | None = None  # set if updates, not steps, are the unit of re-draws
        self._steps, self._episodes, self._seconds = 0, 0, 0.0
        self._finished: list[dict[str, Any]] = []  # rows of ``draws.csv``, written with the update
        self._window: deque[tuple[float, int, Mapping[str, float]]] = deque(maxlen=WINDOW)
        self._terms: list[str] | None = None  # of the reward, as the first update reported them
        self._adapted: AdaptParams | None = None  # the environments, if their sampler is adaptive
        self._sampler_state: Mapping[str, Any] | None = None  # state of that sampler in the checkpoint to resume from
        self._logs = {path: CsvLog(path) for path in (folder.metrics, folder.draws, folder.sampler)}
        if resume:
            self._restore()
        self._metrics, self._draws, self._learned = self._logs.values()
        self._loggers = loggers or RunLoggers(folder, config, required=False)
        self._loggers.open()
        self._check_stop, self._callback = check_stop, callback
        self._ended = False  # by the callback
        self.updates_made = self.first_update  # so far; also the index of the current update
        self.updates_saved = self.first_update  # as of the newest checkpoint
        self._started = time.perf_counter() - self._seconds

    def make_envs(self, rollout_steps: int | None) -> RecordEpisodes:
        """See ``Session.make_envs``."""
        config, settings = self.config, self.config.settings
        envs = make_vector_env(settings.env, settings.num_envs, settings.vectorization, config.randomization)
        if settings.sampler != UNIFORM:
            envs = with_params(envs)  # innermost wrapper
        if settings.resample_every:
            envs = ResampleParams(envs, rollout_steps=rollout_steps, every=settings.resample_every)
            self._resample = envs.resample if rollout_steps is None else None
        envs = RequireFinite(wrap_for_policy(envs, config.randomization, config.context_ranges, frames=config.frames))
        if settings.sampler == UNIFORM:
            self.envs = RecordEpisodes(envs, self._record)
            return self.envs
        self.envs = self._adapted = AdaptParams(
            envs,
            settings.sampler,
            every=None,
            callback=self._record,
            on_update=self._record_update,
            **(vars(config.sampler_options) if config.sampler_options else {}),
        )
        if self._sampler_state is not None:
            with located(self.folder.checkpoints):
                self._adapted.load_state(self._sampler_state)
        return self.envs

    def trained(self, run: str) -> TrainedNetworks:
        """See ``Session.trained``."""
        other = open_run(run)
        return TrainedNetworks(
            source=str(other.folder.path),
            options=other.config.options,
            state=load_newest(other.folder)["state"],
            context_ranges=other.config.context_ranges,
        )

    def segment_seed(self, update: int) -> int | None:
        """See ``Session.segment_seed``."""
        segment, within = divmod(update, self.config.settings.checkpoint_every)
        if within == 0:
            return seed_for(self.seed, stream=0, index=segment)
        # a callback may have ended the run within a segment
        return seed_for(self.seed, stream=0, index=RESTART_INDEX + update) if update == self.first_update else None

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        """See ``Session.log``."""
        if not self.folder.config.exists():
            raise RunFolderError(f"{self.folder.path}: was removed or replaced; nothing more is written there.")
        self._steps += steps
        self._seconds = time.perf_counter() - self._started
        returns, lengths, terms = zip(*self._window, strict=True) if self._window else ((), (), ())
        if self._terms is None:  # columns of all rows
            self._terms = [] if self.envs is None else [*self.envs.reward_terms]
        row: dict[str, Any] = {
            "update": update,
            "steps": self._steps,
            "episodes": self._episodes,
            "return_mean": _mean(returns),
            "length_mean": _mean(lengths),
            **{f"{name}_mean": _mean([found.get(name, 0.0) for found in terms]) for name in self._terms},
            **metrics,
            "seconds": round(self._seconds, 3),
        }
        self._draws.write(*self._finished)  # at once: each call of the operating system takes longer than a row
        self._finished.clear()
        self._metrics.write(row)
        if self._resample is not None and (update + 1) % self.config.settings.resample_every == 0:
            self._resample()
        if self._adapted is not None:
            self._adapted.update()
        self.updates_made = update + 1
        self.progress(update + 1, row)
        if self._callback is not None:
            answer = self._callback(dict(row))
            self._ended = isinstance(answer, bool | np.bool_) and bool(answer)  # other results mean nothing
        self._loggers.update(row, saved=self._ended)

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        """See ``Session.save``.

        Raises:
            KeyboardInterrupt: A signal stops the run.
            EndedEarly: The callback ends it.
        """
        updates, total = update + 1, self.config.options.updates
        if updates % self.config.settings.checkpoint_every == 0 or updates == total or self._ended:
            self._save(updates, state())
        self._check_stop()
        if self._ended and updates < total:
            raise EndedEarly

    def close(self) -> None:
        """Closes environments and files."""
        if self.envs is not None and self.config.settings.vectorization == "async":
            end_workers(self.envs)
        elif self.envs is not None:
            self.envs.close()
        for log in self._logs.values():
            log.close()

    def last_good(self) -> str:
        """A sentence on the newest checkpoint, for the message of an error."""
        paths = checkpoint_paths(self.folder)
        return f"The last good checkpoint is {paths[-1]}." if paths else "There is no checkpoint yet."

    def _save(self, updates: int, state: Mapping[str, Any]) -> None:
        for name in not_finite(state):
            raise CheckpointError(f"Update {updates - 1}: the algorithm's {name} is not finite. {self.last_good()}")
        session: dict[str, Any] = {
            "steps": self._steps,
            "episodes": self._episodes,
            "seconds": self._seconds,
            "window": [[*values, dict(terms)] for *values, terms in self._window],
            "terms": self._terms,
            "rows": [log.rows for log in self._logs.values()],
        }
        if self._adapted is not None:
            session["sampler"] = self._adapted.state()
        for log in self._logs.values():  # a checkpoint must not outlive the rows before it
            log.sync()
        save_checkpoint(self.folder, updates, state, session, self.config.to_dict())
        self.updates_saved = updates

    def _restore(self) -> None:
        paths, rows = checkpoint_paths(self.folder), [0, 0, 0]
        if paths:
            rows = self._read(paths[-1])
        elif last_row(self.folder.metrics).get("update", -1) >= self.config.settings.checkpoint_every:
            raise CheckpointError(
                f"{self.folder.checkpoints}: there is no checkpoint, but {self.folder.metrics} shows that the run "
                "saved one. Put it back, or train again with `overwrite=True`."
            )
        for (path, _), count in zip(self._logs.items(), rows, strict=True):
            # the first row of a repeated update replaces the earlier ones, when nothing can be refused any more
            size = size_of_rows(path, count, self.first_update, one_each=path == self.folder.metrics)
            self._logs[path] = CsvLog(path, count, size)

    def _read(self, path: Path) -> list[int]:
        """Takes over a checkpoint; returns the number of rows in each of ``_logs``."""
        checkpoint = load_checkpoint(path)
        if changed := differences(checkpoint["config"], self.config):
            raise CheckpointError(
                f"{path}: has another configuration than {self.folder.config}: {', '.join(changed)}. "
                "Change it back, or train a new run."
            )
        session = checkpoint["session"]
        with raised_as(CheckpointError, f"{path}: its counters are damaged"):
            self.restored, self.first_update = checkpoint["state"], int(checkpoint["update"])
            self._steps, self._episodes = int(session["steps"]), int(session["episodes"])
            self._seconds = float(session["seconds"])
            self._sampler_state = session["sampler"] if self.config.settings.sampler != UNIFORM else None
            self._window.extend(
                (float(r), int(n), {str(name): float(value) for name, value in terms.items()})
                for r, n, terms in session["window"]
            )
            self._terms = [str(name) for name in session["terms"]]
            metrics, draws, sampler = map(int, session["rows"])
        return [metrics, draws, sampler]

    def _record_update(self, row: Row) -> None:
        self._learned.write({"update": self.updates_made, **row})
        self._loggers.sampler(row)

    def _record(self, record: EpisodeRecord) -> None:
        if record.diverged:
            return
        self._episodes += 1
        self._window.append((record.episode_return, record.length, record.reward_terms))
        row = {
            "update": self.updates_made,
            "env_index": record.env_index,
            "seed": record.seed,
            "draw_index": record.draw_index,
            **({} if self._adapted is None else {"version": record.version}),
            "return": record.episode_return,
            "steps": record.length,
            "terminated": int(record.terminated),
            **record.params,
        }
        self._finished.append(row)
        self._loggers.episode(row)


def _mean(values: Sequence[float]) -> float:
    """NaN before the first episode has ended."""
    return float(np.mean(values)) if values else float("nan")


def run_sampler(folder: RunFolder, config: RunConfig) -> ParamSampler:
    """The sampler of a run, in the state of its newest checkpoint.

    Raises:
        ConfigError: The environment has no parameters.
        CheckpointError: There is no usable checkpoint.
    """
    settings, space = config.settings, config.space
    if space is None or config.randomization is None:
        raise ConfigError(f"{settings.env} has no parameters to draw.")
    kind, options = SAMPLERS.get(settings.sampler), config.sampler_options
    sampler = make_sampler(kind, settings.env, settings.num_envs, space, config.randomization, options)
    if settings.sampler != UNIFORM:
        state = load_newest(folder)["session"]["sampler"]
        with located(folder.checkpoints):
            restore(sampler, state)
    return sampler


# ---- loggers ---------------------------------------------------------------------------------------------------------


class RunLoggers:
    """The loggers of a run, which get the rows of its files. A logger that fails is disabled; training continues.

    The step is that of the metrics. Numbers of an update and of the sampler are scalars; the draws of the episodes
    between two checkpoints make a histogram of each parameter. A run that resumes repeats the points after its newest
    checkpoint.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, *, required: bool) -> None:
        """Opens nothing yet; ``required`` loggers must open later, others are disabled if they fail."""
        self._folder, self._config, self._required = folder, config, required
        self._writers: dict[str, LogWriter] = {}
        self._drawn: dict[str, list[float]] = defaultdict(list)  # parameter -> draws since the last histogram
        self._sampler: dict[str, float] = {}  # of the sampler, since the last point
        self._step = 0  # of the last point

    def open(self) -> None:
        """Opens the loggers, each with its own folder.

        Raises:
            PluginError: A required logger cannot be opened.
            RunFolderError: The metrics so far are damaged.
        """
        names = self._config.settings.loggers
        if names:
            self._step = int(last_row(self._folder.metrics).get("steps", 0))
        for name in names:
            path = self._folder.loggers.resolve() / name
            try:
                path.mkdir(parents=True, exist_ok=True)
                self._writers[name] = load_object(LOGGERS.get(name).open)(path, self._config.to_dict())
            except Exception as error:  # a service may raise anything
                with contextlib.suppress(OSError):  # the folder holds files
                    path.rmdir()
                why = f"cannot be opened: {_described(error)}"
                if self._required:
                    self.close()
                    raise PluginError(f"Logger {name!r} {why}") from error
                self._disable(name, why)

    def episode(self, row: Mapping[str, Any]) -> None:
        """Takes a row of ``draws.csv``."""
        if self._writers:
            for name in self._config.randomization or ():
                self._drawn[name].append(float(row[name]))

    def sampler(self, row: Mapping[str, Any]) -> None:
        """Takes a row of ``sampler.csv``."""
        self._sampler = _numbers(row, "sampler", ("update",))

    def update(self, row: Mapping[str, Any], *, saved: bool) -> None:
        """Takes a row of ``metrics.csv``, after the update's other rows, and writes.

        Args:
            row: The row.
            saved: Whether a checkpoint follows even if none is due.
        """
        if not self._writers:
            return
        self._step, updates = row["steps"], row["update"] + 1
        histograms = {}
        if saved or updates % self._config.settings.checkpoint_every == 0 or updates == self._config.options.updates:
            histograms = {f"draws/{name}": np.array(values) for name, values in self._drawn.items()}
            self._drawn.clear()
        scalars = {**_numbers(row, "training", ("update", "steps")), **self._sampler}
        self._each(lambda writer: writer.write(self._step, scalars, histograms))
        self._sampler = {}

    def evaluated(self, statistics: Mapping[tuple[str, str], float]) -> None:
        """Takes the results of an evaluation: (set, statistic) -> value."""
        values = {f"{cells}/{name}": value for (cells, name), value in statistics.items()}
        self._each(lambda writer: writer.results(self._step, _numbers(values, "evaluation")))

    def close(self) -> None:
        """Closes the loggers."""
        self._each(lambda writer: writer.close())
        self._writers.clear()

    def _each(self, call: Callable[[LogWriter], None]) -> None:
        for name, writer in list(self._writers.items()):
            try:
                call(writer)
            except Exception as error:  # a service may raise anything
                self._disable(name, f"failed: {_described(error)}")

    def _disable(self, name: str, why: str) -> None:
        self._writers.pop(name, None)
        warn(f"Logger {name!r} {why} It is disabled for the rest of the run.", PluginWarning)


def show_results(folder: RunFolder, config: RunConfig, statistics: Mapping[tuple[str, str], float]) -> None:
    """Gives the results of an evaluation to the loggers of a trained run; see ``RunLoggers.evaluated``."""
    if config.settings.loggers:
        with folder.locked(), contextlib.closing(RunLoggers(folder, config, required=False)) as loggers:
            loggers.open()
            loggers.evaluated(statistics)


def _numbers(row: Mapping[str, Any], prefix: str, skip: Collection[str] = ()) -> dict[str, float]:
    """The finite numbers of a row, as PREFIX/NAME."""
    found = {name: float(value) for name, value in row.items() if isinstance(value, Real) and name not in skip}
    return {f"{prefix}/{name}": value for name, value in found.items() if math.isfinite(value)}


def _described(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:MAX_REASON].rstrip('.')}."
