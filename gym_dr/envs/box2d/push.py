"""Pushes of environments on Box2D."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


def push_bodies(bodies: Iterable[Any], velocity: npt.NDArray[np.float64]) -> None:
    """Adds a velocity (m/s), shape ``(2,)``, to each body."""
    for body in bodies:
        before = body.linearVelocity
        body.linearVelocity = before.x + float(velocity[0]), before.y + float(velocity[1])
