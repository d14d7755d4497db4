"""Self-paced reinforcement learning (SPDL): draws move towards the box as fast as the mean return allows.

Klink, D'Eramo, Peters and Pajarinen (2020), "Self-Paced Deep Reinforcement Learning", NeurIPS, arXiv:2004.11812, in
the form of Klink, Abdulsamad, Belousov, D'Eramo, Peters and Pajarinen (2021), "A Probabilistic Interpretation of
Self-Paced Learning with Applications to Reinforcement Learning", JMLR 22(182), section 6. From the episodes drawn under
p_i, with return J, each update solves

    minimize over p   KL(p || mu)                         distance from the target mu
    subject to        KL(p_i || p) <= kl_bound             trust region
                      mean of w (J - V) >= 0               mean return of at least V, w = p / p_i

Until the mean return first reaches V, it is maximized in the trust region instead. If it later falls below V, draws
stay as they are until training has raised it again, as in the authors' code. The authors use Gaussians, which can only
approximate a uniform target. Here p are independent Beta distributions of quantiles, and mu is the box itself,
Beta(1, 1), which they reach exactly; so KL(p || mu) = -H(p). The authors compare the mean of w J with V. Since the mean
of w is 1 only in expectation, weights below 1 could then hide negative returns; the deviation from V avoids that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from gym_dr.arrays import Array
from gym_dr.options import POSITIVE, expect, option
from gym_dr.randomization.adaptive.betas import AtLeast, entropy, expectation, maximized, trust_region
from gym_dr.randomization.adaptive.learning import BetaOptions, BetaSampler, Cohort
from gym_dr.randomization.sampler import TrainingInfo
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization


@dataclass(frozen=True, kw_only=True)
class SelfPacedOptions(BetaOptions):
    """Options of ``spdl``; V is ``success``."""

    kl_bound: float = option(0.05, "largest KL divergence between the old and new draws, in nats", within=POSITIVE)


def updated(
    shape: Array, z: Array, surplus: Array, *, reached: bool, kl_bound: float, highest: float
) -> tuple[Array, str]:
    """One update of SPDL.

    Args:
        shape: a and b of the distributions that drew, ``(n, 2)``.
        z: The quantiles that they drew, ``(n, K)``.
        surplus: Return minus V of each episode, ``(K,)``.
        reached: Whether the mean return has ever reached V.
        kl_bound: Bound of the trust region, in nats.
        highest: Largest allowed a and b.

    Returns:
        The new shape, and what happened: ``widens``, ``seeks`` (larger returns) or ``stays``.
    """
    # the solver compares the return with a divergence of a few hundredths, so it must not depend on the reward's unit
    scaled = surplus / (np.abs(surplus).max() or 1.0)
    near, performance = trust_region(shape, kl_bound), AtLeast(expectation(shape, z, scaled), 0.0)
    new: Array | None = None
    did = "stays"
    if performance.holds(shape):
        new, did = maximized(entropy, [near, performance], shape, highest), "widens"
    elif not reached:
        new, did = maximized(performance.function, [near], shape, highest), "seeks"
    return (shape, "stays") if new is None else (new, did)


class SelfPaced(BetaSampler):
    """Beta distributions that move towards the box."""

    options: SelfPacedOptions

    def __init__(
        self, space: ParamSpace, support: Randomization, options: SelfPacedOptions, training: TrainingInfo
    ) -> None:
        """See ``LearningSampler``.

        Raises:
            ConfigError: Success is a function of the episode; this method needs a return.
        """
        expect(not callable(options.success), "success", "a number, the mean return to maintain", options.success)
        super().__init__(space, support, options, training)

    def learn(self, cohort: Cohort) -> tuple[Array, dict[str, float | str]]:
        """Solves the optimization problem for a cohort."""
        z, surplus = self.drawn(cohort), cohort.returns - cast(float, self._success)
        self.reached = self.reached or bool(surplus.mean() >= 0.0)
        new, did = updated(
            self.shape, z, surplus, reached=self.reached, kl_bound=self.options.kl_bound, highest=self.highest
        )
        return new, {"did": did, **self.step_taken(new, z)}
