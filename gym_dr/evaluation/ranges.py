"""Sobol points that fill the distributions that policies were trained on.

The cells of Sobol sets suit sensitivity indices. In uniforms, they are those of Saltelli et al. (2010, "Variance
based sensitivity analysis of model output", table 2): matrices A and B of ``points`` rows each, and for each parameter
that varies, A with that parameter's column from B. Rows come from ``SEQUENCES`` independently scrambled sequences
(Owen 1997, "Scrambled net variance for integrals of smooth functions"), or each from its own if there are fewer rows: a
single sequence does not show its precision. Correlated parameters have no such indices, since none changes without the
others: cells are only the rows of A, from one sequence.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError
from gym_dr.randomization.sampler import values_at
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

MAX_CELLS = 1_000_000  # of a set; a larger number is probably a mistake
SEQUENCES = 32  # of a Sobol set; their differences show the precision of an index

_SOBOL_SEED = 20180907  # of the scrambling, the same in every evaluation
_HALF_STEP = 2.0**-31  # scipy's Sobol points are multiples of 2**-30, including 0; half a step more keeps them above 0


def varies(space: ParamSpace, randomization: Randomization) -> bool:
    """Whether a parameter can have more than one value."""
    return any(np.ptp(rule.support(space[name].nominal)) > 0 for name, rule in randomization.items())


def correlated(randomization: Randomization) -> tuple[str, ...]:
    """The parameters that are not drawn independently."""
    if (found := randomization.correlation) is None:
        return ()
    return tuple(name for name, row in zip(found.names, found.matrix, strict=True) if sum(map(bool, row)) > 1)


def check_count(what: str, cells: int) -> int:
    """Checks and returns a number of cells.

    Raises:
        ConfigError: There are too many.
    """
    if cells > MAX_CELLS:
        raise ConfigError(f"{what} has {cells:,} cells; expected at most {MAX_CELLS:,}.")
    return cells


# ---- Sobol points; a definition is that of a ``CellSet`` with ``points`` ---------------------------------------------


def check_points(definition: Mapping[str, Any]) -> None:
    """Checks the number of points.

    Raises:
        ConfigError: It is not a power of 2, or there are too many cells.
    """
    points = definition["points"]
    if points < 2 or points & (points - 1):
        near = 2 ** max(1, round(math.log2(max(points, 1))))
        raise ConfigError(f"`sobol`: expected a power of 2, at least 2, got {points}; {near} is near.")
    check_count(f"`sobol={points}`", num_cells(definition))


def num_cells(definition: Mapping[str, Any]) -> int:
    """The number of cells."""
    points: int = definition["points"]
    return points if correlated(_randomization(definition)) else points * (len(_varied(definition)) + 2)


def cell_values(definition: Mapping[str, Any]) -> Array:
    """Values of the parameters that vary, shape ``(cells, parameters)``."""
    points, sequences, varied = definition["points"], definition.get("sequences", 1), _varied(definition)
    d = len(definition["space"])
    if correlated(_randomization(definition)):
        return values_of(definition, unit_points(points, d, sequences, _SOBOL_SEED))
    unit = unit_points(points, 2 * d, sequences, _SOBOL_SEED)
    a, b = unit[:, :d], unit[:, d:]
    mixed = (np.where(np.arange(d) == column, b, a) for column in varied)
    return values_of(definition, np.concatenate([a, b, *mixed]))


def values_of(definition: Mapping[str, Any], unit: Array) -> Array:
    """Values at quantiles: ``(N, all parameters)`` in [0, 1) -> ``(N, varied parameters)``."""
    unbounded = {"low": -math.inf, "high": math.inf}
    space = ParamSpace("", [Param(name=n, **{**unbounded, **row}) for n, row in definition["space"].items()])
    drawn = values_at(_randomization(definition), space, dict(zip(space, unit.T + _HALF_STEP, strict=True)))
    return np.column_stack([drawn[name] for name in space if name not in definition["fixed"]])


@functools.lru_cache(maxsize=4)
def unit_points(points: int, d: int, sequences: int, seed: int) -> Array:
    """Scrambled Sobol sequences in [0, 1), one after the other, shape ``(points, d)``."""
    from scipy.stats import qmc  # heavy

    check_count("A Sobol sequence", max(points, sequences))  # again: a file may hold anything
    rng = np.random.default_rng(seed)
    return np.concatenate([qmc.Sobol(d, scramble=True, rng=rng).random(points // sequences) for _ in range(sequences)])


def _varied(definition: Mapping[str, Any]) -> list[int]:
    """The columns of uniforms whose parameters vary."""
    return [column for column, name in enumerate(definition["space"]) if name not in definition["fixed"]]


def _randomization(definition: Mapping[str, Any]) -> Randomization:
    return Randomization.from_dict(definition["randomization"])
