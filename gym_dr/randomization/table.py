"""The parameter values of many sub-environments, episode after episode.

An episode's values come from four levels, each above the one before: nominal, drawn (by the sampler, or given by
whoever schedules draws), pinned (by hand, for all coming episodes) and exact (by hand, for one episode).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices, Mask, Words
from gym_dr.randomization.sampler import ParamSampler, check_support
from gym_dr.randomization.space import ParamSpace

_LOOK_AHEAD = 2**17  # numbers drawn at a time, over all sub-environments and parameters together, ...
_MIN_DEPTH, _MAX_DEPTH = 4, 64  # ... but at least and at most this number of draws for each sub-environment
_NOTHING = np.iinfo(np.int64).max  # the first of no draws: all others come before it


class ParamTable:
    """Values, draws and pins of ``num_envs`` sub-environments.

    A row is a parameter. The rows of ``space.nominal`` are always there and always reported. Others, which a space of
    hundreds of parameters leaves out, are added when one of them is set by hand; nan says that a sub-environment does
    not report one.

    Attributes:
        names: The parameters, one a row.
        current: Shape ``(len(names), num_envs)``, the values of the episodes under way.
        index: Shape ``(num_envs,)``, the draw of the episode under way; -1 before the first.
    """

    def __init__(self, space: ParamSpace, sampler: ParamSampler, num_envs: int, memory: Array | None = None) -> None:
        """Starts with nominal values.

        Args:
            space: The parameters.
            sampler: Where draws come from.
            num_envs: Number of sub-environments.
            memory: Shape ``(len(space.nominal), num_envs)``, becomes ``current`` where the physics read it in place.
        """
        self.space, self.num_envs = space, num_envs
        self.names: list[str] = list(space.nominal)
        self._base: Array = np.array(list(space.nominal.values()), np.float64)  # a row's value where nobody sets it
        self.current: Array = np.empty((len(self.names), num_envs)) if memory is None else memory
        self.current[:] = self._base[:, None]
        self.index: Indices = np.full(num_envs, -1, np.int64)
        self._pins: Array | None = None  # shape of current, nan where not pinned
        self._given_index: Indices | None = None  # (num_envs,), of given draws; -1 where the sampler draws
        self._lay_out_info()
        self._draws = _DrawCache(sampler, np.zeros(num_envs, np.uint64))
        self._drawn: Indices = np.array(self._rows_of(sampler.support), np.int64)
        self._given: Array = np.zeros((len(self._drawn), num_envs))  # draws in place of the sampler's

    @property
    def sampler(self) -> ParamSampler:
        """Where draws come from; another one counts from each sub-environment's next episode on."""
        return self._draws.sampler

    @sampler.setter
    def sampler(self, sampler: ParamSampler) -> None:
        check_support(sampler, self.sampler.support)
        if sampler is not self.sampler:
            self._draws = _DrawCache(sampler, self._draws.words)

    @property
    def words(self) -> Words:
        """The seed words that draws are keyed by, shape ``(num_envs,)``."""
        return self._draws.words

    def seed(self, envs: Indices, words: Words) -> None:
        """Starts the sequences of draws of some sub-environments anew, keyed by their seed words."""
        self._draws.seed(envs, words)
        self.index[envs] = -1

    def pin(self, values: Mapping[str, Array] | None, envs: Indices) -> None:
        """Fixes checked values from the next episode on, beside those pinned before; None removes all pins.

        Args:
            values: name -> shape ``(num_envs,)``.
            envs: The sub-environments that are meant.
        """
        rows = self._rows_of(values or ())
        if self._pins is None:
            self._pins = np.full(self.current.shape, np.nan)
        if values is None:
            self._pins[:, envs] = np.nan
        for row, array in zip(rows, (values or {}).values(), strict=True):
            self._pins[row, envs] = array[envs]
        if np.isnan(self._pins).all():
            self._pins = None

    @property
    def pinned(self) -> dict[str, Array]:
        """The pins: name -> shape ``(num_envs,)``, nan in sub-environments where it is not pinned."""
        rows = () if self._pins is None else self._pins
        return {name: row.copy() for name, row in zip(self.names, rows, strict=False) if not np.isnan(row).all()}

    def give_draws(self, values: Mapping[str, Array] | None, index: Indices, envs: Indices) -> None:
        """Gives draws for the coming episodes in place of the sampler's, until others are given.

        Args:
            values: name -> shape ``(num_envs,)``, all parameters of ``sampler.support``; None has the sampler draw
                again.
            index: What they are reported as, shape ``(num_envs,)``.
            envs: The sub-environments that are meant.
        """
        if self._given_index is None:
            self._given_index = np.full(self.num_envs, -1, np.int64)
        self._given_index[envs] = -1 if values is None else index[envs]
        for row, name in enumerate(self.sampler.support):
            self._given[row, envs] = np.nan if values is None else values[name][envs]

    def begin(self, envs: Indices, exact: Mapping[str, Array]) -> None:
        """Sets the values of the episodes that begin.

        Args:
            envs: The sub-environments that are reset, each once.
            exact: Checked values for these episodes: name -> shape ``(num_envs,)``.
        """
        rows = self._rows_of(exact)
        values = np.empty((len(self.names), len(envs)))
        values[:] = self._base[:, None]
        values[self._drawn] = self._draw(envs)
        if self._pins is not None:
            pins = self._pins[:, envs]
            values = np.where(np.isnan(pins), values, pins)
        for row, array in zip(rows, exact.values(), strict=True):
            values[row] = array[envs]
        self.current[:, envs] = values

    def params(self) -> dict[str, Array]:
        """What is reported: name -> current values ``(num_envs,)``, nominal where a sub-environment reports none."""
        current = self.current.copy()
        if not self._sparse:
            return dict(zip(self.names, current, strict=True))
        return {
            name: np.where(np.isnan(row), self.space[name].nominal, row)
            for name, row in zip(self.names, current, strict=True)
            if not np.isnan(row).all()
        }

    def info(self, mask: Mask | None = None) -> dict[str, Any]:
        """Current values and draw indices as Gymnasium lays ``info`` out: arrays, and masks of who reports them.

        Args:
            mask: Shape ``(num_envs,)``, the sub-environments that report; None for all.
        """
        count, values, index = len(self.names), self.current.copy(), self.index.copy()
        reported, sparse = self._everyone.copy(), self._sparse
        if sparse:
            reported[:count] = ~np.isnan(values)
        if mask is not None:
            reported &= mask
            index[~mask] = 0
        if sparse or mask is not None:
            values[~reported[:count]] = 0.0
        params: dict[str, Any] = {}
        rows, masks = iter(values), iter(reported)
        for name, mask_name in self._keys:  # in few environments every microsecond counts: this is the fastest way
            params[name] = next(rows)
            params[mask_name] = next(masks)
        if sparse:
            for name, mask_name in self._keys:
                if not params[mask_name].any():
                    del params[name], params[mask_name]
        return {"params": params, "_params": next(masks), "draw_index": index, "_draw_index": next(masks)}

    @property
    def _sparse(self) -> bool:
        """Whether there are rows that some sub-environments do not report."""
        return len(self.names) > len(self.space.nominal)

    def _lay_out_info(self) -> None:
        """Prepares what ``info`` needs of the names: the key of each and that of its mask, and masks of everyone."""
        self._keys = [(name, f"_{name}") for name in self.names]
        self._everyone: Mask = np.ones((len(self.names) + 2, self.num_envs), np.bool_)  # to copy, which is quicker

    def _draw(self, envs: Indices) -> Array:
        """The draws of episodes that begin, shape ``(drawn parameters, len(envs))``; sets their index."""
        self.index[envs] += 1
        if self._given_index is None:
            return self._draws.get(envs, self.index)
        given = self._given_index[envs]
        own = given < 0
        self.index[envs] = np.where(own, self.index[envs], given)
        values = self._given[:, envs]
        if own.any():
            values[:, own] = self._draws.get(envs[own], self.index)
        return values

    def _rows_of(self, names: Any) -> list[int]:
        """The rows of some parameters; new ones are added."""
        new = [name for name in names if name not in self.names]
        if new:
            self.names += new
            self._lay_out_info()
            padding = ((0, len(new)), (0, 0))
            self._base = np.pad(self._base, padding[0], constant_values=np.nan)
            self.current = np.pad(self.current, padding, constant_values=np.nan)
            if self._pins is not None:
                self._pins = np.pad(self._pins, padding, constant_values=np.nan)
        return [self.names.index(name) for name in names]


