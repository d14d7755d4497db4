"""How well work scales over N, from measured speeds: pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def speedup(rates: Sequence[float], reference: Sequence[float]) -> float:
    """Median of the ratios of two sides' rates, round by round.

    Args:
        rates: Of one side, one a round.
        reference: Of the other, in the same rounds.
    """
    return statistics.median(rate / base for rate, base in zip(rates, reference, strict=True))


def karp_flatt(psi: float, n: int) -> float | None:
    """Experimentally determined serial fraction (Karp and Flatt 1990, "Measuring parallel processor performance").

    ``e = (1 / psi - 1 / n) / (1 - 1 / n)``, from Amdahl's law ``psi = 1 / (e + (1 - e) / n)``. Here n counts
    sub-environments, not processors: what does not shrink per environment when there are more of them is the serial
    part, whatever the reason (one core, a loop in Python, memory).

    Args:
        psi: Speed-up over n = 1, above 0.
        n: Sub-environments.

    Returns:
        The fraction; 0 is perfect scaling, 1 none, above 1 means slower than n = 1, below 0 more than n-fold speed.
        None for n = 1, where there is nothing to divide.
    """
    return None if n == 1 else (1.0 / psi - 1.0 / n) / (1.0 - 1.0 / n)


def max_speedup(serial_fraction: float | None) -> float | None:
    """Amdahl's limit of the speed-up, ``1 / e``; None where there is none, for e not above 0."""
    return 1.0 / serial_fraction if serial_fraction is not None and serial_fraction > 0 else None
