"""Samplers, which make the draws: keyed ones of a fixed randomization, or ones that learn from finished episodes.

A keyed draw depends only on (sub-environment's seed, draw index, parameter name). Adding a parameter, changing the
number of sub-environments, resetting some of them or choosing another kind of vector environment therefore changes no
other draw, and two integers are enough to repeat any draw.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Words
from gym_dr.errors import CheckpointError, RandomizationError, check_known
from gym_dr.options import check_values
from gym_dr.randomization.normal import normal_cdf, normal_ppf
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, load_object

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, float | str]  # of the table of a sampler's updates: column -> value
UNIFORM = "uniform"  # the sampler that never changes
# Philox4x32-10: Salmon, Moraes, Dror and Shaw (2011), "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
LOW_32 = np.uint64(0xFFFFFFFF)
SHIFT_32 = np.uint64(32)
_CHUNK = 8192  # uniforms at a time, so that intermediate words stay in the processor's cache


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


# ---- keyed draws -----------------------------------------------------------------------------------------------------


def philox(counter: tuple[Words, Words, Words, Words], key: tuple[Words, Words]) -> tuple[Words, Words, Words, Words]:
    """Philox4x32-10, a counter-based random number generator (Salmon et al. 2011).

    Args:
        counter: Four uint64 arrays that hold 32-bit words.
        key: Two uint64 arrays that hold 32-bit words; they broadcast with the counters.

    Returns:
        Four random words for each counter and key, in uint64.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product0 = c0 * MULTIPLIERS[0]
        product1 = c2 * MULTIPLIERS[1]
        c0 = (product1 >> SHIFT_32) ^ c1 ^ k0
        c2 = (product0 >> SHIFT_32) ^ c3 ^ k1
        c1 = product1 & LOW_32
        c3 = product0 & LOW_32
        k0, k1 = (k0 + KEY_STEPS[0]) & LOW_32, (k1 + KEY_STEPS[1]) & LOW_32
    return c0, c1, c2, c3


