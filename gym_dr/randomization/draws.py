"""Keyed draws: every value depends only on (sub-environment's seed, draw index, parameter name).

Adding a parameter, changing the number of sub-environments, resetting some of them or choosing another kind of vector
environment therefore changes no other draw, and two integers are enough to repeat any draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Words
from gym_dr.errors import RandomizationError
from gym_dr.randomization.normal import normal_cdf, normal_ppf
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

if TYPE_CHECKING:
    import pandas as pd

# Philox4x32-10: Salmon, Moraes, Dror and Shaw (2011), "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
LOW_32 = np.uint64(0xFFFFFFFF)
SHIFT_32 = np.uint64(32)
_CHUNK = 8192  # uniforms at a time, so that intermediate words stay in the processor's cache


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
