"""Prioritized level replay (PLR): replays the draws from which the policy can learn most.

Jiang, Grefenstette and Rocktaeschel (2021a), "Prioritized Level Replay", ICML, arXiv:2010.03934, sections 3.1 and 3.2;
Jiang, Dennis, Parker-Holder, Foerster, Grefenstette and Rocktaeschel (2021b), "Replay-Guided Adversarial Environment
Design", NeurIPS, arXiv:2110.02439, section 4 (robust PLR); the bounded buffer follows the code of the latter.

A level is a draw, identified by its key (seed, draw index): replaying it means drawing at its key again. A fresh draw
equals the draw of ``uniform``, and every kind of randomization works. A level's score S comes from its last episode,
and its staleness is the number of episodes since then. Levels are replayed with probability

    P_replay = (1 - rho) P_S + rho P_C,   P_S ~ rank(S)^(-1 / beta),   P_C ~ staleness

where rank 1 is the highest score. A draw's key also determines whether it is fresh, and which level it replays if not.

Scores come with the episodes (``FinishedEpisode.score``): means over an episode's steps of ``l1_value_loss`` for PLR
and of ``positive_value_loss`` for robust PLR. The trainer provides the advantages (``AdaptParams.score``). In robust
PLR the policy learns only from replayed draws: the trainer leaves the steps of fresh draws out of its losses.

An episode's values identify its level. So it does not matter which version drew it or when it began, and every finished
episode counts unless its level has been evicted in the meantime. An episode that a checkpoint cuts off does not change
its level.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from gym_dr.arrays import Array, Indices, Mask, Words
from gym_dr.errors import ConfigError, RandomizationError, RandomizationWarning
from gym_dr.options import expect, is_number, is_whole, option
from gym_dr.randomization.adaptive.betas import effective_sample_size
from gym_dr.randomization.adaptive.box import varying
from gym_dr.randomization.draws import draw, seed_word, uniforms
from gym_dr.randomization.sampler import FinishedEpisode, Row, Task
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

PATIENCE = 10  # x min_levels episodes without a replay before a warning
KIND, LEVEL = "\0kind", "\0level"  # keys of the uniforms that decide whether a draw is fresh and which level it replays

LevelClaim: TypeAlias = tuple[int, int, tuple[float, ...], float]  # of an episode: seed word, draw index, values, score


@dataclass(frozen=True, kw_only=True)
class PrioritizedOptions:
    """Options of ``plr`` and ``robust_plr``; beta and rho are those of PLR on Procgen."""

    replay_probability: float = option(0.5, "share of draws that replay a level, once there are min_levels")
    temperature: float = option(0.1, "beta: smaller values favor the highest scores more")
    staleness_coef: float = option(0.1, "rho: weight of levels that have not been played for a while")
    max_levels: int = option(1000, "size of the level buffer")
    min_levels: int = option(100, "levels in the buffer before the first replay")
    cohort: int = option(100, "episodes per update, over all sub-environments")

    def __post_init__(self) -> None:
        p, beta, rho = self.replay_probability, self.temperature, self.staleness_coef
        expect(is_number(p) and 0.0 < p < 1.0, "replay_probability", "between 0 and 1", p)
        expect(is_number(beta) and beta > 0.0, "temperature", "above 0 and finite", beta)
        expect(is_number(rho) and 0.0 <= rho <= 1.0, "staleness_coef", "between 0 and 1", rho)
        expect(is_whole(self.cohort) and self.cohort >= 1, "cohort", "a whole number, at least 1", self.cohort)
        expect(is_whole(self.max_levels), "max_levels", "a whole number", self.max_levels)
        fitting = is_whole(self.min_levels) and 1 <= self.min_levels <= self.max_levels
        most = f"a whole number, at least 1 and at most max_levels ({self.max_levels})"
        expect(fitting, "min_levels", most, self.min_levels)


def l1_value_loss(advantages: Array) -> Array:
    """Each step's contribution to the score of PLR: the absolute advantage (2021a, equation 2).

    Args:
        advantages: Generalized advantage estimates, any shape.
    """
    return np.abs(advantages)


def positive_value_loss(advantages: Array) -> Array:
    """Each step's contribution to the score of robust PLR: its advantage, or 0 if negative (2021b, section 4.2)."""
    return np.maximum(advantages, 0.0)


def replay_weights(scores: Array, staleness: Array, *, temperature: float, staleness_coef: float) -> Array:
    """The probability that each level is the one to be replayed.

    Args:
        scores: Shape ``(L,)``; of equal scores, the first ranks higher.
        staleness: Episodes since each level was played, shape ``(L,)``, >= 0.
        temperature: beta.
        staleness_coef: rho.

    Returns:
        Shape ``(L,)``, with sum 1.
    """
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    by_score = ranks ** (-1.0 / temperature)
    by_score /= by_score.sum()
    if not staleness.any():
        return by_score
    mixed: Array = (1.0 - staleness_coef) * by_score + staleness_coef * staleness / staleness.sum()
    return mixed


