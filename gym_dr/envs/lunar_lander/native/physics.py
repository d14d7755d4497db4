"""The compiled step behind a plain Python interface: memory, threads and the one call into machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, cast

import numpy as np

from gym_dr.arrays import Array, Floats, Indices
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.pointers import Address, entry_point
from gym_dr.compiled.policy import SmallPolicy
from gym_dr.compiled.rollout import Exchange, rollout
from gym_dr.compiled.steps import Steps
from gym_dr.compiled.threads import Workers, usable_threads
from gym_dr.envs.lunar_lander.constants import WIND_INDEX_HIGH, WIND_INDEX_LOW
from gym_dr.envs.lunar_lander.native.layout import LANES, PARAMETERS, S_FRESH
from gym_dr.envs.lunar_lander.native.memory import Actions, Environments, Landers, Scratch
from gym_dr.envs.lunar_lander.native.step import step
from gym_dr.envs.lunar_lander.physics import wind_strength

ENVIRONMENTS_A_THREAD = 128  # fewer are stepped sooner by one thread than handed to another

_GUST_STEPS = 2000  # of an episode for which wind is looked up instead of computed


@cache
def _gusts() -> Array:
    """Strength of the wind at every index from ``WIND_INDEX_LOW`` on."""
    return np.array([wind_strength(i) for i in range(WIND_INDEX_LOW, WIND_INDEX_HIGH + _GUST_STEPS)])


cache_on_disk(step, "the native LunarLander (about 20 s)")


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
        self.throttles: Array = np.zeros((num_envs, 2))  # continuous ones: main, side
        threads = min(num_threads or usable_threads(), max(1, num_envs // ENVIRONMENTS_A_THREAD))
        if num_threads is not None:
            threads = min(num_threads, max(1, num_envs // LANES))
        self._workers = Workers(threads)
        actions = Actions(self.choices, self.throttles, continuous)
        self._landers = [Landers(self.memory, actions, _gusts(), Scratch.allocate()) for _ in range(threads)]
        cast(Any, step)(self._landers[0], np.zeros(0, np.int64), 0, 0)  # compiles
        memory = self.memory
        results = memory.observations, memory.rewards, memory.terminations
        self._exchange = Exchange(self.choices, self.throttles, memory.status[:, S_FRESH], *results)
        self._step, self._step_address = entry_point(step), Address(step)

    @property
    def threads(self) -> int:
        """How many threads step the environments."""
        return self._workers.threads

    def begin(self, envs: Indices) -> None:
        """Marks sub-environments so that their next step begins an episode with ``memory.params``."""
        self.memory.status[envs, S_FRESH] = 1

    def step(self, envs: Indices) -> None:
        """Steps ``envs`` (each once) with their actions; results are in ``memory``."""
        envs = np.ascontiguousarray(envs, np.int64)  # as compiled code takes it
        if self._workers.threads == 1:
            self._step(self._landers[0], envs, 0, len(envs))
            return
        # whole pairs of blocks for each thread
        share = -(-len(envs) // self._workers.threads)
        share += -share % (2 * LANES)
        tasks: list[Callable[[], None]] = [
            partial(self._step, landers, envs, first, min(first + share, len(envs)))
            for first, landers in zip(range(0, len(envs), share), self._landers, strict=False)
        ]
        self._workers.run(tasks)

    def rollout(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, elapsed: Indices, max_steps: int, rows: tuple[int, int]
    ) -> int:
        """Fills rows of ``steps`` with all environments on the calling thread, until an episode ends.

        Args:
            policy: Chooses the actions.
            noise: Shape ``(T, num_envs, numbers)`` float32, see ``compiled.policy.choose``.
            steps: Filled; ``observations[rows[0]]`` is read.
            elapsed: Shape ``(num_envs,)`` steps of the episodes under way, kept up to date.
            max_steps: After which an episode is truncated.
            rows: The first to fill and the one after the last.

        Returns:
            The row after the last one filled.
        """
        stop: int = cast(Any, rollout)(
            self._step_address, self._landers[0], self._exchange, policy, noise, steps, elapsed, max_steps, rows
        )
        return stop

    def close(self) -> None:
        """Ends the threads."""
        self._workers.close()


def bytes_needed(num_envs: int) -> int:
    """Memory for ``num_envs`` sub-environments in bytes, with their parameters and draws ahead."""
    arrays = sum(array.nbytes for array in Environments.allocate(1))
    return num_envs * (arrays + 8 * (2 * PARAMETERS + 4 * PARAMETERS + 8))
