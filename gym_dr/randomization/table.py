"""The parameter values of many sub-environments, episode after episode.

``ParamTable.begin`` sets the values of an episode from four layers, each of which overrides the one before: nominal,
drawn (by the sampler), pinned (by hand, for all later episodes) and exact (by hand, for one episode).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask, Words
from gym_dr.errors import RandomizationError
from gym_dr.randomization.sampler import ParamSampler, check_support
from gym_dr.randomization.space import ParamSpace

_LOOK_AHEAD = 2**17  # numbers drawn at a time, over all sub-environments and parameters, ...
_MIN_DEPTH, _MAX_DEPTH = 4, 64  # ... within these limits on the draws per sub-environment
_NOTHING = np.iinfo(np.int64).max  # index of the first cached draw if there is none; larger than any other index


class ParamTable:
    """Values, draws and pins of ``num_envs`` sub-environments.

    Each row is a parameter. The rows of ``space.nominal`` always exist and are always reported. A space of hundreds of
    parameters leaves others out; setting one by hand adds its row, with nan for sub-environments that do not report it.

    Attributes:
        names: The parameter of each row.
        current: Shape ``(len(names), num_envs)``, the values in the current episodes.
        index: Shape ``(num_envs,)``, the draw index of the current episodes; -1 before the first.
        seed_words: Shape ``(num_envs,)``, the seed words in the keys of draws.
        held: Seed words and indices of the draws that all episodes use, each ``(num_envs,)``; None to count on.
        changes: How often arrays that ``arrays`` returns have been replaced.
    """

    def __init__(self, space: ParamSpace, sampler: ParamSampler, num_envs: int, current: Array | None = None) -> None:
        """Starts with nominal values.

        Args:
            space: The parameters.
            sampler: Makes the draws.
            num_envs: Number of sub-environments.
            current: Array to keep current values in, shape ``(len(space.nominal), num_envs)``, if the physics reads it.
        """
        self.space, self.num_envs = space, num_envs
        self.names: list[str] = list(space.nominal)
        self._nominal: Array = np.array(list(space.nominal.values()), np.float64)  # nan in rows that were added
        self.current: Array = np.empty((len(self.names), num_envs)) if current is None else current
        self.current[:] = self._nominal[:, None]
        self._pins: Array | None = None  # shape of current, nan where not pinned
        self.index: Indices = np.full(num_envs, -1, np.int64)
        self.held: tuple[Words, Indices] | None = None
        self.changes = 0
        self._lay_out_info()
        self.seed_words: Words = np.zeros(num_envs, np.uint64)
        self._draws = _DrawCache(sampler, self.seed_words)
        self._drawn: Indices = np.array(self._rows_of(sampler.support), np.int64)

    def begin(self, envs: Indices, exact: Mapping[str, Array]) -> None:
        """Sets the values of new episodes.

        Args:
            envs: The sub-environments that are reset, each once.
            exact: Checked values for these episodes: name -> shape ``(num_envs,)``.
        """
        rows = self._rows_of(exact)  # may add some
        values = np.empty((len(self.names), len(envs)))
        values[:] = self._nominal[:, None]
        self.index[envs] = self.following[envs]
        values[self._drawn] = self._draws.ahead[:, envs, self._draws.reach(envs, self.index)]
        if self._pins is not None:
            pins = self._pins[:, envs]
            values = np.where(np.isnan(pins), values, pins)
        for row, array in zip(rows, exact.values(), strict=True):
            values[row] = array[envs]
        self.current[:, envs] = values

    # ---- draws -------------------------------------------------------------------------------------------------------

    @property
    def following(self) -> Indices:
        """The draw index of each sub-environment's next episode, shape ``(num_envs,)``."""
        return self.index + 1 if self.held is None else self.held[1]

    def make_ahead(self, envs: Indices) -> None:
        """Makes sure that the draws of the next episodes are among those made ahead."""
        self._draws.reach(envs, self.following)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What compiled code needs to begin episodes, see ``compiled.play.Draws``; valid until ``changes``."""
        made = self._draws.ahead, self._draws.first, self._draws.depth
        held = np.zeros(0, np.int64) if self.held is None else self.held[1]
        pins = np.zeros((0, 0)) if self._pins is None else self._pins
        return (self.current, self._nominal, self._drawn, *made, self.index, held, pins)

    @property
    def sampler(self) -> ParamSampler:
        """The sampler that makes the draws; a new one takes effect at each sub-environment's next episode."""
        return self._draws.sampler

    @sampler.setter
    def sampler(self, sampler: ParamSampler) -> None:
        check_support(sampler, self.sampler.support)
        if sampler is not self.sampler:
            self._draws = _DrawCache(sampler, self.seed_words)
            self.changes += 1

    def seed(self, envs: Indices, seed_words: Words) -> None:
        """Restarts the draws of some sub-environments, keyed by their seed words."""
        self._draws.seed(envs, seed_words if self.held is None else self.held[0][envs])
        self.index[envs] = -1

    def hold_draws(self, seed_words: Words, index: Indices) -> None:
        """Uses the draws with these keys in all later episodes, until others are held, instead of counting on.

        Args:
            seed_words: Shape ``(num_envs,)``; seeding no longer changes them.
            index: Draw indices, shape ``(num_envs,)``.

        Raises:
            RandomizationError: One of them has another shape; nothing has changed.
        """
        if {np.shape(seed_words), np.shape(index)} != {self.index.shape}:
            raise RandomizationError(f"Expected seed words and indices of draws of shape {self.index.shape}.")
        self.held = seed_words.copy(), index.copy()
        self.changes += 1
        changed = np.flatnonzero(seed_words != self.seed_words)  # others keep the draws that were made ahead
        self._draws.seed(changed, seed_words[changed])

    # ---- values set by hand ------------------------------------------------------------------------------------------

    def pin(self, values: Mapping[str, Array] | None, envs: Indices) -> None:
        """Pins checked values from the next episode on, keeping earlier pins; None removes all pins.

        Args:
            values: name -> shape ``(num_envs,)``.
            envs: The sub-environments to pin them in.
        """
        rows = self._rows_of(values or ())
        self.changes += 1
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
        """Pinned values: name -> shape ``(num_envs,)``, nan in sub-environments where it is not pinned."""
        rows = () if self._pins is None else self._pins
        return {name: row.copy() for name, row in zip(self.names, rows, strict=False) if not np.isnan(row).all()}

    # ---- state -------------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Draws and values of all sub-environments: name -> ``(num_envs,)``; the sampler is not part of it."""
        values = dict(zip(self.names, self.current.copy(), strict=True))
        return {
            "word": self.seed_words.copy(),
            "draw_index": self.index.copy(),
            **{f"value/{name}": row for name, row in values.items()},
            **{f"pin/{name}": row for name, row in self.pinned.items()},
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Checks values of a state before anything changes; physics may not be able to deal with impossible ones.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is impossible.
        """
        for name, row in (*part_of("value", state).items(), *part_of("pin", state).items()):
            param = self.space[name]
            param.check(row[~np.isnan(row) & (row != param.nominal)])  # nan is none

    def set_state(self, state: Mapping[str, Any], envs: Indices) -> None:
        """Restores the rows of some sub-environments, from a state that was checked."""
        self._draws.seed(envs, state["word"][envs])
        self.index[envs] = state["draw_index"][envs]
        values = part_of("value", state)
        rows = self._rows_of(values)
        self.pin(None, envs)
        self.pin(part_of("pin", state), envs)
        self.current[:, envs] = self._nominal[:, None]
        for row, array in zip(rows, values.values(), strict=True):
            self.current[row, envs] = np.where(np.isnan(array[envs]), self._nominal[row], array[envs])

    # ---- what users see ----------------------------------------------------------------------------------------------

    def params(self) -> dict[str, Array]:
        """Current values: name -> shape ``(num_envs,)``, nominal where a sub-environment reports none."""
        return {
            name: np.where(np.isnan(row), self.space[name].nominal, row)
            for name, row in zip(self.names, self.current, strict=True)
            if not np.isnan(row).all()
        }

    def info(self, mask: Mask | None = None) -> dict[str, Any]:
        """Current values and draw indices in Gymnasium's ``info`` layout: arrays and masks.

        Args:
            mask: Shape ``(num_envs,)``, the sub-environments that report; None for all.
        """
        return self.laid_out(self.current.copy(), self.index.copy(), mask)

    def laid_out(self, values: Array, index: Indices, mask: Mask | None = None) -> dict[str, Any]:
        """``info`` of any K episodes.

        Args:
            values: Shape ``(len(names), K)``; the array becomes part of it.
            index: Draw indices, shape ``(K,)``; the same.
            mask: Shape ``(K,)``, the episodes that are reported; None for all.
        """
        count, fits = len(self.names), len(index) == self.num_envs
        reported = self._everyone.copy() if fits else np.ones((len(self._everyone), len(index)), np.bool_)
        sparse = count > len(self.space.nominal)  # some sub-environments do not report all rows
        if sparse:
            reported[:count] = ~np.isnan(values)
        if mask is not None:
            reported &= mask
            index[~mask] = 0
        if sparse or mask is not None:
            values[~reported[:count]] = 0.0
        params: dict[str, Any] = {}
        rows, masks = iter(values), iter(reported)
        for name, mask_name in self._keys:  # the fastest way; with few environments every microsecond counts
            params[name] = next(rows)
            params[mask_name] = next(masks)
        if sparse:
            for name, mask_name in self._keys:
                if not params[mask_name].any():
                    del params[name], params[mask_name]
        return {"params": params, "_params": next(masks), "draw_index": index, "_draw_index": next(masks)}

    def _lay_out_info(self) -> None:
        """Prepares each name's row, and what ``info`` needs: its keys for values and mask, and masks that are true."""
        self._places = {name: row for row, name in enumerate(self.names)}
        self._keys = [(name, f"_{name}") for name in self.names]
        self._everyone: Mask = np.ones((len(self.names) + 2, self.num_envs), np.bool_)  # copied: fast

    def _rows_of(self, names: Iterable[str]) -> list[int]:
        """The rows of some parameters; adds new ones."""
        new = [name for name in names if name not in self._places]
        if new:
            self.changes += 1
            self.names += new
            self._lay_out_info()
            padding = ((0, len(new)), (0, 0))
            self._nominal = np.pad(self._nominal, padding[0], constant_values=np.nan)
            self.current = np.pad(self.current, padding, constant_values=np.nan)
            if self._pins is not None:
                self._pins = np.pad(self._pins, padding, constant_values=np.nan)
        return [self._places[name] for name in names]


def part_of(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The part of a state under a prefix, without the prefix: "physics/rows" -> "rows"."""
    return {name.removeprefix(f"{prefix}/"): values for name, values in state.items() if name.startswith(f"{prefix}/")}


class _DrawCache:
    """Draws made ahead of time, since many at once cost little more than one.

    They are made again when the sampler's version changes.
    """

    def __init__(self, sampler: ParamSampler, seed_words: Words) -> None:
        self.sampler, self.seed_words = sampler, seed_words
        self._version = sampler.version
        count = len(sampler.support)
        self._deepest = min(max(_LOOK_AHEAD // (len(seed_words) * max(count, 1)), _MIN_DEPTH), _MAX_DEPTH)
        # draw number first + k of sub-environment i is ahead[:, i, k] for k < depth
        self.ahead: Array = np.zeros((count, len(seed_words), self._deepest))
        self.first: Indices = np.full(len(seed_words), _NOTHING, np.int64)
        self.depth: Indices = np.array([self._deepest if sampler.version is None else 0])  # an array for compiled code

    def seed(self, envs: Indices, seed_words: Words) -> None:
        self.seed_words[envs] = seed_words
        self.first[envs] = _NOTHING

    def reach(self, envs: Indices, index: Indices) -> Indices:
        """Makes sure that the draws ``index[envs]`` are made; returns their places in ``ahead``."""
        if self.sampler.version != self._version:
            self._version = self.sampler.version
            self.first[:] = _NOTHING
            self.depth[0] = 0  # the next change may be near, so start with few draws and double from there
        place = index[envs] - self.first[envs]
        # held draws may jump, so places can be anywhere; as unsigned, negative ones are large
        if np.maximum.reduce(place.view(np.uint64), initial=0) >= self.depth[0]:
            self._make(index)
            place = index[envs] - self.first[envs]
        return place

    def _make(self, index: Indices) -> None:
        """Makes draws for all sub-environments that have used half of theirs, so that this happens rarely."""
        used, before = index - self.first, int(self.depth[0])
        self.depth[0] = depth = min(max(_MIN_DEPTH, 2 * before), self._deepest)
        needed = np.flatnonzero((index >= 0) & ((used < 0) | (2 * used >= before) | (depth > before)))
        self.first[needed] = index[needed]
        indices = self.first[needed, None] + np.arange(depth)
        drawn = self.sampler.draw(np.repeat(self.seed_words[needed], depth), indices.ravel())
        for row, name in enumerate(self.sampler.support):
            self.ahead[row, needed, :depth] = drawn[name].reshape(indices.shape)
