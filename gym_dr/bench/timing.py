"""Measures competing functions in alternation, and how speeds scale with N.

Alternation makes slow moments of the machine affect all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def alternate(sides: dict[Name, Callable[[], float]], rounds: int) -> dict[Name, list[float]]:
    """Runs every side once per round, in turn.

    Args:
        sides: name -> function that does the work and returns a measurement, for example steps per second.
        rounds: Number of rounds, after one that does not count.

    Returns:
        name -> measurements, one per round.
    """
    measured: dict[Name, list[float]] = {name: [] for name in sides}
    for round_number in range(rounds + 1):
        for name, side in sides.items():
            value = side()
            if round_number:
                measured[name].append(value)
    return measured


def speedup(rates: Sequence[float], reference: Sequence[float]) -> float:
    """Median over rounds of the ratio of two sides' rates."""
    return statistics.median(rate / base for rate, base in zip(rates, reference, strict=True))


def karp_flatt(psi: float, n: int) -> float | None:
    """Experimentally determined serial fraction (Karp and Flatt 1990, "Measuring parallel processor performance").

    ``e = (1 / psi - 1 / n) / (1 - 1 / n)``, from Amdahl's law ``psi = 1 / (e + (1 - e) / n)``. Here n counts
    sub-environments, not processors: the serial part is the time per environment that does not decrease with more of
    them, whatever the reason (one core, a loop in Python, memory).

    Args:
        psi: Speed-up over n = 1, above 0.
        n: Number of sub-environments.

    Returns:
        The fraction; 0 is perfect scaling, 1 none, above 1 slower than n = 1, below 0 more than n-fold speed. None for
        n = 1, where it is undefined.
    """
    return None if n == 1 else (1.0 / psi - 1.0 / n) / (1.0 - 1.0 / n)


def max_speedup(serial_fraction: float | None) -> float | None:
    """Amdahl's limit of the speed-up, ``1 / e``; None if there is none, for e <= 0."""
    return 1.0 / serial_fraction if serial_fraction is not None and serial_fraction > 0 else None