class Prioritized:
    """Fresh draws of a randomization, mixed with replays of those from which the policy can learn most.

    Attributes:
        support: The randomization.
        version: Number of changes to the replay probabilities; part of the keys that choose replays.
        score: Maps a step's advantage to its score; an episode's score is the mean over its steps.
        only_replays: Whether the policy should learn only from replayed draws.
    """

    score = staticmethod(l1_value_loss)
    only_replays = False

    def __init__(
        self, space: ParamSpace, support: Randomization, options: PrioritizedOptions, task: Task | None = None
    ) -> None:
        """Starts without levels; see ``LearningSampler``.

        Raises:
            RandomizationError: Nothing varies.
        """
        varying(space, support)
        self.space, self.support, self.options = space, support, options
        self.version = 0
        self._episodes = 0  # learned from so far
        self._claims: list[LevelClaim] = []  # episodes not processed yet
        self._place: dict[tuple[float, ...], int] = {}  # values of a level -> its place
        # by place: a level's values and key, its score, and the number of the last episode that played it
        self._values: list[tuple[float, ...]] = []
        self._keys = np.zeros(options.max_levels, np.uint64), np.zeros(options.max_levels, np.int64)
        self._scores: Array = np.zeros(options.max_levels)
        self._played: Indices = np.zeros(options.max_levels, np.int64)
        self._cumulated: Array = np.zeros(0)  # cumulative weights, in which draws look up a level

    @property
    def levels(self) -> list[tuple[int, int]]:
        """Keys ``(seed word, draw index)`` of the levels in the buffer, in order of their places."""
        seeds, index = self._keys
        return list(zip(seeds.tolist(), index.tolist(), strict=True))[: len(self._values)]

    def draw(self, seeds: Words, draw_index: Indices) -> dict[str, Array]:
        """See ``ParamSampler.draw``."""
        return draw(self.support, self.space, *self.sources(seeds, draw_index))

    def sources(self, seeds: Words, draw_index: Indices) -> tuple[Words, Indices]:
        """The keys that determine the values of draws: their own if fresh, otherwise those of the replayed levels."""
        place = self._chosen(seeds, draw_index)
        replayed = place >= 0
        own = np.array(seeds, np.uint64), np.broadcast_to(np.asarray(draw_index, np.int64), np.shape(seeds)).copy()
        if replayed.any():
            own[0][replayed], own[1][replayed] = self._keys[0][place[replayed]], self._keys[1][place[replayed]]
        return own

    def fresh(self, seeds: Words, draw_index: Indices) -> Mask:
        """Which draws are fresh, that is, replay no level; shape ``(K,)``."""
        new: Mask = self._chosen(seeds, draw_index) < 0
        return new

    def replay(self, seeds: Words, draw_index: Indices, version: int) -> dict[str, Array]:
        """See ``ParamSampler.replay``; draws depend only on the keys of their sources."""
        if not 0 <= version <= self.version:
            raise RandomizationError(f"Expected a version from 0 to {self.version}, got {version}.")
        return draw(self.support, self.space, seeds, draw_index)

    def level_of(self, params: Mapping[str, float]) -> tuple[int, int] | None:
        """The key of the level with these values; None if they are not in the buffer, or nothing is replayed yet."""
        place = self._place.get(tuple(float(params[name]) for name in self.support)) if self._replays else None
        return None if place is None else (int(self._keys[0][place]), int(self._keys[1][place]))

    def weights(self) -> Array:
        """The probability that each level is the one to be replayed, shape ``(len(levels),)``."""
        count = len(self._values)
        staleness = (self._episodes - self._played[:count]).astype(np.float64)
        coefficients = {"temperature": self.options.temperature, "staleness_coef": self.options.staleness_coef}
        return replay_weights(self._scores[:count], staleness, **coefficients)

    def update(self, episodes: Sequence[FinishedEpisode]) -> list[Row]:
        """Updates the scores of levels; a full buffer evicts the levels that are least likely to be replayed.

        Replayed levels are updated first, then fresh draws are added in order. A fresh draw that scores less than the
        level it would evict is not added. Episodes with values set by hand are ignored.

        Returns:
            One row, if there were enough episodes: among others the number of levels, their mean score, and the
            effective number of levels (equally likely levels that would be as varied a choice).

        Raises:
            ConfigError: An episode has no finite score; nothing was learned.

        Warns:
            RandomizationWarning: There were many episodes, but too few different draws for any replay.
        """
        unscored = next((e for e in episodes if e.score is None or not np.isfinite(e.score)), None)
        if unscored is not None:
            raise ConfigError(
                f"Expected a finite score with every episode, got {unscored!r}. Pass finite advantages to "
                "AdaptParams.score."
            )
        for e in episodes:
            if e.seed is not None and set(self.support) <= set(e.params):
                values = tuple(e.params[name] for name in self.support)
                self._claims.append((seed_word(e.seed), e.draw_index, values, float(cast(float, e.score))))
        if len(self._claims) < self.options.cohort:
            return []
        before, limit, replayed = self._episodes, PATIENCE * self.options.min_levels, self._replays
        own, known = self._own(), 0
        new: dict[tuple[float, ...], tuple[LevelClaim, int]] = {}  # last episode of each new level, and its number
        for claim in own:
            self._episodes += 1
            *_, values, score = claim
            place = self._place.get(values)
            if place is None:
                new[values] = claim, self._episodes
            else:
                known += 1
                self._scores[place], self._played[place] = score, self._episodes
        self._remember(new)
        if before < limit <= self._episodes and not self._replays:
            warnings.warn(
                f"The first {self._episodes} episodes had only {len(self._values)} different draws, but replay starts "
                f"at {self.options.min_levels}. Lower min_levels.",
                RandomizationWarning,
                stacklevel=2,
            )
        if not own:
            return []
        probabilities = self.weights()
        self._cumulated = np.cumsum(probabilities)
        self.version += self._replays
        return [
            {
                "version": self.version,
                "episodes": len(own),
                "replayed": known / len(own) if replayed else 0.0,
                "levels": len(self._values),
                "score_mean": float(self._scores[: len(self._values)].mean()),
                "effective_levels": effective_sample_size(probabilities),
            }
        ]

    def state(self) -> dict[str, Any]:
        """See ``ParamSampler.state``."""
        return {
            "version": self.version,
            "episodes": self._episodes,
            "claims": [[seed, index, list(values), score] for seed, index, values, score in self._claims],
            "levels": [
                [*key, score, played]
                for key, score, played in zip(self.levels, self._scores.tolist(), self._played.tolist(), strict=False)
            ],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See ``ParamSampler.load_state``.

        Raises:
            ValueError: The state is not one of such a sampler.
        """
        if len(state["levels"]) > self.options.max_levels:
            raise ValueError(f"expected at most {self.options.max_levels} levels, got {len(state['levels'])}")
        self.version, self._episodes = int(state["version"]), int(state["episodes"])
        self._claims = [
            (int(seed), int(index), tuple(map(float, values)), float(score))
            for seed, index, values, score in state["claims"]
        ]
        count = len(state["levels"])
        for place, (seed, index, score, played) in enumerate(state["levels"]):
            self._keys[0][place], self._keys[1][place] = seed, index
            self._scores[place], self._played[place] = score, played
        self._values = self._values_at(self._keys[0][:count], self._keys[1][:count])
        self._place = {values: place for place, values in enumerate(self._values)}
        self._cumulated = np.cumsum(self.weights())

    @property
    def _replays(self) -> bool:
        return len(self._values) >= self.options.min_levels

    def _chosen(self, seeds: Words, draw_index: Indices) -> Indices:
        """The place of the level that each draw replays, or -1."""
        if not self._replays:
            return np.full(np.shape(seeds), -1, np.int64)
        kind, which = uniforms(seeds, draw_index, [KIND, LEVEL], self.version)
        place = np.minimum(np.searchsorted(self._cumulated, which, side="right"), len(self._values) - 1)
        chosen: Indices = np.where(kind < self.options.replay_probability, place, -1)
        return chosen

    def _own(self) -> list[LevelClaim]:
        """The unprocessed episodes whose values match a level in the buffer or a fresh draw."""
        claims, self._claims = self._claims, []
        seeds, index, *_ = zip(*claims, strict=True)
        fresh = self._values_at(np.array(seeds, np.uint64), np.array(index, np.int64))
        return [
            claim for claim, drawn in zip(claims, fresh, strict=True) if claim[2] in self._place or claim[2] == drawn
        ]

    def _remember(self, new: Mapping[tuple[float, ...], tuple[LevelClaim, int]]) -> None:
        """Adds fresh draws to the buffer, in order, if they score high enough."""
        order: list[int] = []  # places of a full buffer, least likely to be replayed first
        for values, ((seed, index, _, score), number) in new.items():
            place = len(self._values)
            if place < self.options.max_levels:
                self._values.append(values)
            else:
                order = order or self.weights().argsort(kind="stable").tolist()
                if score < self._scores[order[0]]:
                    continue
                place = order.pop(0)
                del self._place[self._values[place]]
            self._place[values], self._values[place] = place, values
            self._keys[0][place], self._keys[1][place] = seed, index
            self._scores[place], self._played[place] = score, number

    def _values_at(self, seeds: Words, draw_index: Indices) -> list[tuple[float, ...]]:
        drawn = draw(self.support, self.space, seeds, draw_index)
        return list(zip(*(drawn[name].tolist() for name in self.support), strict=True))


class RobustPrioritized(Prioritized):
    """Prioritized level replay for a policy that learns only from replayed draws."""

    score = staticmethod(positive_value_loss)
    only_replays = True
