"""A sampler in one file, which changes as it goes, as those that learn do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr import ParamSpace, Randomization
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.randomization.draws import uniforms
from gym_dr.randomization.sampler import FinishedEpisode, Sampler


class GrowingSampler:
    """Uniform on the lower part of each parameter's range; the part grows with the episodes that it learns from."""

    def __init__(self, space: ParamSpace, support: Randomization) -> None:
        self.space, self.support = space, support
        self.version, self.share = 0, 0.1

    def draw(
        self, seeds: npt.NDArray[np.uint64], draw_index: npt.NDArray[np.int64]
    ) -> dict[str, npt.NDArray[np.float64]]:
        u = uniforms(seeds, draw_index, list(self.support), self.version)
        drawn = {}
        for row, (name, rule) in zip(u, self.support.items(), strict=True):
            low, high = rule.support(self.space[name].nominal)
            drawn[name] = low + self.share * (high - low) * row
        return drawn

    def update(self, episodes: Sequence[FinishedEpisode]) -> None:
        if episodes:
            self.share = min(1.0, self.share + 0.01 * len(episodes) + 1e-4 * abs(episodes[-1].episode_return))
            self.version += 1

    def state(self) -> dict[str, Any]:
        return {"share": self.share, "version": self.version}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.share, self.version = float(state["share"]), int(state["version"])


GROWING = Sampler(name="growing", summary="Learns from returns.", make=GrowingSampler)


@hookimpl
def gym_dr_register_samplers(register: Callable[[Sampler], None]) -> None:
    """Registers ``growing``."""
    register(GROWING)