def seed_word(seed: int) -> int:
    """The 64-bit word for a seed of any size.

    Seeds below 2**64 are used as they are; larger ones, such as Gymnasium's random seeds, are hashed (BLAKE2b).

    Raises:
        RandomizationError: The seed is negative.
    """
    seed = int(seed)
    if seed < 0:
        raise RandomizationError(f"Expected a seed >= 0, got {seed}.")
    if seed < 2**64:
        return seed
    return _hash_word(seed.to_bytes((seed.bit_length() + 7) // 8, "little"))


def name_word(name: str) -> int:
    """The 64-bit word for a name (BLAKE2b)."""
    return _hash_word(name.encode())


def uniforms(
    seeds: npt.ArrayLike, draw_index: npt.ArrayLike, names: Sequence[str], version: int | None = None
) -> Array:
    """Keyed uniform random numbers, identical on every platform and with every numpy version.

    Args:
        seeds: Seed words of the sub-environments (``seed_word``), shape ``(N,)`` uint64.
        draw_index: Draw index of each sub-environment, shape ``(N,)`` or one for all, >= 0.
        names: The parameters; each has its own stream, keyed by its ``name_word``.
        version: Version of a sampler that learns, part of the key; None for one that never changes.

    Returns:
        Multiples of 2**-53 strictly between 0 and 1, shape ``(len(names), N)`` float64.
    """
    seed_words = np.asarray(seeds, dtype=np.uint64)
    index_words = np.broadcast_to(np.asarray(draw_index).astype(np.uint64), seed_words.shape)
    keyed = names if version is None else [f"{name}\0{version}" for name in names]
    keys = np.array([name_word(name) for name in keyed], dtype=np.uint64)[:, None]
    key = keys & LOW_32, keys >> SHIFT_32
    out = np.empty((len(names), seed_words.size))
    step = max(1, _CHUNK // max(1, len(names)))
    for start in range(0, seed_words.size, step):
        part = slice(start, start + step)
        seed, index = seed_words[part], index_words[part]
        c0, c1, _, _ = philox((seed & LOW_32, seed >> SHIFT_32, index & LOW_32, index >> SHIFT_32), key)
        # the top 52 of 64 bits, moved to the middle of their interval: exact in float64, never 0 or 1
        bits = ((c1 << SHIFT_32) | c0) >> np.uint64(12)
        out[:, part] = (bits.astype(np.float64) + 0.5) * 2.0**-52
    return out


def draw(
    randomization: Randomization,
    space: ParamSpace,
    seeds: npt.ArrayLike,
    draw_index: npt.ArrayLike,
    version: int | None = None,
) -> dict[str, Array]:
    """Draws every randomized parameter once for each sub-environment.

    Args:
        randomization: The parameters that vary; already checked against ``space``.
        space: The environment's parameters, with nominal values and bounds.
        seeds: Seed words of the sub-environments (``seed_word``), shape ``(N,)`` uint64.
        draw_index: Draw index of each sub-environment, shape ``(N,)`` or one for all.
        version: As for ``uniforms``.

    Returns:
        name -> values of shape ``(N,)`` float64, for the randomized parameters only.
    """
    names = list(randomization)
    return values_at(randomization, space, dict(zip(names, uniforms(seeds, draw_index, names, version), strict=True)))


def values_at(randomization: Randomization, space: ParamSpace, u: Mapping[str, Array]) -> dict[str, Array]:
    """Turns uniforms into values: applies correlation, quantile function, operation and bounds, in this order.

    Args:
        randomization: The parameters that vary.
        space: The environment's parameters, with nominal values and bounds.
        u: name -> uniforms strictly between 0 and 1, shape ``(N,)``, for every randomized parameter.

    Returns:
        name -> values of shape ``(N,)`` float64.
    """
    u = dict(u)
    if randomization.correlation is not None:
        u.update(_correlated(u, randomization.correlation.names, randomization.correlation.cholesky))
    drawn = {}
    for name, rule in randomization.rules:
        param = space[name]
        values = rule.apply(param.nominal, rule.distribution.ppf(u[name]))
        # nominal x draw may round to one ulp past a bound, or to -0
        drawn[name] = np.clip(values, param.low, param.high) + 0.0
    return drawn


def sample(randomization: Randomization, space: ParamSpace, n: int, seed: int = 0) -> pd.DataFrame:
    """Draws from a randomization: a row for each draw, a column for each parameter.

    Row i is draw i of a sub-environment that was reset with this seed.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=1)
        >>> table = gym_dr.sample(envs.randomization, envs.param_space, 1000, seed=1)
        >>> bool(-12 <= table["gravity"].min() <= table["gravity"].max() <= 0)
        True
        >>> envs.close()

    Args:
        randomization: The parameters that vary.
        space: The environment's parameters, ``envs.param_space``.
        n: Number of draws.
        seed: Seed of the sub-environment, at least 0.

    Returns:
        Shape ``(n, parameters)``, in each parameter's unit.

    Raises:
        RandomizationError: The seed is negative, or the randomization does not fit the space.
        UnknownNameError: The space has no such parameter.
    """
    import pandas as pd  # heavy

    seed_words = np.full(int(n), seed_word(seed), np.uint64)
    values = draw(resolve(randomization, space), space, seed_words, np.arange(n))
    return pd.DataFrame(values, index=pd.RangeIndex(int(n), name="draw_index"))


@dataclass(frozen=True)
class FixedSampler:
    """An environment's own sampler: keyed draws of a randomization that never changes."""

    space: ParamSpace
    support: Randomization
    version: None = None

    def draw(self, seeds: Words, draw_index: Indices, version: int | None = None) -> dict[str, Array]:
        """See ``ParamSampler.draw``; there is only one version."""
        return draw(self.support, self.space, seeds, draw_index)

    def update(self, episodes: Sequence[EpisodeRecord]) -> None:
        """Does nothing."""

    def state(self) -> dict[str, Any]:
        """Empty: there is nothing to save."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Does nothing."""


def _correlated(u: dict[str, Array], names: Sequence[str], cholesky: Array) -> dict[str, Array]:
    """Gaussian copula: correlates the normal scores of the named uniforms and maps them back to uniforms."""
    scores = np.stack([normal_ppf(u[name]) for name in names])
    mixed = {}
    for row, name in enumerate(names):
        # not a matrix product, whose rounding would depend on how many are drawn at once
        score = sum((cholesky[row, k] * scores[k] for k in range(row + 1)), start=np.zeros(scores.shape[1]))
        mixed[name] = np.clip(normal_cdf(score), 2.0**-53, 1.0 - 2.0**-53)
    mixed[names[0]] = u[names[0]]
    return mixed


def _hash_word(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
