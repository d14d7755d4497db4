"""Which values are in force in one environment, episode after episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gym_dr.randomization.draws import draw, seed_word
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

LOOK_AHEAD = 32  # draws made at once


class EpisodeParams:
    """The values of one environment's parameters, new at every reset.

    Each reset makes the next keyed draw. Pinned values stand in for draws until they are handed back; exact values
    stand in for both, for one episode.
    """

    def __init__(self, space: ParamSpace, randomization: Randomization) -> None:
        """Starts with nominal values; the first episode begins with ``begin``."""
        self.space = space
        self.randomization = randomization
        self.in_force: dict[str, float] = dict(space.nominal)
        self.draw_index = -1  # of the episode under way; the first one has 0
        self.pinned: Mapping[str, float] = {}  # checked values for every coming episode
        self.exact: Mapping[str, float] = {}  # checked values for the next episode alone
        self._seed_word: int | None = None
        self._ahead: list[dict[str, float]] = []  # the coming draws, the next one last
        self._ahead_index = 0  # the draw index of the next one

    def check_options(self, options: Mapping[str, Any] | None) -> dict[str, float]:
        """Reads ``options["params"]``, the exact values of one episode, before anything is changed.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not one number, out of bounds or not finite.
        """
        values = (options or {}).get("params")
        return {} if values is None else self.space.check(values)

    def begin(self, *, seed: int | None, np_random_seed: int, exact: Mapping[str, float]) -> None:
        """Makes the draw of the episode that begins and puts its values in force.

        Args:
            seed: What ``reset`` was given; an integer starts the sequence of draws anew.
            np_random_seed: The seed of the environment's own generator, which the draws are keyed by.
            exact: What ``check_options`` returned.
        """
        if seed is not None or self._seed_word is None:
            # Gymnasium marks a generator that was put in by hand with -1; its draws get a random seed too
            known = np_random_seed >= 0
            self._seed_word = seed_word(np_random_seed if known else int(np.random.SeedSequence().generate_state(1)[0]))
            self.draw_index = -1
            self._ahead = []
        self.draw_index += 1
        drawn = {} if self.pinned.keys() >= self.randomization.keys() else self._next_draw()
        self.in_force = {**self.space.nominal, **drawn, **self.pinned, **self.exact, **exact}
        self.exact = {}

    def _next_draw(self) -> dict[str, float]:
        """The draw of ``draw_index``; many are made in one call, which costs as much as making one."""
        if not self._ahead or self._ahead_index != self.draw_index:
            indices = np.arange(self.draw_index, self.draw_index + LOOK_AHEAD)
            seeds = np.full(LOOK_AHEAD, self._seed_word, dtype=np.uint64)
            arrays = draw(self.randomization, self.space, seeds, indices)
            rows = zip(*(values.tolist() for values in arrays.values()), strict=True)
            self._ahead = [dict(zip(arrays, row, strict=True)) for row in rows][::-1]
        self._ahead_index = self.draw_index + 1
        return self._ahead.pop()

    def info(self) -> dict[str, Any]:
        """What every ``reset`` and ``step`` tells: the values in force and which draw they are."""
        return {"params": dict(self.in_force), "draw_index": self.draw_index}


class RandomizedEnv:
    """What every randomized single environment offers beside Gymnasium's interface (a mixin).

    Wrappers hide these, so ask ``env.unwrapped`` (or ``env.get_wrapper_attr``); in a vector environment
    ``VectorParams``.
    """

    episode: EpisodeParams

    @property
    def param_space(self) -> ParamSpace:
        """What may vary."""
        return self.episode.space

    @property
    def randomization(self) -> Randomization:
        """What does vary."""
        return self.episode.randomization

    @property
    def params(self) -> dict[str, float]:
        """The values in force, by name; nominal before the first reset."""
        return dict(self.episode.in_force)

    @property
    def draw_index(self) -> int:
        """Which draw is in force: the number of resets since the environment was seeded."""
        return self.episode.draw_index

    @draw_index.setter
    def draw_index(self, value: int) -> None:
        """The next reset makes the draw after this one: where a lost environment's successor goes on."""
        self.episode.draw_index = int(value)

    def set_params(self, values: Mapping[str, float] | None) -> None:
        """Fixes parameters from the next reset on, beside those fixed before; None hands all back to the draws.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not one number, out of bounds or not finite.
        """
        self.pinned_params = {} if values is None else {**self.episode.pinned, **self.episode.space.check(values)}

    @property
    def pinned_params(self) -> dict[str, float]:
        """The values that stand in for draws from the next reset on."""
        return dict(self.episode.pinned)

    @pinned_params.setter
    def pinned_params(self, values: Mapping[str, float]) -> None:
        self.episode.pinned = self.episode.space.check(values)

    @property
    def exact_params(self) -> dict[str, float]:
        """The values for the episode that the next reset begins, and for that one alone."""
        return dict(self.episode.exact)

    @exact_params.setter
    def exact_params(self, values: Mapping[str, float]) -> None:
        self.episode.exact = self.episode.space.check(values)
