"""Where draws come from: a fixed randomization, or something that learns from finished episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError
from gym_dr.randomization.draws import draw
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, load_object


class FinishedEpisode(Protocol):
    """What a sampler learns from; ``EpisodeRecord`` is one."""

    @property
    def params(self) -> Mapping[str, float]:
        """The values that the episode was played under."""
        ...

    @property
    def episode_return(self) -> float:
        """Sum of rewards."""
        ...


class ParamSampler(Protocol):
    """A source of keyed draws.

    A draw follows from (sub-environment's seed, draw index, parameter name), and from ``version`` where the sampler
    learns. It must not depend on how many are drawn at once or in which order. A sampler changes in ``update`` and
    ``load_state`` only, and then changes its ``version``: draws that were looked up ahead are made again.
    """

    @property
    def support(self) -> Randomization:
        """The widest that it may draw from: what context ranges and evaluations use. Never changes."""
        ...

    @property
    def version(self) -> int | None:
        """Part of the keys of its draws; None for a sampler that never changes."""
        ...

    def draw(self, seeds: npt.NDArray[np.uint64], draw_index: npt.NDArray[np.int64]) -> Mapping[str, Array]:
        """Draws every parameter of ``support``.

        Args:
            seeds: Seed words (``draws.seed_word``), shape ``(K,)``.
            draw_index: Which draw of each seed, shape ``(K,)``.

        Returns:
            name -> values of shape ``(K,)``.
        """
        ...

    def update(self, episodes: Sequence[FinishedEpisode]) -> None:
        """Learns from the episodes that finished since the last call; called between rollouts."""
        ...

    def state(self) -> dict[str, Any]:
        """All that has been learned, as plain values and tensors: part of checkpoints."""
        ...

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what ``state`` gave."""
        ...


@dataclass(frozen=True)
class FixedSampler:
    """The keyed draws of a randomization, which never changes."""

    space: ParamSpace
    support: Randomization
    version: None = None

    def draw(self, seeds: npt.NDArray[np.uint64], draw_index: npt.NDArray[np.int64]) -> dict[str, Array]:
        """See ``ParamSampler.draw``."""
        return draw(self.support, self.space, seeds, draw_index)

    def update(self, episodes: Sequence[FinishedEpisode]) -> None:
        """Nothing to learn."""

    def state(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Nothing to load."""


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A kind of sampler that a run can use. Text "module:name" stands for what is imported when needed."""

    name: str  # gymdr train ... --sampler NAME
    summary: str  # one line for ``gymdr list samplers``
    make: Callable[[ParamSpace, Randomization], ParamSampler] | str  # called with what may vary and what does

    def for_space(self, space: ParamSpace, randomization: Randomization) -> ParamSampler:
        """A new sampler for an environment."""
        sampler: ParamSampler = load_object(self.make)(space, randomization)
        return sampler


SAMPLERS: Registry[Sampler] = Registry("sampler")
FIXED = "fixed"  # the name of the one that never changes


def check_support(sampler: ParamSampler, randomization: Randomization) -> None:
    """Checks that a sampler may take the place of an environment's own.

    Raises:
        RandomizationError: It draws from something else than what varies in the environment.
    """
    if sampler.support != randomization:
        raise RandomizationError(
            f"Expected a sampler whose support is the environment's randomization, {randomization!r}, got "
            f"{sampler.support!r}. Make the environment with randomization=sampler.support."
        )
