"""Numbers over seeds as a study's tables show them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gym_dr.reports.table import Cell

UNEQUAL = "†"  # marks what has unequal budgets
SMALLEST = 0.001  # smaller p-values are not written out


def cell(row: Mapping[Any, Any], *, percent: bool) -> Cell:
    """A number with its interval, and with its p-value if it is a difference."""
    scale, digits = (100.0, 0) if percent else (1.0, 0 if abs(row["value"]) >= 100 else 1)
    value, low, high = (f"{scale * float(row[name]):z.{digits}f}" for name in ("value", "low", "high"))  # z: no -0
    p = row.get("p_holm", math.nan)
    known = [] if low == "nan" else [f"{low} to {high}"]
    known += [] if math.isnan(p) else [p_value(row)]
    return Cell(f"{value} %" if percent else value, ", ".join(known))


def p_value(row: Mapping[Any, Any]) -> str:
    """A corrected p-value, as a relation."""
    return f"p < {SMALLEST}" if row["p_holm"] < SMALLEST else f"p = {row['p_holm']:.3f}"
