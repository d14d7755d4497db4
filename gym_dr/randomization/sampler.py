"""Where draws come from: a fixed randomization, or something that learns from finished episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, RandomizationError, unknown_name
from gym_dr.randomization.draws import draw
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, load_object


class FinishedEpisode(Protocol):
    """What a sampler learns from; ``EpisodeRecord`` is one."""

    @property
    def env_index(self) -> int:
        """Its sub-environment."""
        ...

    @property
    def seed(self) -> int | None:
        """The seed that its draw is keyed by."""
        ...

    @property
    def draw_index(self) -> int:
        """Which draw of that seed it is."""
        ...

    @property
    def params(self) -> Mapping[str, float]:
        """The values that the episode was played under."""
        ...

    @property
    def episode_return(self) -> float:
        """Sum of rewards."""
        ...

    @property
    def score(self) -> float | None:
        """What is to be learned from it, by the trainer's own measure; None where it gives none."""
        ...


Row = Mapping[str, float | str]  # of a table of what a sampler did: column -> value


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

    def replay(
        self, seeds: npt.NDArray[np.uint64], draw_index: npt.NDArray[np.int64], version: int | None
    ) -> Mapping[str, Array]:
        """The draws of any version so far at the keys of their sources (``EpisodeRecord.source``), as ``draw``.

        Raises:
            RandomizationError: The version has not been yet.
        """
        ...

    def update(self, episodes: Sequence[FinishedEpisode]) -> Sequence[Row] | None:
        """Learns from the episodes that finished since the last call; called between rollouts.

        Returns:
            What it did, a row for each time that it looked at its evidence; None if it keeps no record.
        """
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

    def replay(
        self, seeds: npt.NDArray[np.uint64], draw_index: npt.NDArray[np.int64], version: int | None = None
    ) -> dict[str, Array]:
        """See ``ParamSampler.replay``; there is one version."""
        return self.draw(seeds, draw_index)

    def update(self, episodes: Sequence[FinishedEpisode]) -> None:
        """Nothing to learn."""

    def state(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Nothing to load."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a sampler that learns may know of the training."""

    num_envs: int = 1  # sub-environments whose episodes it is given
    reward_threshold: float | None = None  # return from which the environment's makers call it solved


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A kind of sampler that a run can use. Text "module:name" stands for what is imported when needed."""

    name: str  # gymdr train ... --sampler NAME
    summary: str  # one line for ``gymdr list samplers``
    make: Callable[..., ParamSampler] | str  # called with space, randomization; options and task where it has options
    options: type | str | None = None  # frozen dataclass whose fields were made with ``option``
    needs: tuple[str, ...] = ()  # of SCORES and MASKS; what a trainer must offer, else the sampler is refused

    def option_fields(self) -> tuple[dataclasses.Field[Any], ...]:
        """The fields of its options; none for a sampler without."""
        kind = load_object(self.options)
        return () if kind is None else dataclasses.fields(kind)

    def make_options(self, values: Mapping[str, Any]) -> Any:
        """An instance of its options; None for a sampler that has none.

        Raises:
            UnknownNameError: It has no option of a name.
            ConfigError: A value is out of range.
        """
        known = [field.name for field in self.option_fields()]
        for name in values:
            if name not in known:
                raise unknown_name(f"option of sampler {self.name!r}", name, known)
        return load_object(self.options)(**values) if known else None

    def for_space(
        self, space: ParamSpace, randomization: Randomization, options: Any = None, task: Task | None = None
    ) -> ParamSampler:
        """A new sampler for an environment.

        Args:
            space: What may vary.
            randomization: What does, the widest that is drawn from.
            options: What ``make_options`` gave; None for its defaults.
            task: The training; without it one sub-environment, and no threshold but that of the options.

        Raises:
            ConfigError: Options for a sampler that has none, or of another one.
        """
        kind = load_object(self.options)
        if options is not None and (kind is None or not isinstance(options, kind)):
            expected = f"{kind.__name__}(...)" if kind else "no options"
            raise ConfigError(f"Sampler {self.name!r}: expected {expected}, got {options!r}.")
        extra = () if kind is None else (options or kind(), task or Task())
        sampler: ParamSampler = load_object(self.make)(space, randomization, *extra)
        return sampler


SAMPLERS: Registry[Sampler] = Registry("sampler")
SCORES = "scores of episodes"  # what samplers may need of trainers: advantages of all steps ...
MASKS = "losses without fresh draws"  # ... and that steps of draws that replay nothing count in no loss
UNIFORM = "uniform"  # the name of the one that never changes


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
