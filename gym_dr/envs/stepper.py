"""The compiled step of many sub-environments behind a plain Python interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_dr.arrays import Indices
from gym_dr.compiled.play import StepBuffers
from gym_dr.compiled.processors import usable_threads
from gym_dr.compiled.structs import Job, Struct

_FEWEST = 5  # sub-environments of a thread in a rollout, of many steps


def threads_for(num_envs: int, num_threads: int | None) -> int:
    """How many threads play ``num_envs`` sub-environments: at most ``num_threads``, or the usable ones if None."""
    return min(num_threads or usable_threads(), max(1, num_envs // _FEWEST))


class Stepper:
    """Steps sub-environments through ``buffers``; a step may begin an episode instead.

    Attributes:
        buffers: Inputs and outputs.
        job: ``step(group, first, last)``.
        groups: Its first argument for each thread, with scratch memory of its own.
        chunk: Most sub-environments that a thread takes at a time in a step.
        least: Fewest of a thread in a step: waking it must pay.
    """

    def __init__(self, job: Job, groups: Sequence[Any], buffers: StepBuffers, *, chunk: int, least: int) -> None:
        """Packs the groups, which share the ``buffers``."""
        self.job, self.buffers, self.chunk, self.least = job, buffers, chunk, least
        self.groups = [Struct(group) for group in groups]
        self.num_envs = len(buffers.rewards)
        self.addresses: Indices = np.array([group.address for group in self.groups])

    def step(self) -> None:
        """Steps all sub-environments on the calling thread, which gets errors."""
        self.job(self.groups[0], 0, self.num_envs)
