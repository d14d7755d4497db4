"""Random numbers inside tasks, such as new commands: keyed, like draws, so that all kinds of environments agree."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Words
from gym_dr.randomization.normal import normal_ppf
from gym_dr.randomization.sampler import uniforms

Size = int | tuple[int, ...]  # of the numbers of one episode
_STEP = 32  # bits of the index word that hold the episode; the others hold the step


class KeyedRandom:
    """Random numbers of n episodes at their current steps.

    Each depends only on (sub-environment's seed, number of the episode since it was seeded, step, name), and not on how
    many there are, what else is drawn, or whether the environment is single, sync or native. The same name in the same
    step gives the same numbers.
    """

    def __init__(self, seed_words: Words, episodes: Indices, steps: Indices) -> None:
        """Takes the keys.

        Args:
            seed_words: Seed words of the sub-environments, shape ``(n,)``.
            episodes: Numbers of their episodes, shape ``(n,)``.
            steps: Steps of the episodes so far, shape ``(n,)``; 0 in ``reset``.
        """
        self._seeds = seed_words
        self._index = episodes.astype(np.uint64) | (steps.astype(np.uint64) << np.uint64(_STEP))

    def uniform(self, name: str, low: npt.ArrayLike = 0.0, high: npt.ArrayLike = 1.0, size: Size = ()) -> Array:
        """Uniform numbers between two bounds.

        Args:
            name: Names the numbers: others in the same step need another name.
            low: Lower bounds, which broadcast with the result.
            high: Upper bounds, likewise.
            size: Shape of the numbers of one episode.

        Returns:
            Shape ``(n, *size)``.
        """
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        return np.asarray(low + self._units(name, size) * (high - low))

    def normal(self, name: str, mean: npt.ArrayLike = 0.0, std: npt.ArrayLike = 1.0, size: Size = ()) -> Array:
        """Normal numbers, shape ``(n, *size)``; mean and standard deviation broadcast with them."""
        return np.asarray(mean + normal_ppf(self._units(name, size)) * np.asarray(std), np.float64)

    def _units(self, name: str, size: Size) -> Array:
        shape = (size,) if isinstance(size, int) else tuple(size)
        names = [f"task\0{name}\0{k}" for k in range(math.prod(shape))]
        return uniforms(self._seeds, self._index, names).T.reshape(len(self._seeds), *shape)
