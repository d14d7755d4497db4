"""The keyed random numbers of a step of every sub-environment, in compiled code.

They equal ``randomization.sampler.uniforms`` and ``randomization.normal.normal_ppf`` bit for bit. Those take at least a
hundred microseconds, however few numbers are needed; a step of sixteen landers takes less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array, Indices, Words
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL
from gym_dr.randomization.normal import CENTER_DEN, CENTER_NUM, FAR_DEN, FAR_NUM, TAIL_DEN, TAIL_NUM
from gym_dr.randomization.sampler import KEY_STEPS, LOW_32, MULTIPLIERS, ROUNDS, SHIFT_32, name_word
from gym_dr.randomization.table import ParamTable

_M0, _M1 = MULTIPLIERS
_K0, _K1 = KEY_STEPS
_12 = np.uint64(12)


class KeyedNoise:
    """Random numbers by name; each depends only on (seed word, draw index, step, name)."""

    def __init__(self, normals: Sequence[str], uniforms: Sequence[str] = ()) -> None:
        """Hashes the names.

        Args:
            normals: Names of standard normal numbers.
            uniforms: Names of uniform numbers strictly between 0 and 1.
        """
        self._keys = np.array([name_word(name) for name in (*normals, *uniforms)], np.uint64)
        self._normals = len(normals)

    def draw(self, seed_words: Words, index: Indices, steps: Indices, table: Array) -> None:
        """Fills ``table`` (names, N), normals first, with one number of each name for every sub-environment.

        Args:
            seed_words: Seed words, shape ``(N,)``.
            index: The current draw indices, shape ``(N,)``; -1, before the first draw, counts as 0.
            steps: Shape ``(N,)``, the upper half of the index word: 0 for the episode's own numbers.
            table: The array to fill.
        """
        logs = np.empty((self._normals, len(seed_words)))
        _fill_uniforms(seed_words, index, steps, self._keys, table, logs)
        # numpy's logarithm, since other libraries sometimes differ in the last bit
        to_normals(table, np.log(logs, out=logs))


class HeldNoise:
    """Standard normal numbers that stay for some steps of an episode, and are then drawn again.

    Attributes:
        scores: The current numbers, shape ``(names, N)``.
    """

    def __init__(self, normals: Sequence[str], num_envs: int) -> None:
        """Hashes the names; the first numbers are 0."""
        self._keyed, self.scores = KeyedNoise(normals), np.zeros((len(normals), num_envs))
        # how often they were drawn again in the current episodes, and the ages at which they will be
        self._times, self._until = np.zeros(num_envs, np.int64), np.full(num_envs, np.inf)

    def begin(self, envs: Indices) -> None:
        """Begins episodes; the next ``draw`` draws their first numbers."""
        self._times[envs], self._until[envs] = -1, 0

    def draw(self, table: ParamTable, ages: Indices, intervals: npt.ArrayLike) -> Indices:
        """Draws anew where it is time.

        Args:
            table: Whose seed words and draw indices are the keys.
            ages: Steps of the current episodes, shape ``(N,)``.
            intervals: Steps for which numbers stay, shape ``(N,)`` or one for all; 0 for a whole episode.

        Returns:
            The sub-environments whose numbers are new.
        """
        due = np.flatnonzero(ages >= self._until)
        if len(due):
            lasting = np.broadcast_to(intervals, ages.shape)[due]
            self._until[due] = np.where(lasting > 0, ages[due] + lasting, np.inf)
            self._times[due] += 1
            scores = np.empty((len(self.scores), len(due)))
            self._keyed.draw(table.seed_words[due], table.index[due], self._times[due], scores)
            self.scores[:, due] = scores
        return due


@njit(**ENTRY)
def _fill_uniforms(seed_words, index, steps, keys, table, nearest):
    """``draws.uniforms``, with the index word ``index | steps << 32``; ``nearest`` is the distance to 0 or 1."""
    for k in range(len(keys)):
        for i in range(len(seed_words)):
            word = (np.uint64(max(index[i], 0))) | (np.uint64(steps[i]) << SHIFT_32)
            k0, k1 = keys[k] & LOW_32, keys[k] >> SHIFT_32
            c0, c1 = seed_words[i] & LOW_32, seed_words[i] >> SHIFT_32
            c2, c3 = word & LOW_32, word >> SHIFT_32
            for _ in range(ROUNDS):
                product0 = c0 * _M0
                product1 = c2 * _M1
                c0 = (product1 >> SHIFT_32) ^ c1 ^ k0
                c2 = (product0 >> SHIFT_32) ^ c3 ^ k1
                c1 = product1 & LOW_32
                c3 = product0 & LOW_32
                k0, k1 = (k0 + _K0) & LOW_32, (k1 + _K1) & LOW_32
            bits = ((c1 << SHIFT_32) | c0) >> _12
            uniform = (np.float64(bits) + 0.5) * 2.0**-52
            table[k, i] = uniform
            if k < nearest.shape[0]:
                nearest[k, i] = min(uniform, 1.0 - uniform)


@njit(**KERNEL)
def _ratio(numerator, denominator, x):
    """Two polynomials of x, by Horner's rule as in ``np.polyval``."""
    above, below = numerator[0], denominator[0]
    for i in range(1, len(numerator)):
        above = above * x + numerator[i]
        below = below * x + denominator[i]
    return above, below


@njit(**ENTRY)
def to_normals(table, logs):
    """Applies ``normal.normal_ppf`` in place to the first rows; ``logs`` are those of the distance to 0 or 1."""
    for k in range(logs.shape[0]):
        for i in range(logs.shape[1]):
            q = table[k, i] - 0.5
            if abs(q) <= 0.425:
                above, below = _ratio(CENTER_NUM, CENTER_DEN, 0.180625 - q * q)
                table[k, i] = q * above / below
                continue
            r = np.sqrt(-logs[k, i])
            if r <= 5.0:
                above, below = _ratio(TAIL_NUM, TAIL_DEN, min(r - 1.6, 3.4))
            else:
                above, below = _ratio(FAR_NUM, FAR_DEN, r - 5.0)
            table[k, i] = np.copysign(above / below, q)


cache_on_disk(_fill_uniforms, "keyed noise")
cache_on_disk(to_normals, "normal noise")
