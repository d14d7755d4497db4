"""A log of a cart, fits of it that take a moment, and numbers of their results."""

from __future__ import annotations

from typing import Any

import gym_dr
from gym_dr.fitting.results import Fit
from tests.fitting.logged import CART, logged

PRIOR: dict[str, Any] = {"length": (0.25, 1.0), "force_mag": (9.0, 15.0), "masscart": (0.7, 1.4)}
TRUTH = {"length": 0.7, "force_mag": 12.0}  # masscart is nominal, 1: the ratio is 12
NOISE = 0.01
LENGTH: dict[str, Any] = {"length": (0.25, 1.0)}


def short_log() -> list[dict[str, Any]]:
    """For fits whose numbers do not matter."""
    return logged(params=TRUTH, episodes=6, steps=12)


def fit(log: Any, **asked: Any) -> Fit:
    """A fit of the pole's length by the likelihood alone, unless asked for more."""
    return gym_dr.fit(log, **{"env": CART, "randomize": LENGTH, "method": "likelihood", "progress": False, **asked})


def number(found: Fit, name: str, column: str) -> float:
    """Of a parameter in a fit's table."""
    return float(found.parameters[column][name])
