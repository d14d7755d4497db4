"""A sampler for gym_dr: ranges that widen at a constant rate, from the start to the whole randomization."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr import ParamSpace, Randomization
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.options import option
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.randomization.adaptive.box import QuantileBox
from gym_dr.randomization.sampler import EpisodeRecord, Row, Sampler, TrainingInfo, uniforms

Words, Indices, Array = npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class WideningOptions:
    """The options of ``gymdr train ... --sampler widening``."""

    start: str = option("nominal", "initial ranges: nominal, or a preset")
    start_width: float = option(0.25, "width of the initial ranges around nominal values, as a share of the whole")
    widening_episodes: int = option(20_000, "episodes until draws cover the whole randomization")

    def __post_init__(self) -> None:
        if not 0.0 < self.start_width <= 1.0:
            raise ConfigError(f"start_width: expected above 0 and at most 1, got {self.start_width}.")
        if self.widening_episodes < 1:
            raise ConfigError(f"widening_episodes: expected at least 1, got {self.widening_episodes}.")


class Widening:
    """Draws uniformly from ranges that widen with the number of episodes, whatever their returns."""

    def __init__(
        self, space: ParamSpace, support: Randomization, options: WideningOptions, training: TrainingInfo
    ) -> None:
        """Starts with version 0; ``support`` has the widest ranges."""
        self.support, self.options = support, options
        self.box = QuantileBox(space, support)  # turns quantiles into values
        self.first = self.box.start(options.start, options.start_width)  # lower and upper ends, (parameters, 2)
        self.episodes = [0]  # number of episodes at each version, which determines its draws

    @property
    def version(self) -> int:
        """Number of changes so far; part of the keys of draws."""
        return len(self.episodes) - 1

    def draw(self, seeds: Words, draw_index: Indices, version: int | None = None) -> dict[str, Array]:
        """The draws of a version so far, by default the current one: name -> values, one for each key."""
        version = self.version if version is None else version
        if not 0 <= version <= self.version:
            raise RandomizationError(f"Expected a version from 0 to {self.version}, got {version}.")
        share = min(1.0, self.episodes[version] / self.options.widening_episodes)
        low, high = (self.first + share * ([0.0, 1.0] - self.first)).T[:, :, None]
        return self.box.values(low + (high - low) * uniforms(seeds, draw_index, self.box.names, version))

    def update(self, episodes: Sequence[EpisodeRecord]) -> list[Row]:
        """Counts episodes; returns a row for ``sampler.csv`` if the ranges have changed."""
        if not episodes or self.episodes[-1] >= self.options.widening_episodes:
            return []
        self.episodes.append(self.episodes[-1] + len(episodes))
        return [{"version": self.version, "share": min(1.0, self.episodes[-1] / self.options.widening_episodes)}]

    def state(self) -> dict[str, Any]:
        """The sampler's state as plain values, for checkpoints."""
        return {"episodes": list(self.episodes)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores the result of ``state``."""
        self.episodes = [int(count) for count in state["episodes"]]


WIDENING = Sampler(
    name="widening",
    summary="Widens ranges at a constant rate, whatever the policy does.",
    make=Widening,
    options=WideningOptions,
)


@hookimpl
def gym_dr_register_samplers(register: Callable[[Sampler], None]) -> None:
    """Registers the sampler with gym_dr."""
    register(WIDENING)
