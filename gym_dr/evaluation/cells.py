"""Sets of cells, on which policies are evaluated.

A cell is one setting of the environment's parameters, fixed values or a distribution, that is played for a number of
episodes. The values of a set follow from its JSON form alone, so that a reader of an evaluation can recover them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import ConfigError
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

Array = npt.NDArray[np.float64]
Values = Mapping[str, float]

KINDS = ("nominal", "distribution", "grid", "corners", "sobol")
MAX_CELLS = 1_000_000  # of a set; more are probably a mistake

_SOBOL_SEED = 20180907  # of the scrambling, the same in every evaluation


@dataclass(frozen=True, kw_only=True)
class Box:
    """Ranges of parameters, both ends included."""

    ranges: Mapping[str, tuple[float, float]]  # of parameters that vary; low < high
    fixed: Values  # of parameters that do not vary but differ from nominal
    whole: tuple[str, ...] = ()  # names of parameters that are whole numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class CellSet:
    """Cells with common statistics. Episode k of the set is episode ``k % episodes`` of cell ``k // episodes``."""

    name: str  # unique in an evaluation
    kind: str  # one of KINDS
    episodes: int  # of each cell
    # what determines the cells, as JSON: axes (grid); box (corners, sobol); points, whole (sobol); fixed; randomization
    definition: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"Expected at least 1 episode, got {self.episodes}.")

    @cached_property
    def randomization(self) -> Randomization | None:
        """The distribution of each episode's draw; None where every cell has fixed values."""
        form = self.definition.get("randomization")
        return None if form is None else Randomization.from_dict(form)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters that vary between cells, in the order of the columns of ``values``."""
        return tuple(self.definition.get("axes") or self.definition.get("box") or ())

    @cached_property
    def values(self) -> Array:
        """Shape ``(cells, len(names))``; the last name varies fastest on a grid and over corners."""
        return _values(self.kind, self.definition)

    @property
    def fixed(self) -> Values:
        """Values other than nominal that all cells share."""
        fixed: Values = self.definition.get("fixed", {})
        return fixed

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters that may differ from nominal."""
        return tuple(self.randomization or ()) or (*self.names, *self.fixed)

    @property
    def num_cells(self) -> int:
        """The number of cells."""
        return len(self.values)

    @property
    def num_episodes(self) -> int:
        """The number of episodes of all cells together."""
        return self.num_cells * self.episodes

    def cell(self, index: int) -> dict[str, float]:
        """The values of one cell by name; other parameters are nominal."""
        return {**dict(zip(self.names, self.values[index].tolist(), strict=True)), **self.fixed}

    def params(self, episodes: npt.NDArray[np.int64]) -> dict[str, Array]:
        """The fixed values of some episodes.

        Args:
            episodes: Their numbers in the set, shape ``(N,)``.

        Returns:
            name -> values of shape ``(N,)``; nothing for nominal values and for draws.
        """
        rows = self.values[episodes // self.episodes]
        constant = {name: np.full(len(episodes), value) for name, value in self.fixed.items()}
        return {**constant, **{name: rows[:, column] for column, name in enumerate(self.names)}}

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which ``from_dict`` reads."""
        head = {"name": self.name, "kind": self.kind, "episodes": self.episodes, "cells": self.num_cells}
        return {**head, **self.definition}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> CellSet:
        """Reads the JSON form."""
        head = {key: form[key] for key in ("name", "kind", "episodes")}
        return cls(**head, definition={key: value for key, value in form.items() if key not in (*head, "cells")})


def nominal(episodes: int) -> CellSet:
    """One cell with nominal values."""
    return CellSet(name="nominal", kind="nominal", episodes=episodes, definition={})


def distribution(name: str, randomization: Randomization, episodes: int) -> CellSet:
    """One cell with a new draw in each episode."""
    definition = {"randomization": randomization.to_dict()}
    return CellSet(name=name, kind="distribution", episodes=episodes, definition=definition)


def axis(name: str, low: float, high: float, count: int) -> Array:
    """Values of a parameter on a grid: ``count`` from ``low`` to ``high``, both included.

    Raises:
        ConfigError: The text is malformed or describes no values.
    """
    given = f"--grid {name}={low:g}:{high:g}:{count}"
    if count < 1:
        raise ConfigError(f"{given}: the grid is empty; expected a count of at least 1, got {count}.")
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ConfigError(f"{given}: expected finite LOW <= HIGH, got {low:g} and {high:g}.")
    if (low == high) != (count == 1):
        raise ConfigError(
            f"{given}: both ends are included, so expected a count of at least 2 for two ends and of 1 for one "
            f"value, got {count}."
        )
    return np.linspace(low, high, count)


def grid(space: ParamSpace, axes: Mapping[str, npt.ArrayLike], episodes: int) -> CellSet:
    """Every combination of some parameters' values, ``axes`` by name, the others nominal.

    Where a parameter has an effect only while a switch is on (wind power needs wind), the switch is on, unless it is on
    the grid itself.

    Raises:
        UnknownNameError: There is no such parameter.
        RandomizationError: A value is out of bounds or of the wrong kind.
        ConfigError: There is no cell, or there are too many.
    """
    if not axes:
        raise ConfigError("The grid is empty: expected values of at least one parameter.")
    checked = {name: np.atleast_1d(space[name].check(values)).tolist() for name, values in axes.items()}
    _check_count("The grid", math.prod(len(values) for values in checked.values()))
    switches = {space[name].switch for name in checked} - {"", *checked}
    fixed = {name: 1.0 for name in sorted(switches) if space[name].nominal != 1.0}
    cells = CellSet(name="grid", kind="grid", episodes=episodes, definition={"axes": checked, "fixed": fixed})
    space.check_vector(dict(zip(cells.names, cells.values.T, strict=True)), cells.num_cells)  # valid combinations?
    return cells


def training_box(space: ParamSpace, randomizations: Iterable[Randomization | None]) -> Box:
    """The smallest box around the training ranges of some runs.

    Raises:
        ConfigError: Nothing varies, or something has no finite range.
    """
    ends: dict[str, list[float]] = {}
    for randomization in randomizations:
        for name, rule in (randomization or Randomization()).items():
            ends.setdefault(name, []).extend(
                np.clip(rule.support(space[name].nominal), space[name].low, space[name].high)
            )
    ranges = {name: (min(ends[name]), max(ends[name])) for name in space if name in ends}
    unbounded = [name for name, (low, high) in ranges.items() if not math.isfinite(high - low)]
    if unbounded:
        raise ConfigError(f"The training range of {', '.join(unbounded)} is unbounded; choose values with --grid.")
    varying = {name: pair for name, pair in ranges.items() if pair[0] < pair[1]}
    if not varying:
        raise ConfigError(
            "--sobol and --corners cover the box of randomized parameters: expected runs that were trained with some, "
            "got none. Choose values with --grid."
        )
    whole = tuple(name for name in varying if space[name].kind != "float")
    return Box(ranges=varying, fixed={name: low for name, (low, high) in ranges.items() if low == high}, whole=whole)


def corners(box: Box, episodes: int) -> CellSet:
    """Every combination of smallest and largest values.

    Raises:
        ConfigError: There are too many.
    """
    _check_count(f"The box of {len(box.ranges)} parameters", 2 ** len(box.ranges))
    definition = {"box": _json_ranges(box), "fixed": dict(box.fixed)}
    return CellSet(name="corners", kind="corners", episodes=episodes, definition=definition)


def sobol(box: Box, points: int, episodes: int) -> CellSet:
    """Points that fill the box evenly, placed so that sensitivity indices follow from them.

    Cells are those of Saltelli et al. (2010, "Variance based sensitivity analysis of model output", table 2): matrices
    A and B of ``points`` rows each, and for each of the d parameters A with that parameter's column from B.

    Args:
        box: The ranges; each value is equally likely.
        points: Rows of A, a power of 2.
        episodes: Of each of the ``points * (d + 2)`` cells.

    Raises:
        ConfigError: The number of points is no power of 2, or there are too many cells.
    """
    if points < 2 or points & (points - 1):
        near = 2 ** max(1, round(math.log2(max(points, 1))))
        raise ConfigError(f"--sobol: expected a power of 2, at least 2, got {points}; {near} is near.")
    _check_count(f"--sobol {points} with {len(box.ranges)} parameters", points * (len(box.ranges) + 2))
    definition = {"points": points, "box": _json_ranges(box), "whole": list(box.whole), "fixed": dict(box.fixed)}
    return CellSet(name="sobol", kind="sobol", episodes=episodes, definition=definition)


def _values(kind: str, definition: Mapping[str, Any]) -> Array:
    if kind in ("grid", "corners"):
        columns: Iterable[Sequence[float]] = definition["axes" if kind == "grid" else "box"].values()
        return np.array(list(itertools.product(*columns)), dtype=np.float64)
    if kind == "sobol":
        return _saltelli(definition["box"], definition["whole"], definition["points"])
    return np.empty((1, 0))


def _saltelli(box: Mapping[str, tuple[float, float]], whole: Sequence[str], points: int) -> Array:
    """Matrices A, B and A with each column from B, one below the other: ``(points * (d + 2), d)``."""
    from scipy.stats import qmc  # heavy

    d = len(box)
    unit = qmc.Sobol(2 * d, scramble=True, rng=np.random.default_rng(_SOBOL_SEED)).random(points)
    a, b = unit[:, :d], unit[:, d:]
    stacked = np.concatenate([a, b, *(np.where(np.arange(d) == column, b, a) for column in range(d))])
    low, high = np.array(list(box.values())).T
    is_whole = np.array([name in whole for name in box])
    scaled: Array = np.where(is_whole, np.floor(low + stacked * (high - low + 1)), low + stacked * (high - low))
    return np.clip(scaled, low, high)  # rounding may pass an end


def _check_count(what: str, cells: int) -> None:
    if cells > MAX_CELLS:
        raise ConfigError(f"{what} has {cells:,} cells; expected at most {MAX_CELLS:,}.")


def _json_ranges(box: Box) -> dict[str, list[float]]:
    return {name: list(pair) for name, pair in box.ranges.items()}