class _DrawCache:
    """Coming draws, made ahead: making many at once costs little more than making one.

    They are made again when the sampler's version changes.
    """

    def __init__(self, sampler: ParamSampler, words: Words) -> None:
        self.sampler, self.words = sampler, words
        self._version = sampler.version
        count = len(sampler.support)
        self._deepest = min(max(_LOOK_AHEAD // (len(words) * count), _MIN_DEPTH), _MAX_DEPTH) if count else 0
        self._depth = self._deepest if sampler.version is None else 1
        # draw number first + k of sub-environment i is ahead[:, i, k] for k < depth
        self._ahead: Array = np.zeros((count, len(words), self._deepest))
        self._first: Indices = np.full(len(words), _NOTHING, np.int64)

    def seed(self, envs: Indices, words: Words) -> None:
        self.words[envs] = words
        self._first[envs] = _NOTHING

    def get(self, envs: Indices, index: Indices) -> Array:
        """The draws ``index[envs]``, shape ``(parameters, len(envs))``."""
        if self.sampler.version != self._version:
            self._version = self.sampler.version
            self._first[:] = _NOTHING
            self._depth = 1  # as the next change may be near, there are few draws at first, then twice as many
        if not len(self._ahead):
            return np.empty((0, len(envs)))
        place = index[envs] - self._first[envs]
        # draws may have been given by others meanwhile, so places can be anywhere; unsigned, negative ones are large
        if np.maximum.reduce(place.view(np.uint64), initial=0) >= self._depth:
            self._make(index)
            place = index[envs] - self._first[envs]
        return self._ahead[:, envs, place]

    def _make(self, index: Indices) -> None:
        """Makes draws for every sub-environment that has used up half of its own, so that this happens seldom."""
        used, before = index - self._first, self._depth
        self._depth = min(2 * before, self._deepest)
        needed = np.flatnonzero((index >= 0) & ((used < 0) | (2 * used >= before) | (self._depth > before)))
        self._first[needed] = index[needed]
        indices = self._first[needed, None] + np.arange(self._depth)
        drawn = self.sampler.draw(np.repeat(self.words[needed], self._depth), indices.ravel())
        for row, name in enumerate(self.sampler.support):
            self._ahead[row, needed, : self._depth] = drawn[name].reshape(indices.shape)
