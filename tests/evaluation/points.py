"""Sobol points that fill ranges evenly."""

from __future__ import annotations

from collections.abc import Mapping

from gym_dr import Randomization, Uniform
from gym_dr.evaluation.sets import CellSet
from gym_dr.randomization.space import Param, ParamSpace


def points_in(ranges: Mapping[str, tuple[float, float]], points: int, episodes: int) -> CellSet:
    """A Sobol set of parameters that are uniform in ``ranges``."""
    space = ParamSpace("Box", [Param(name=n, nominal=low, low=low, high=high) for n, (low, high) in ranges.items()])
    rules = {name: Uniform(low, high) for name, (low, high) in ranges.items()}
    return CellSet.sobol("sobol", Randomization(rules), space, points, episodes)
