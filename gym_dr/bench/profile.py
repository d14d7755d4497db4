"""Divides the time of a training update into environment, inference, update and statistics.

Times a real training run through its session, whatever the algorithm. One stopwatch is around the environment, another
around ``RecordEpisodes``, which makes the statistics, and

    environment = the inner stopwatch
    statistics  = the outer stopwatch minus the inner one, and writing the row of metrics
    inference   = from the start to the environment's last call, minus the outer stopwatch: choosing actions, storing
    update      = from the environment's last call to the row of metrics: advantages, gradient steps

Learning between two steps counts as inference. If the environment makes many steps in one compiled call, that includes
the policy. Its calls are then timed separately, in a compiled loop over the same observations, and moved from
environment to inference. Checkpoints are not included.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from gym_dr.arrays import Floats
from gym_dr.bench.learning import temporary_session
from gym_dr.compiled.policy import SmallPolicy, act_repeatedly
from gym_dr.compiled.steps import Steps
from gym_dr.errors import ConfigError
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import check_vectorization
from gym_dr.runs.session import RunSession
from gym_dr.training.api import Algorithm
from gym_dr.wrappers.record import RecordEpisodes

PARTS = ("environment", "inference", "update", "statistics")
_WARM_UP = 3  # updates that are not counted


class Stopwatch:
    """Times the calls of a vector environment by replacing its methods.

    Attributes:
        began: Time of ``restart``.
        returned: Time when the last call since then returned; ``began`` if there was none.
        seconds: Seconds in calls since then.
    """

    def __init__(self, envs: Any) -> None:
        """Times ``envs`` from now on."""
        self.restart()
        envs.reset, envs.step = partial(self._time, envs.reset), partial(self._time, envs.step)
        if hasattr(type(envs), "rollout"):
            envs.rollout = partial(self._time_rollout, envs.rollout)

    def restart(self) -> None:
        """Restarts from 0."""
        self.began = self.returned = time.perf_counter()
        self.seconds = 0.0
        self._played: dict[int, tuple[SmallPolicy, Floats, Steps, int]] = {}

    def acting_alone(self) -> float:
        """Seconds that compiled policies take to repeat the actions of ``rollout``; 0 if it was not called."""
        seconds = 0.0
        for small_policy, noise, steps, stop in self._played.values():
            _, num_envs, inputs = steps.observations.shape
            again = Steps.allocate(
                stop, num_envs, inputs=inputs, actions=len(small_policy.low), units=steps.states.shape[2]
            )
            again.observations[:] = steps.observations[: stop + 1]
            env_actions = np.zeros((num_envs, len(small_policy.low)), np.float32)
            starts = np.zeros((stop, num_envs), np.bool_)
            remembered = small_policy.memory.state.copy(), small_policy.memory.previous.copy()
            begin = time.perf_counter()
            cast(Any, act_repeatedly)(small_policy, starts, noise[:stop], again, env_actions)
            seconds += time.perf_counter() - begin
            small_policy.memory.state[:], small_policy.memory.previous[:] = remembered  # the training goes on with it
        return seconds

    def _time(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        result = call(*args, **kwargs)
        self.returned = time.perf_counter()
        self.seconds += self.returned - begin
        return result

    def _time_rollout(self, call: Any, policy: SmallPolicy, noise: Any, steps: Steps, first: int, last: int) -> Any:
        stop, info = self._time(call, policy, noise, steps, first, last)
        self._played[id(steps)] = policy, noise, steps, stop  # earlier calls wrote the rows before ``first``
        return stop, info


class ProfiledSession(RunSession):
    """Times the parts of every update.

    Attributes:
        updates: For each update the seconds of its parts, by name, and its ``steps``.
        compiled: Whether the environment makes many steps in one compiled call.
    """

    def make_envs(self, rollout_steps: int | None) -> RecordEpisodes:
        """See ``Session.make_envs``."""
        recorder = super().make_envs(rollout_steps)
        self._inner, self._outer = Stopwatch(recorder.env), Stopwatch(recorder)
        self.updates: list[dict[str, float]] = []
        return recorder

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        """See ``Session.log``."""
        learned = time.perf_counter()
        super().log(update, steps=steps, **metrics)
        written = time.perf_counter() - learned
        inner, outer = self._inner, self._outer
        acting = inner.acting_alone()
        self.compiled = acting > 0.0
        self.updates.append(
            {
                "environment": inner.seconds - acting,
                "inference": outer.returned - outer.began - outer.seconds + acting,
                "update": learned - outer.returned,
                "statistics": outer.seconds - inner.seconds + written,
                "steps": steps,
            }
        )

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        """See ``Session.save``."""
        super().save(update, state)
        self._inner.restart()
        self._outer.restart()


def measure_profile(
    config: RunConfig, algorithm: Algorithm, updates: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Times the parts of an update with native vector environments, if there are any, and with sync ones.

    Ignores the vectorization and number of updates of ``config``; times ``updates`` of them.

    Returns:
        ``rows``, one for each mode: medians of the parts' seconds and of the steps, and whether many steps are made in
        one compiled call.

    Raises:
        GymDrError: The environment cannot be made, or does not fit the algorithm.
    """
    report("profiling an update")
    options = replace(config.options, updates=_WARM_UP + updates)
    rows = []
    for mode in ("native", "sync"):
        try:
            check_vectorization(config.settings.env, mode)
        except ConfigError:  # no native environment
            continue
        settings = replace(config.settings, vectorization=mode)
        with temporary_session(ProfiledSession, replace(config, settings=settings, options=options)) as session:
            algorithm.train_function()(session, options)
        counted = session.updates[_WARM_UP:]
        medians = {name: statistics.median(update[name] for update in counted) for name in ("steps", *PARTS)}
        rows.append({"mode": mode, "num_envs": settings.num_envs, "compiled": session.compiled, **medians})
    return {"rows": rows}
