"""Timing of sides that are compared: they alternate, so that a slow moment of the machine meets all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def alternate(sides: dict[Name, Callable[[], float]], rounds: int) -> dict[Name, list[float]]:
    """Runs every side once a round, in turn.

    Args:
        sides: name -> function that does the work and returns what it measured, for example steps per second.
        rounds: How often; one more round before is not counted.

    Returns:
        name -> measurements, one a round.
    """
    measured: dict[Name, list[float]] = {name: [] for name in sides}
    for round_number in range(rounds + 1):
        for name, side in sides.items():
            value = side()
            if round_number:
                measured[name].append(value)
    return measured
