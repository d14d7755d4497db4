"""Samplers, which make the draws: from a fixed randomization, or learning from finished episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from gym_dr.arrays import Array, Indices, Words
from gym_dr.errors import CheckpointError, RandomizationError, check_known
from gym_dr.options import check_values
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, load_object


class EpisodeRecord(NamedTuple):
    """One finished episode of one sub-environment; a tuple, since a training makes thousands of them a second."""

    env_index: int  # of the sub-environment
    seed: int | None  # in the key of the draw; the sub-environment's own, except for shared draws
    draw_index: int  # in the key of the draw, so that the draw can be repeated; -1 in environments without draws
    params: Mapping[str, float]  # the values: drawn, or set by set_params or options
    episode_return: float  # sum of rewards
    length: int  # steps
    terminated: bool  # whether the environment ended it rather than the step limit
    version: int | None = None  # of the sampler that drew it; None for one that never changes
    diverged: bool = False  # whether the simulation did, whose return is no evidence
    reward_terms: Mapping[str, float] = {}  # sums of what info reports as "reward_...", such as "reward_forward"


Row = Mapping[str, float | str]  # of the table of a sampler's updates: column -> value


class ParamSampler(Protocol):
    """A source of keyed draws.

    A draw depends on (sub-environment's seed, draw index, parameter name), and on ``version`` if the sampler learns. It
    must not depend on how many are drawn at once or in which order. A sampler changes only in ``update`` and
    ``load_state``, and then changes its ``version``, so that draws made in advance are made anew.

    A sampler for a certain number of sub-environments has an attribute ``training``, its ``TrainingInfo``.
    """

    @property
    def support(self) -> Randomization:
        """The widest randomization that it may draw from, used for context ranges and evaluation. Never changes."""

    @property
    def version(self) -> int | None:
        """Part of the keys of its draws; None for a sampler that never changes."""

    def draw(self, seeds: Words, draw_index: Indices, version: int | None = None) -> Mapping[str, Array]:
        """Draws every parameter of ``support``.

        Args:
            seeds: Seed words (``draws.seed_word``), shape ``(K,)``.
            draw_index: Draw index for each seed, shape ``(K,)``.
            version: An earlier version, whose draws are repeated; None for the current one.

        Returns:
            name -> values of shape ``(K,)``.

        Raises:
            RandomizationError: There has been no such version yet.
        """

    def update(self, episodes: Sequence[EpisodeRecord]) -> Sequence[Row] | None:
        """Learns from the episodes that finished since the last call; called between rollouts.

        Returns:
            A row for each time that it learned; None if it keeps no record.
        """

    def state(self) -> dict[str, Any]:
        """Everything learned so far, as plain values and tensors, for checkpoints."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores a state that ``state`` returned."""


@dataclass(frozen=True, kw_only=True)
class TrainingInfo:
    """The facts about a training that a learning sampler needs."""

    num_envs: int = 1  # sub-environments whose episodes it receives
    reward_threshold: float | None = None  # return at which the environment counts as solved


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A kind of sampler that a run can use. A string "module:name" is imported when needed."""

    name: str  # as in gym_dr.train(..., sampler=NAME)
    summary: str  # one line for ``gymdr list samplers``
    make: (
        Callable[..., ParamSampler] | str
    )  # called with space, randomization and, if it has options, options and training
    options: type | str | None = None  # frozen dataclass whose fields were made with ``option``

    def option_fields(self) -> tuple[dataclasses.Field[Any], ...]:
        """The fields of its options; empty if it has none."""
        kind = load_object(self.options)
        return () if kind is None else dataclasses.fields(kind)

    def make_options(self, values: Mapping[str, Any]) -> Any:
        """An instance of its options; None if it has none.

        Raises:
            UnknownNameError: There is no such option, or a value is not among its choices.
            ConfigError: A value is out of range.
        """
        known = [field.name for field in self.option_fields()]
        for name in values:
            check_known(f"option of sampler {self.name!r}", name, known)
        made = load_object(self.options)(**values) if known else None
        if made is not None:
            check_values(made)
        return made

    def for_space(
        self, space: ParamSpace, randomization: Randomization, options: Any = None, training: TrainingInfo | None = None
    ) -> ParamSampler:
        """A new sampler for an environment.

        Args:
            space: The environment's parameters.
            randomization: The parameters that vary, with their widest ranges.
            options: From ``make_options``; None for the defaults.
            training: The training; None for one sub-environment without a threshold of its own.
        """
        kind = load_object(self.options)
        extra = () if kind is None else (options or kind(), training or TrainingInfo())
        return cast(ParamSampler, load_object(self.make)(space, randomization, *extra))


SAMPLERS: Registry[Sampler] = Registry("sampler")
UNIFORM = "uniform"  # the sampler that never changes


def restore(sampler: ParamSampler, state: Mapping[str, Any]) -> None:
    """Restores a saved state; if it is damaged, the sampler stays as it is.

    Raises:
        CheckpointError: The state does not fit the sampler.
    """
    before = sampler.state()
    try:
        sampler.load_state(state)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        sampler.load_state(before)
        raise CheckpointError(f"The saved state of the sampler is damaged or another sampler's ({error!r}).") from None


def check_support(sampler: ParamSampler, randomization: Randomization) -> None:
    """Checks that a sampler can replace an environment's own.

    Raises:
        RandomizationError: Its support is not the environment's randomization.
    """
    support = getattr(sampler, "support", sampler)  # of something else, to show it
    if not isinstance(support, Randomization) or (
        (support.rules, support.correlation) != (randomization.rules, randomization.correlation)
    ):
        raise RandomizationError(
            f"Expected a sampler whose support is the environment's randomization, {randomization!r}, got "
            f"{support!r}. Make the sampler from env.randomization, which includes the switches that it turns on."
        )
