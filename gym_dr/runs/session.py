"""One training run under way: it gives an algorithm its environments and writes what the run leaves behind."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.errors import CheckpointError
from gym_dr.runs.checkpoint import load_newest, save_checkpoint
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import make_vector_env
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import CsvLog, keep_rows
from gym_dr.training.api import seed_for
from gym_dr.wrappers.record import EpisodeRecord, RecordDraws
from gym_dr.wrappers.resample import ResampleParams

WINDOW = 100  # episodes in the running means of return and length

Report = Callable[[int, Mapping[str, float]], None]  # updates made, row of metrics


class RunSession:
    """What an algorithm's ``train`` is given; implements ``gym_dr.training.api.Session``."""

    def __init__(self, folder: RunFolder, config: RunConfig, report: Report, *, resume: bool) -> None:
        """Prepares a new run, or one that goes on from its newest checkpoint.

        Args:
            folder: Of the run, with its configuration written.
            config: Resolved.
            report: Called after each update with its metrics.
            resume: Whether to go on from the newest checkpoint.

        Raises:
            CheckpointError: There is no usable checkpoint to resume from; nothing is changed then.
        """
        self.folder, self.config, self.report = folder, config, report
        self.seed, self.device = config.settings.seed, config.settings.device
        self.restored: dict[str, Any] | None = None
        self.first_update = 0
        self.envs: VectorEnv[Any, Any, Any] | None = None
        self._steps, self._episodes, self._seconds = 0, 0, 0.0
        self._window: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        if resume:
            self._restore()
        self._metrics, self._draws = CsvLog(folder.metrics), CsvLog(folder.draws)
        self._update = self.first_update  # the one under way
        self._started = time.perf_counter() - self._seconds

    def make_envs(self, rollout_steps: int) -> VectorEnv[Any, Any, Any]:
        """See ``Session.make_envs``."""
        settings = self.config.settings
        envs = make_vector_env(settings.env, settings.num_envs, settings.vectorization, self.config.randomization)
        if settings.resample_every:
            envs = ResampleParams(envs, rollout_steps=rollout_steps, every=settings.resample_every)
        self.envs = RecordDraws(envs, self._record)
        return self.envs

    def segment_seed(self, update: int) -> int | None:
        """See ``Session.segment_seed``."""
        segment, within = divmod(update, self.config.settings.checkpoint_every)
        return None if within else seed_for(self.seed, stream=0, index=segment)

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        """See ``Session.log``."""
        self._steps += steps
        self._seconds = time.perf_counter() - self._started
        returns, lengths = zip(*self._window, strict=True) if self._window else ((), ())
        row: dict[str, Any] = {
            "update": update,
            "steps": self._steps,
            "episodes": self._episodes,
            "return_mean": float(np.mean(returns)) if returns else float("nan"),
            "length_mean": float(np.mean(lengths)) if lengths else float("nan"),
            **metrics,
            "seconds": round(self._seconds, 3),
        }
        self._metrics.write(row)
        self._update = update + 1
        self.report(update + 1, row)

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        """See ``Session.save``."""
        made = update + 1
        if made % self.config.settings.checkpoint_every and made != self.config.options.updates:
            return
        session = {
            "steps": self._steps,
            "episodes": self._episodes,
            "seconds": self._seconds,
            "window": [[episode_return, length] for episode_return, length in self._window],
        }
        save_checkpoint(self.folder, made, state(), session, self.config.to_dict())

    def close(self) -> None:
        """Closes environments and files."""
        if self.envs is not None:
            self.envs.close()
        self._metrics.close()
        self._draws.close()

    def _restore(self) -> None:
        checkpoint = load_newest(self.folder)
        if checkpoint["config"] != self.config.to_dict():
            raise CheckpointError(f"{self.folder.checkpoints}: the newest checkpoint is of another configuration.")
        session = checkpoint["session"]
        self.restored, self.first_update = checkpoint["state"], int(checkpoint["update"])
        self._steps, self._episodes = int(session["steps"]), int(session["episodes"])
        self._seconds = float(session["seconds"])
        self._window.extend((float(r), int(n)) for r, n in session["window"])
        for path in (self.folder.metrics, self.folder.draws):  # rows of updates that will be made again
            keep_rows(path, lambda row: int(row["update"]) < self.first_update)

    def _record(self, record: EpisodeRecord) -> None:
        self._episodes += 1
        self._window.append((record.episode_return, record.length))
        self._draws.write(
            {
                "update": self._update,
                "env_index": record.env_index,
                "seed": record.seed,
                "draw_index": record.draw_index,
                "return": record.episode_return,
                "length": record.length,
                "terminated": int(record.terminated),
                **record.params,
            }
        )
