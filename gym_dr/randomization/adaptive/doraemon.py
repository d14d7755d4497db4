"""DORAEMON: the most varied draws at which the policy still reaches a given success rate.

Tiboni, Klink, Peters, Tommasi, D'Eramo and Chalvatzaki (2024), "Domain Randomization via Entropy Maximization",
ICLR 2024, arXiv:2311.01885, sections 3 and 4 and algorithm 1. Draws are independent Beta distributions nu_phi on the
box. From the episodes drawn under phi_i, with success sigma in {0, 1}, each update solves

    maximize over phi   H(nu_phi)                               entropy
    subject to          KL(nu_phi_i || nu_phi) <= kl_bound       trust region
                        G(phi) = mean of w sigma >= alpha        success rate, w = nu_phi / nu_phi_i

If the success rate of phi_i is below alpha, G is first maximized in the trust region (the backup problem). If that
reaches alpha, entropy is maximized from there; otherwise the shape with the largest G is used. Nothing changes until
the success rate reaches alpha for the first time. The direction of the divergence, the plain mean (not normalized by
the weights) and the upper limit on a and b, about 10 above those of the start, follow the authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass

from gym_dr.arrays import Array
from gym_dr.options import POSITIVE, SHARE, option
from gym_dr.randomization.adaptive.betas import AtLeast, entropy, expectation, maximized, trust_region
from gym_dr.randomization.adaptive.learning import BetaOptions, BetaSampler, Cohort


@dataclass(frozen=True, kw_only=True)
class DoraemonOptions(BetaOptions):
    """Options of ``doraemon``."""

    alpha: float = option(0.5, "success rate to maintain", within=SHARE)
    kl_bound: float = option(0.1, "largest KL divergence between the old and new draws, in nats", within=POSITIVE)


def updated(
    shape: Array, z: Array, successes: Array, *, alpha: float, kl_bound: float, highest: float
) -> tuple[Array, str]:
    """One update of DORAEMON.

    Args:
        shape: a and b of the distributions that drew, ``(n, 2)``.
        z: The quantiles that they drew, ``(n, K)``.
        successes: 1 or 0, ``(K,)``.
        alpha: Success rate to maintain.
        kl_bound: Bound of the trust region, in nats.
        highest: Largest allowed a and b.

    Returns:
        The new shape, and what happened: ``widens``, ``backs up``, or ``stays`` if no better shape was found.
    """
    near = trust_region(shape, kl_bound)
    success_rate = AtLeast(expectation(shape, z, successes), alpha)
    start = shape
    if not success_rate.holds(shape):
        found = maximized(success_rate.function, [near], shape, highest)
        if found is None:
            return shape, "stays"
        if not success_rate.holds(found):
            return found, "backs up"
        start = found
    new = maximized(entropy, [near, success_rate], start, highest)
    if new is None:
        return start, "stays" if start is shape else "backs up"
    return new, "widens"


class Doraemon(BetaSampler):
    """Beta distributions that are as wide as the success rate allows."""

    options: DoraemonOptions

    def learn(self, cohort: Cohort) -> tuple[Array, dict[str, float | str]]:
        """Waits until the success rate first reaches alpha, then solves the problem for each cohort."""
        z, options = self.drawn(cohort), self.options
        if not self.reached and cohort.successes.mean() < options.alpha:
            return self.shape, {"did": "waits", **self.step_taken(self.shape, z)}
        self.reached = True
        new, did = updated(
            self.shape, z, cohort.successes, alpha=options.alpha, kl_bound=options.kl_bound, highest=self.highest
        )
        return new, {"did": did, **self.step_taken(new, z)}
