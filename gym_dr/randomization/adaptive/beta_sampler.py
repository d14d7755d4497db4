"""The common part of samplers of Beta distributions: draws, rows and saved state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array, Indices, Words
from gym_dr.randomization.adaptive import betas
from gym_dr.randomization.adaptive.box import EDGE
from gym_dr.randomization.adaptive.learning import Cohort, LearningOptions, LearningSampler
from gym_dr.randomization.sampler import TrainingInfo
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

_WHOLE_BOX = -1e-4  # entropy above which nothing is left to widen
_ROOM = 10.0  # how far a and b may exceed those of the start


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
