"""Blocks and slots of which every lane holds the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gym_dr.envs.box2d.solver.layout import LANES


def filled(fields: int, values: Mapping[Any, float]) -> Any:
    """A block of ``fields`` fields, 0 but for some: field -> value."""
    block = np.zeros((fields, LANES), np.float32)
    for field, value in values.items():
        block[int(field)] = value
    return block.ravel()


def field_of(block: Any, field: Any) -> Any:
    """A field of all lanes."""
    return block[int(field) * LANES : (int(field) + 1) * LANES]


def value_of(block: Any, field: Any) -> float:
    """A field, of which every lane has the same value."""
    values = field_of(block, field)
    assert (values == values[0]).all()
    return float(values[0])
