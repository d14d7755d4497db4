"""Automatic domain randomization (ADR): ranges that widen where the policy succeeds at their ends.

OpenAI et al. (2019), "Solving Rubik's Cube with a Robot Hand", arXiv:1910.07113, section 5 and algorithm 1. Each
parameter is uniform between two bounds. With probability p a draw puts one parameter at one of its bounds, and the
success of that episode goes into the bound's buffer. When the buffer holds m episodes, the bound moves outwards by
delta if the mean success is at least t_high, inwards if it is at most t_low, and the buffer is emptied.

As in the version that Tiboni et al. (2024) compare with DORAEMON, nothing moves until draws from the first ranges reach
t_high for the first time; otherwise an untrained policy would shrink them to a point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices, Words
from gym_dr.options import expect, is_number, is_whole, option
from gym_dr.randomization.adaptive.learning import COLLECTS, Cohort, LearningOptions, LearningSampler
from gym_dr.randomization.sampler import TrainingInfo, uniforms
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

BOUNDARY = "\0bound"  # key of the uniform that picks a draw's bound, if any; not a valid parameter name
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class AdrOptions(LearningOptions):
    """Options of ``adr``; p, m, delta, t_high and t_low are the symbols of OpenAI (2019)."""

    bound_probability: float = option(0.5, "p: share of draws with one parameter at an end of its range")
    bound_episodes: int = option(20, "m: episodes at an end of a range before it may move")
    bound_step: float = option(0.05, "delta: step by which an end moves, as a share of the box")
    widen_at: float = option(0.5, "t_high: an end moves outwards at this success rate or above")
    narrow_at: float = option(0.25, "t_low: an end moves inwards at this success rate or below")

    def __post_init__(self) -> None:
        super().__post_init__()
        p, count, step = self.bound_probability, self.bound_episodes, self.bound_step
        expect(is_number(p) and 0.0 < p < 1.0, "bound_probability", "between 0 and 1", p)
        expect(is_whole(count) and count >= 1, "bound_episodes", "a whole number, at least 1", count)
        expect(is_number(step) and 0.0 < step <= 0.5, "bound_step", "above 0 and at most half of the box", step)
        expect(is_number(self.widen_at), "widen_at", "a number, at most 1", self.widen_at)
        ordered = is_number(self.narrow_at) and 0.0 <= self.narrow_at < self.widen_at <= 1.0
        expect(ordered, "narrow_at", f"at least 0 and below widen_at ({self.widen_at}, at most 1)", self.narrow_at)


def moved(ranges: Array, bound: int, success_rate: float, options: AdrOptions) -> Array:
    """The ranges after evaluating one bound (algorithm 1 of OpenAI 2019).

    Args:
        ranges: Lower and upper ends as quantiles, shape ``(n, 2)``.
        bound: 2 x parameter + 0 for its lower end, 1 for its upper end.
        success_rate: Success rate of the episodes at that bound.
        options: Thresholds and step.

    Returns:
        New ranges; an end stays inside the box and does not cross the other end.
    """
    parameter, end = divmod(bound, 2)
    outwards = 1 if success_rate >= options.widen_at else -1 if success_rate <= options.narrow_at else 0
    low, high = ranges[parameter]
    limits = (0.0, high) if end == 0 else (low, 1.0)
    new = ranges.copy()
    # in whole steps, so that a bound that moves out and back returns to the same value
    new[parameter, end] = np.clip(
        round(ranges[parameter, end] + (2 * end - 1) * outwards * options.bound_step, 12), *limits
    )
    return new


class Adr(LearningSampler):
    """Uniform draws between bounds that follow the success rate at each bound."""

    options: AdrOptions

    def __init__(self, space: ParamSpace, support: Randomization, options: AdrOptions, training: TrainingInfo) -> None:
        """See ``LearningSampler``."""
        super().__init__(space, support, options, training)
        self.buffers: list[list[float]] = [[] for _ in range(2 * len(self.box.names))]  # successes at each bound

    def first_shape(self, ranges: Array) -> Array:
        """The ranges themselves: a shape holds lower and upper ends."""
        return ranges

    def quantiles(self, shape: Array, seeds: Words, draw_index: Indices, version: int) -> Array:
        """Uniform between the bounds, with at most one parameter at a bound."""
        low, high = shape[:, :1], shape[:, 1:]
        drawn = np.clip(low + (high - low) * self.uniforms(seeds, draw_index, version), low, high)
        bounds = self.bounds(seeds, draw_index, version)
        at = np.flatnonzero(bounds >= 0)
        drawn[bounds[at] // 2, at] = shape.ravel()[bounds[at]]
        return drawn

    def bounds(self, seeds: Words, draw_index: Indices, version: int) -> Indices:
        """The bound that each draw is at, shape ``(K,)``: 2 x parameter + end, or -1 for none."""
        share = uniforms(seeds, draw_index, [BOUNDARY], version)[0] / self.options.bound_probability
        bounds = np.floor(share * 2 * len(self.box.names)).astype(np.int64)
        return np.where(share < 1.0, bounds, -1)

    def learn(self, cohort: Cohort) -> tuple[Array, dict[str, float | str]]:
        """Evaluates every bound with a full buffer, in the order of the episodes."""
        if not self.reached and cohort.successes.mean() < self.options.widen_at:
            return self.shape, {"did": "waits"}
        self.reached = True
        shape, did = self.shape, COLLECTS
        bounds = self.bounds(cohort.seeds, cohort.draw_index, self.version)
        for bound, success in zip(bounds.tolist(), cohort.successes.tolist(), strict=True):
            if bound < 0 or shape.flat[bound] != self.shape.flat[bound]:  # later episodes were played at the old bound
                continue
            buffer = self.buffers[bound]
            buffer.append(success)
            if len(buffer) == self.options.bound_episodes:
                shape = moved(shape, bound, float(np.mean(buffer)), self.options)
                buffer.clear()
                did = "stays"
        return shape, {"did": "moves" if (shape != self.shape).any() else did}

    def describe(self, shape: Array) -> dict[str, float]:
        """The entropy, and the bounds of each parameter as values."""
        with np.errstate(divide="ignore"):
            entropy = float(np.log(shape[:, 1] - shape[:, 0]).sum())
        ends = {}
        for end, quantiles in (("low", shape[:, :1]), ("high", shape[:, 1:])):
            values = self.box.values(quantiles)
            ends.update({f"{name}.{end}": float(values[name][0]) for name in self.box.names})
        return {"entropy": entropy, **ends}

    def finished(self) -> bool:
        """Whether every bound has reached its end of the box."""
        return bool((self.shape[:, 0] <= _ROUNDING).all() and (self.shape[:, 1] >= 1.0 - _ROUNDING).all())

    def state(self) -> dict[str, Any]:
        """See ``ParamSampler.state``."""
        return {**super().state(), "buffers": [list(buffer) for buffer in self.buffers]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See ``ParamSampler.load_state``."""
        super().load_state(state)
        self.buffers = [list(map(float, buffer)) for buffer in state["buffers"]]
        if len(self.buffers) != self.shape.size:
            raise ValueError(f"expected {self.shape.size} buffers, got {len(self.buffers)}")
