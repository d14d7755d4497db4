"""The common part of methods that learn ranges: which episodes count as evidence, when, and what is saved.

**Matching episodes to versions.** Draws are keyed, so a version of a sampler drew an episode if its draw at the
episode's key has the episode's values. Episodes with values set by hand, and episodes of an older version that end
after an update, do not count. (Where parameters are whole numbers, switches or at the end of a range, two versions may
draw the same values at a key; such an episode counts, since it was played with exactly those values.)

**No bias towards short episodes.** While one sub-environment plays a long episode, others finish many short ones, so
the first K episodes to *end* are too short on average. A cohort is the first m = ceil(K / num_envs) episodes that each
sub-environment *begins* under a version, in the order (place in its sub-environment, sub-environment). It is complete
when the last of them ends. Later episodes wait for the next cohort, or are dropped if the version changes.

**Checkpoints** cut off current episodes; the next ones of their sub-environments take their place. This drops long
episodes more often than short ones, at most one per sub-environment and checkpoint.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from gym_dr.arrays import Array, Indices, Words
from gym_dr.errors import ConfigError, RandomizationError, RandomizationWarning, warn
from gym_dr.options import check_values, expect, is_number, is_whole, option
from gym_dr.randomization.adaptive import betas
from gym_dr.randomization.adaptive.box import EDGE, NOMINAL, QuantileBox
from gym_dr.randomization.sampler import EpisodeRecord, Row, TrainingInfo, seed_word, uniforms
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

STALLED = 20  # cohorts without a change before a warning
COLLECTS = "collects"  # what a method did with a cohort too small for a decision

Success: TypeAlias = Callable[[EpisodeRecord], bool]
Evidence: TypeAlias = tuple[int, int, float, bool]  # of an episode: seed word, draw index, return, success
Claim: TypeAlias = tuple[int, Evidence, tuple[float, ...]]  # of an episode: sub-environment, potential evidence, values

_WHOLE_BOX = -1e-4  # entropy above which nothing is left to widen
_ROOM = 10.0  # how far a and b may exceed those of the start


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """Options of all methods that learn ranges: what counts as success, where to start, and how often to learn.

    In Python ``start`` may be anything that ``randomization`` accepts except a file. ``AdaptParams`` also accepts a
    function of the episode as ``success``; a run does not, since its configuration is saved.
    """

    success: float | Success | None = option(  # noqa: RUF009  makes a field, as below
        None, "return at which an episode counts as a success  [default: the environment's threshold]"
    )
    cohort: int = option(100, "episodes per update, over all sub-environments")
    start: str | Mapping[str, Any] = option(
        NOMINAL, "where draws start: nominal, a preset, or a table of ranges, inside the randomization"
    )
    start_width: float = option(0.25, "width of the first ranges around nominal values, as a share of the box")

    def __post_init__(self) -> None:
        check_values(self)
        if isinstance(self.start, Mapping) and not isinstance(self.start, Randomization):
            object.__setattr__(self, "start", Randomization.from_dict(self.start))
        success, width = self.success, self.start_width
        known = success is None or callable(success) or is_number(success)
        expect(known, "success", "a finite return, or a function of the episode", success)
        expect(is_whole(self.cohort) and self.cohort >= 1, "cohort", "a whole number, at least 1", self.cohort)
        expect(is_number(width) and 0.0 < width <= 1.0, "start_width", "above 0 and at most 1", width)


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """Evidence: K episodes drawn by the current version, in the order in which their sub-environments began them."""

    seeds: Words  # (K,), seed words
    draw_index: Indices  # (K,)
    returns: Array  # (K,)
    successes: Array  # (K,), 1 or 0


class LearningSampler(ABC):
    """Independent distributions of quantiles on a box that follow the policy's success.

    A subclass defines what the numbers of a ``shape`` mean, how to draw from it, and how a cohort changes it.

    Attributes:
        support: The box, as a randomization.
        version: Number of changes so far; part of the keys of draws.
        shape: Shape of the current version, ``(n, 2)``, a row for each parameter of ``box.names``.
    """

    def __init__(
        self, space: ParamSpace, support: Randomization, options: LearningOptions, training: TrainingInfo
    ) -> None:
        """Starts with the first version.

        Args:
            space: The environment's parameters.
            support: The box, as a randomization.
            options: Options of the method.
            training: The training.

        Raises:
            RandomizationError: The box cannot be learned, or does not contain the start.
            ConfigError: Neither the options nor the environment define success.
        """
        self.support, self.options, self.training = support, options, training
        self.box = QuantileBox(space, support)
        self._success = training.reward_threshold if options.success is None else options.success
        if self._success is None:
            raise ConfigError(
                "success: expected the return at which an episode counts as a success, got none, and the environment "
                "has no threshold of its own. Set success."
            )
        self._per_env = math.ceil(options.cohort / training.num_envs)
        self.version = 0
        self.shape = self.first_shape(self.box.start(options.start, options.start_width))
        self._shapes = [self.shape]  # of all versions
        # sub-environment -> its episodes under this version that are not part of a cohort yet
        self._waiting: dict[int, list[Evidence]] = defaultdict(list)
        self._claims: list[Claim] = []  # episodes that have not been checked for evidence yet
        self._idle = 0  # cohorts since the last change
        self.reached = False  # whether the first draws have ever succeeded often enough

    @abstractmethod
    def first_shape(self, ranges: Array) -> Array:
        """The first shape, ``(n, 2)``, for ranges of quantiles ``(n, 2)``."""

    @abstractmethod
    def quantiles(self, shape: Array, seeds: Words, draw_index: Indices, version: int) -> Array:
        """The quantiles, shape ``(n, K)``, that a version with this shape draws at keys ``(K,)``."""

    @abstractmethod
    def learn(self, cohort: Cohort) -> tuple[Array, dict[str, float | str]]:
        """The next shape (the same if nothing changes), and the method's own columns of the row."""

    @abstractmethod
    def describe(self, shape: Array) -> dict[str, float]:
        """The entropy of a shape and its numbers for each parameter: column -> value."""

    def draw(self, seeds: Words, draw_index: Indices, version: int | None = None) -> dict[str, Array]:
        """See ``ParamSampler.draw``."""
        version = self.version if version is None else version
        if not 0 <= version < len(self._shapes):
            raise RandomizationError(f"Expected a version from 0 to {self.version}, got {version}.")
        return self.box.values(self.quantiles(self._shapes[version], seeds, draw_index, version))

    def uniforms(self, seeds: Words, draw_index: Indices, version: int) -> Array:
        """A keyed uniform for each learned parameter, shape ``(n, K)``."""
        return uniforms(seeds, draw_index, self.box.names, version)

    def update(self, episodes: Sequence[EpisodeRecord]) -> list[Row]:
        """Collects evidence and learns from every complete cohort.

        Returns:
            A row for each cohort: the version that drew it, number of episodes, success rate and mean return, what the
            method did then, and the entropy and numbers of each parameter in that version.

        Warns:
            RandomizationWarning: Draws have not changed for a long time.
        """
        rows: list[Row] = []
        for e in episodes:
            if e.seed is not None and set(self.support) <= set(e.params):
                evidence = seed_word(e.seed), e.draw_index, float(e.episode_return), self._succeeded(e)
                self._claims.append((e.env_index, evidence, tuple(e.params[name] for name in self.support)))
        self._find_evidence()
        while (cohort := self._complete()) is not None:
            drawn_by, drawn_from = self.version, self.describe(self.shape)
            shape, said = self.learn(cohort)
            rate = float(cohort.successes.mean())
            if not np.array_equal(shape, self.shape):
                self._change(shape)
            elif said.get("did") != COLLECTS:
                self._idle += 1
                self._warn_if_stalled(rate, float(cohort.returns.mean()))
            rows.append(
                {
                    "version": drawn_by,
                    "episodes": len(cohort.returns),
                    "success_rate": rate,
                    "return_mean": float(cohort.returns.mean()),
                    **said,
                    **drawn_from,
                }
            )
        return rows

    def state(self) -> dict[str, Any]:
        """See ``ParamSampler.state``."""
        return {
            "version": self.version,
            "shapes": [shape.tolist() for shape in self._shapes],
            "claims": [[env, list(evidence), list(values)] for env, evidence, values in self._claims],
            "waiting": [[env, [list(row) for row in rows]] for env, rows in self._waiting.items()],
            "num_envs": self.training.num_envs,
            "idle": self._idle,
            "reached": self.reached,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See ``ParamSampler.load_state``.

        Evidence from another number of sub-environments is dropped, like that of a cohort that a checkpoint cuts off.

        Raises:
            ValueError: The state does not fit this sampler.
        """
        shapes = np.array(state["shapes"], np.float64)
        self.version = int(state["version"])
        if shapes.shape != (self.version + 1, *self.shape.shape) or not np.isfinite(shapes).all():
            raise ValueError(f"expected {self.version + 1} finite shapes {self.shape.shape}, got {shapes.shape}")
        self._shapes = list(shapes)
        self.shape = self._shapes[self.version]
        self._waiting, self._claims = defaultdict(list), []
        self._idle, self.reached = int(state["idle"]), bool(state["reached"])
        if state["num_envs"] != self.training.num_envs:
            return
        for env, rows in state["waiting"]:
            self._waiting[int(env)] = [(int(s), int(i), float(r), bool(good)) for s, i, r, good in rows]
        self._claims = [
            (int(env), (int(s), int(i), float(r), bool(good)), tuple(map(float, values)))
            for env, (s, i, r, good), values in state["claims"]
        ]
        if not {*self._waiting, *(env for env, _, _ in self._claims)} <= set(range(self.training.num_envs)):
            raise ValueError(f"expected evidence from {self.training.num_envs} sub-environments, got more")

    def _succeeded(self, episode: EpisodeRecord) -> bool:
        if callable(self._success):
            return bool(self._success(episode))
        return episode.episode_return >= cast(float, self._success)

    def _find_evidence(self) -> None:
        """Finds the episodes that the current version drew, once there may be enough for a cohort."""
        count = Counter(env for env, _, _ in self._claims)
        count.update({env: len(rows) for env, rows in self._waiting.items()})
        if not self._claims or len(count) < self.training.num_envs or min(count.values()) < self._per_env:
            return
        claims, self._claims = self._claims, []
        seeds, index, *_ = zip(*(evidence for _, evidence, _ in claims), strict=True)
        drawn = self.draw(np.array(seeds, np.uint64), np.array(index, np.int64))
        own = zip(*(drawn[name].tolist() for name in self.support), strict=True)
        for (env, evidence, values), redrawn in zip(claims, own, strict=True):
            if values == redrawn:
                self._waiting[env].append(evidence)

    def _complete(self) -> Cohort | None:
        """Removes and returns the next cohort if it is complete."""
        count = self._per_env
        if len(self._waiting) < self.training.num_envs or min(map(len, self._waiting.values())) < count:
            return None
        envs = sorted(self._waiting)
        rows = [self._waiting[env][place] for place in range(count) for env in envs]
        for env in envs:
            del self._waiting[env][:count]
        seeds, index, returns, successes = zip(*rows, strict=True)
        return Cohort(
            seeds=np.array(seeds, np.uint64),
            draw_index=np.array(index, np.int64),
            returns=np.array(returns, np.float64),
            successes=np.array(successes, np.float64),
        )

    def _change(self, shape: Array) -> None:
        self.version, self.shape = self.version + 1, shape
        self._shapes.append(shape)
        self._waiting.clear()
        self._idle = 0

    def _warn_if_stalled(self, rate: float, mean: float) -> None:
        """Warns after 20, 40, 80, ... cohorts without a change, unless nothing is left to learn."""
        doublings = math.log2(self._idle / STALLED)
        if doublings < 0 or not doublings.is_integer() or self.finished():
            return
        needed = "" if callable(self._success) else f" (a return of {self._success:g} or more)"
        warn(
            f"Draws have not changed for {self._idle} x {self._per_env * self.training.num_envs} episodes. In the last "
            f"cohort {rate:.0%} succeeded{needed}, and the mean return was {mean:.4g}. Unless more training will raise "
            "that, change success or choose an easier start.",
            RandomizationWarning,
        )

    @abstractmethod
    def finished(self) -> bool:
        """Whether draws cover the whole box."""


@dataclass(frozen=True, kw_only=True)
class BetaOptions(LearningOptions):
    """Options of samplers of Beta distributions."""

    kl_bound: float


class BetaSampler(LearningSampler):
    """Independent Beta distributions of quantiles; a shape holds a and b of each parameter."""

    def __init__(self, space: ParamSpace, support: Randomization, options: BetaOptions, training: TrainingInfo) -> None:
        """See ``LearningSampler``."""
        super().__init__(space, support, options, training)
        self.highest = float(self.shape.max()) + _ROOM  # of a and b

    def first_shape(self, ranges: Array) -> Array:
        """The Beta distributions with the mean and variance of the ranges."""
        return betas.fitted(ranges)

    def quantiles(self, shape: Array, seeds: Words, draw_index: Indices, version: int) -> Array:
        """Quantiles of the Beta distributions at keyed uniforms."""
        return np.clip(betas.quantile(shape, self.uniforms(seeds, draw_index, version)), EDGE, 1.0 - EDGE)

    def drawn(self, cohort: Cohort) -> Array:
        """The quantiles of a cohort, shape ``(n, K)``."""
        return self.quantiles(self.shape, cohort.seeds, cohort.draw_index, self.version)

    def step_taken(self, new: Array, z: Array) -> dict[str, float | str]:
        """Divergence of a new shape from the current one, and the effective sample size of the cohort under it."""
        size = betas.effective_sample_size(betas.weights(self.shape, new, z))
        return {"divergence": betas.divergence(self.shape, new)[0], "effective_sample_size": size}

    def describe(self, shape: Array) -> dict[str, float]:
        """The entropy, and a and b of each parameter."""
        parts = {}
        for name, (a, b) in zip(self.box.names, shape.tolist(), strict=True):
            parts.update({f"{name}.a": a, f"{name}.b": b})
        return {"entropy": betas.entropy(shape)[0], **parts}

    def finished(self) -> bool:
        """Whether draws cover the whole box uniformly."""
        return betas.entropy(self.shape)[0] > _WHOLE_BOX
