"""Where the time of one training update goes: environment, inference, update or statistics.

A real training is timed from inside. One stopwatch lies around the environment, another around ``RecordDraws``, which
keeps the statistics, and a third around the whole collection of a rollout, so that

    environment = the inner stopwatch
    statistics  = the outer one less the inner one, and writing the row of metrics
    inference   = collecting less the outer one: sampling actions, and storing the rollout
    update      = advantages and gradient steps

Where the environment plays many steps in one compiled call, its policy is called in there as well. The same calls of it
are then timed alone, in a compiled loop over the rollout's own observations, and moved from environment to inference.
Checkpoints, one in 100 updates, are not part of it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from gymnasium.vector import VectorWrapper

from gym_dr.compiled.policy import act_repeatedly
from gym_dr.compiled.steps import Steps
from gym_dr.envs.capabilities import supports
from gym_dr.errors import ConfigError
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import check_vectorization
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.training.a2c import A2C
from gym_dr.training.rollout import Rollout, RolloutCollector
from gym_dr.training.sampling import CompiledSampler, draw_noise

PARTS = ("environment", "inference", "update", "statistics")
_WARM_UP = 3  # updates that are not counted


class Stopwatch:
    """Seconds spent in calls."""

    def __init__(self) -> None:
        """Starts at 0."""
        self.seconds = 0.0

    def time(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls and adds up."""
        begin = time.perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - begin

    def take(self) -> float:
        """The seconds so far; goes on from 0."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


class Timed(VectorWrapper[Any, Any, Any, Any, Any]):
    """Times the steps of what it wraps; resets by hand are not timed."""

    def __init__(self, env: Any) -> None:
        """Wraps a vector environment."""
        super().__init__(env)
        self.watch = Stopwatch()

    def step(self, actions: Any) -> Any:
        """One step, timed."""
        return self.watch.time(self.env.step, actions)

    def play(self, *args: Any) -> Any:
        """Many steps in one call, timed."""
        return self.watch.time(cast(Any, self.env).play, *args)


class ProfiledTraining:
    """A training whose updates are made one by one."""

    def __init__(self, config: RunConfig) -> None:
        """Begins it, in a folder that ``close`` deletes.

        Raises:
            GymDrError: The environment cannot be made, or is not for A2C.
        """
        self._place = tempfile.TemporaryDirectory(prefix="gymdr-bench-")
        folder = RunFolder.create(Path(self._place.name) / "run", config.to_json(), overwrite=False)
        self._session = RunSession(folder, config, lambda *_: None, resume=False)
        recorder = self._session.make_envs(config.options.rollout_steps)
        recorder.env = self._inner = Timed(recorder.env)
        self._outer = Timed(recorder)
        self._agent = A2C(self._outer, config.options, config.settings.seed, config.settings.device)
        self._collector = RolloutCollector(
            self._outer, config.options.rollout_steps, config.settings.device, self._agent.shown
        )
        self.compiled = isinstance(self._agent.sampler, CompiledSampler) and supports(self._outer, "rollout")
        self._updates = 0

    @property
    def metrics(self) -> Path:
        """The rows that its updates have written, until ``close``."""
        path: Path = self._session.folder.metrics
        return path

    def update(self) -> dict[str, float]:
        """Makes one; returns the seconds of its parts by name."""
        seed = self._session.segment_seed(self._updates)
        if seed is not None:
            self._collector.reset(seed)
        whole, update, log = Stopwatch(), Stopwatch(), Stopwatch()
        self._agent.schedule(self._updates)
        rollout = whole.time(self._collector.collect, self._agent.sampler)
        losses = update.time(self._agent.update, rollout)
        log.time(self._session.log, self._updates, steps=int(rollout.valid.sum()), **losses)
        self._updates += 1
        inner, outer = self._inner.watch.take(), self._outer.watch.take()
        acting = self._acting_alone(rollout) if self.compiled else 0.0
        return {
            "environment": inner - acting,
            "inference": whole.seconds - outer + acting,
            "update": update.seconds,
            "statistics": outer - inner + log.seconds,
        }

    def close(self) -> None:
        """Ends it."""
        self._session.close()
        self._place.cleanup()

    def _acting_alone(self, rollout: Rollout) -> float:
        """Seconds in which the compiled policy chooses the actions of a rollout."""
        sampler = cast(CompiledSampler, self._agent.sampler)
        observations = rollout.observations.numpy()
        count, num_envs = rollout.rewards.shape
        state = sampler.generator.get_state()
        noise = draw_noise(sampler, count, num_envs)
        sampler.generator.set_state(state)  # the training's own noise stays as it would be
        numbers = len(sampler.policy.low)
        steps = Steps.allocate(count, num_envs, inputs=observations.shape[2], actions=numbers)
        steps.observations[:] = observations
        env_actions = np.zeros((num_envs, numbers), np.float32)
        watch = Stopwatch()
        watch.time(cast(Any, act_repeatedly), sampler.policy, noise, steps, env_actions)
        return watch.seconds


def measure_profile(configs: dict[str, RunConfig], updates: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Divides one update of each of some trainings, whose updates alternate.

    Args:
        configs: name -> training.
        updates: Of each that are timed.
        report: Called with a line at the beginning.

    Returns:
        ``rows``, one for each training: medians of the parts' seconds, and whether rollouts are played in one compiled
        call.
    """
    report("dividing an update")
    trainings: dict[str, ProfiledTraining] = {}
    try:
        for name, config in configs.items():
            trainings[name] = ProfiledTraining(config)
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in trainings}
        for number in range(_WARM_UP + updates):
            for name, training in trainings.items():
                parts = training.update()
                if number >= _WARM_UP:
                    measured[name].append(parts)
        return {"rows": [_row(name, configs[name], trainings[name].compiled, measured[name]) for name in trainings]}
    finally:
        for training in trainings.values():
            training.close()


def with_vectorization(config: RunConfig, vectorization: str) -> RunConfig | None:
    """The same training with other vector environments; None where there are none."""
    try:
        check_vectorization(config.settings.env, vectorization)
    except ConfigError:
        return None
    return replace(config, settings=replace(config.settings, vectorization=vectorization))


def _row(name: str, config: RunConfig, compiled: bool, measured: list[dict[str, float]]) -> dict[str, Any]:
    return {
        "mode": name,
        "num_envs": config.settings.num_envs,
        "rollout_steps": config.options.rollout_steps,
        "compiled": compiled,
        **{part: statistics.median(parts[part] for parts in measured) for part in PARTS},
    }
