"""The compiled step behind a plain Python interface: memory, threads and the one call into machine code."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gym_dr.compiled.cache import keep
from gym_dr.compiled.policy import SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.envs.lunar_lander import constants
from gym_dr.envs.lunar_lander.constants import WIND_INDEX_HIGH, WIND_INDEX_LOW
from gym_dr.envs.lunar_lander.native import compiler, layout
from gym_dr.envs.lunar_lander.native.layout import CHUNK, LANES, PARAMETERS, S_FRESH
from gym_dr.envs.lunar_lander.native.memory import Environments, Scratch
from gym_dr.envs.lunar_lander.native.play import Address, play
from gym_dr.envs.lunar_lander.native.step import step
from gym_dr.envs.lunar_lander.native.workers import Workers
from gym_dr.envs.lunar_lander.physics import wind_strength

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

ENVIRONMENTS_A_THREAD = 128  # fewer are stepped sooner by one thread than handed to another

_GUST_STEPS = 2000  # of an episode for which wind is looked up instead of computed


@cache
def _gusts() -> npt.NDArray[np.float64]:
    """Strength of the wind at every index from ``WIND_INDEX_LOW`` on."""
    return np.array([wind_strength(i) for i in range(WIND_INDEX_LOW, WIND_INDEX_HIGH + _GUST_STEPS)])


SOURCES = [
    Path(constants.__file__),
    *(path for path in sorted(Path(__file__).parent.glob("*.py")) if b"njit" in path.read_bytes()),
    Path(compiler.__file__),
    Path(layout.__file__),
]
"""What the machine code follows from."""

keep(step, "step", SOURCES, "the native LunarLander (about 20 s)")


def usable_threads() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Physics:
    """Steps any subset of ``num_envs`` native landers."""

    def __init__(self, num_envs: int, *, continuous: bool, num_threads: int | None) -> None:
        """Allocates memory and compiles, or loads what was compiled before.

        Args:
            num_envs: Number of sub-environments.
            continuous: Whether actions are throttles.
            num_threads: Threads to use at most; None for as many as there are processors.
        """
        self.memory = Environments.allocate(num_envs)
        self.choices: Indices = np.zeros(num_envs, np.int64)  # discrete actions of the next step
        self.throttles: npt.NDArray[np.float64] = np.zeros((num_envs, 2))  # continuous ones: main, side
        self._continuous = continuous
        threads = min(num_threads or usable_threads(), max(1, num_envs // ENVIRONMENTS_A_THREAD))
        if num_threads is not None:
            threads = min(num_threads, max(1, num_envs // LANES))
        self._workers = Workers(threads)
        self._scratch = [Scratch.allocate() for _ in range(threads)]
        self._all: Indices = np.arange(num_envs)
        memory = self.memory
        # what ``step`` and ``play`` take, in their order, before and after the environments that are meant
        self._inputs = (
            memory.rows,
            memory.terrain,
            memory.contact_ints,
            memory.contact_floats,
            memory.status,
            memory.params,
            memory.shaping,
            memory.streams,
            _gusts(),
            self.choices,
            self.throttles,
            self._continuous,
        )
        self._outputs = (memory.observations, memory.rewards, memory.terminations)
        self._run(np.zeros(0, np.int64), 0, 0, self._scratch[0])
        self._step_address = Address(step)

    @property
    def threads(self) -> int:
        """How many threads step the environments."""
        return self._workers.threads

    def begin(self, envs: Indices) -> None:
        """Marks sub-environments so that their next step begins an episode with ``memory.params``."""
        self.memory.status[envs, S_FRESH] = 1

    def step(self, envs: Indices) -> None:
        """Steps ``envs`` (each once) with their actions; results are in ``memory``."""
        if self._workers.threads == 1:
            self._run(envs, 0, len(envs), self._scratch[0])
            return
        # whole pairs of blocks for each thread
        share = -(-len(envs) // self._workers.threads)
        share += -share % (2 * LANES)
        tasks: list[Callable[[], None]] = [
            partial(self._run, envs, first, min(first + share, len(envs)), scratch)
            for first, scratch in zip(range(0, len(envs), share), self._scratch, strict=False)
        ]
        self._workers.run(tasks)

    def play(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, elapsed: Indices, max_steps: int, rows: tuple[int, int]
    ) -> int:
        """Plays rows of ``steps`` with all environments on the calling thread, until an episode ends.

        Args:
            policy: Chooses the actions.
            noise: Shape ``(T, num_envs, numbers)`` float32, see ``compiled.policy.choose``.
            steps: Filled; ``observations[rows[0]]`` is read.
            elapsed: Shape ``(num_envs,)`` steps of the episodes under way, kept up to date.
            max_steps: After which an episode is truncated.
            rows: The first to play and the one after the last.

        Returns:
            The row after the last one played.
        """
        scratch = self._scratch[0]
        applied = np.empty((len(elapsed), steps.sampled.shape[2]), np.float32)
        stop: int = cast(Any, play)(
            self._step_address,
            *self._inputs,
            self._all,
            *self._outputs,
            *scratch.arguments(),
            *policy.arguments(),
            noise,
            applied,
            steps.observations,
            steps.chosen,
            steps.sampled,
            steps.rewards,
            steps.terminated,
            steps.truncated,
            elapsed,
            max_steps,
            *rows,
        )
        return stop

    def close(self) -> None:
        """Ends the threads."""
        self._workers.close()

    def _run(self, envs: Indices, first: int, last: int, scratch: Scratch) -> None:
        cast(Any, step)(*self._inputs, envs, first, last, *self._outputs, *scratch.arguments())


def bytes_needed(num_envs: int) -> int:
    """Memory for ``num_envs`` sub-environments in bytes, with their parameters and draws ahead."""
    one = Environments.allocate(1)
    arrays: int = sum(getattr(one, name).nbytes for name in one.__dataclass_fields__)
    return num_envs * (arrays + 8 * (2 * PARAMETERS + 4 * PARAMETERS + 8))


__all__ = ["CHUNK", "LANES", "Physics", "bytes_needed", "usable_threads"]
