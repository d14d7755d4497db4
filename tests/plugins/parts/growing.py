"""A sampler in one file, which changes as it goes, as those that learn do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr import ParamSpace, Randomization
from gym_dr.errors import RandomizationError
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.randomization.sampler import EpisodeRecord, Sampler, uniforms


class GrowingSampler:
    """Uniform on the lower part of each parameter's range; the part grows with the episodes that it learns from."""

    def __init__(self, space: ParamSpace, support: Randomization) -> None:
        self.space, self.support = space, support
        self.shares = [0.1]  # of all versions

    @property
    def version(self) -> int:
        return len(self.shares) - 1

    def draw(
        self, seeds: npt.NDArray[np.uint64], draw_index: npt.NDArray[np.int64], version: int | None = None
    ) -> dict[str, npt.NDArray[np.float64]]:
        version = self.version if version is None else version
        if not 0 <= version <= self.version:
            raise RandomizationError(f"Expected a version from 0 to {self.version}, got {version}.")
        u = uniforms(seeds, draw_index, list(self.support), version)
        drawn = {}
        for row, (name, rule) in zip(u, self.support.items(), strict=True):
            low, high = rule.support(self.space[name].nominal)
            drawn[name] = low + self.shares[version] * (high - low) * row
        return drawn

    def update(self, episodes: Sequence[EpisodeRecord]) -> None:
        if episodes:
            grown = self.shares[-1] + 0.01 * len(episodes) + 1e-4 * abs(episodes[-1].episode_return)
            self.shares.append(min(1.0, grown))

    def state(self) -> dict[str, Any]:
        return {"shares": list(self.shares)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.shares = [float(share) for share in state["shares"]]


GROWING = Sampler(name="growing", summary="Learns from returns.", make=GrowingSampler)


@hookimpl
def gym_dr_register_samplers(register: Callable[[Sampler], None]) -> None:
    """Registers ``growing``."""
    register(GROWING)
