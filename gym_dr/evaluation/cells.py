"""Where a policy is looked at: sets of cells, each of them fixed values or draws, played for equally many episodes.

A set's values follow from its JSON form alone, so that a reader of an evaluation gets them back.
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
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

Array = npt.NDArray[np.float64]
Values = Mapping[str, float]

KINDS = ("nominal", "distribution", "grid", "corners", "sobol")
MOST_CELLS = 1_000_000  # of a set; more are a slip of the hand

_SOBOL_SEED = 20180907  # of the scrambling, the same in every evaluation


@dataclass(frozen=True, kw_only=True)
class Box:
    """Ranges of parameters, both ends included."""

    ranges: Mapping[str, tuple[float, float]]  # of those that vary; low < high
    fixed: Values  # of those that do not but differ from nominal
    whole: tuple[str, ...] = ()  # names of those that are whole numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class CellSet:
    """Cells that are summed up together. Episode k of the set is episode ``k % episodes`` of cell ``k // episodes``."""

    name: str  # unique in an evaluation
    kind: str  # one of KINDS
    episodes: int  # of each cell
    # what makes the cells, as JSON: axes (grid), box (corners, sobol), points and whole (sobol), fixed, randomization
    definition: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"Expected at least 1 episode, got {self.episodes}.")

    @cached_property
    def randomization(self) -> Randomization | None:
        """What is drawn anew in each episode; None where every cell has fixed values."""
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
    def touched(self) -> tuple[str, ...]:
        """All parameters that may differ from nominal."""
        return tuple(self.randomization or ()) or (*self.names, *self.fixed)

    @property
    def cells(self) -> int:
        """How many."""
        return len(self.values)

    @property
    def total(self) -> int:
        """Episodes of all cells together."""
        return self.cells * self.episodes

    def cell(self, index: int) -> dict[str, float]:
        """The values of one cell, by name; nominal where it says nothing."""
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
        """The form for JSON; ``from_dict`` gives an equal set back."""
        head = {"name": self.name, "kind": self.kind, "episodes": self.episodes, "cells": self.cells}
        return {**head, **self.definition}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> CellSet:
        """Reads what ``to_dict`` gave."""
        head = {key: form[key] for key in ("name", "kind", "episodes")}
        return cls(**head, definition={key: value for key, value in form.items() if key not in (*head, "cells")})


def nominal(episodes: int) -> CellSet:
    """The unchanged environment."""
    return CellSet(name="nominal", kind="nominal", episodes=episodes, definition={})


def distribution(name: str, randomization: Randomization, episodes: int) -> CellSet:
    """A draw of its own for each episode."""
    definition = {"randomization": randomization.to_dict()}
    return CellSet(name=name, kind="distribution", episodes=episodes, definition=definition)


def axis(name: str, low: float, high: float, count: int) -> Array:
    """Values of a parameter on a grid: ``count`` from ``low`` to ``high``, both included.

    Raises:
        ConfigError: They stand for no value.
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
    """Every combination of some parameters' values, the others nominal.

    A parameter that has no effect while a switch of the environment is off (wind power without wind) has it on, unless
    the switch is on the grid itself.

    Args:
        space: What may vary.
        axes: name -> values.
        episodes: Of each cell.

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
    made = CellSet(name="grid", kind="grid", episodes=episodes, definition={"axes": checked, "fixed": fixed})
    space.check_vector(dict(zip(made.names, made.values.T, strict=True)), made.cells)  # and whether they go together
    return made


def training_box(space: ParamSpace, randomizations: Iterable[Randomization | None]) -> Box:
    """The smallest box that holds everything that some runs were trained on.

    Raises:
        ConfigError: Nothing varies, or something has no finite range.
    """
    ends: dict[str, list[float]] = {}
    for randomization in randomizations:
        for name, rule in (randomization or Randomization()).items():
            ends.setdefault(name, []).extend(_support(space[name], rule.support(space[name].nominal)))
    ranges = {name: (min(ends[name]), max(ends[name])) for name in space if name in ends}
    endless = [name for name, (low, high) in ranges.items() if not math.isfinite(high - low)]
    if endless:
        raise ConfigError(f"The training range of {', '.join(endless)} has no end; say where to look with --grid.")
    varying = {name: pair for name, pair in ranges.items() if pair[0] < pair[1]}
    if not varying:
        raise ConfigError(
            "Expected runs that were trained on randomized parameters, whose box --sobol and --corners look at; "
            "these varied none. Say where to look with --grid."
        )
    whole = tuple(name for name in varying if space[name].kind != "float")
    return Box(ranges=varying, fixed={name: low for name, (low, high) in ranges.items() if low == high}, whole=whole)


def corners(box: Box, episodes: int) -> CellSet:
    """Every combination of smallest and largest values.

    Raises:
        ConfigError: There are too many.
    """
    _check_count(f"The box of {len(box.ranges)} parameters", 2 ** len(box.ranges))
    definition = {"box": _lists(box.ranges), "fixed": dict(box.fixed)}
    return CellSet(name="corners", kind="corners", episodes=episodes, definition=definition)


def sobol(box: Box, points: int, episodes: int) -> CellSet:
    """Points that fill the box evenly, placed so that sensitivity indices follow from them.

    Cells are those of Saltelli et al. (2010, "Variance based sensitivity analysis of model output", table 2): matrices
    A and B of ``points`` rows each, and for each of the d parameters A with that parameter's column from B.

    Args:
        box: Where to look; each value is equally likely.
        points: Rows of A, a power of 2.
        episodes: Of each of the ``points * (d + 2)`` cells.

    Raises:
        ConfigError: The number of points is no power of 2, or there are too many cells.
    """
    if points < 2 or points & (points - 1):
        near = 2 ** max(1, round(math.log2(max(points, 1))))
        raise ConfigError(f"--sobol: expected a power of 2 from 2 on, got {points}; {near} is near.")
    _check_count(f"--sobol {points} with {len(box.ranges)} parameters", points * (len(box.ranges) + 2))
    definition = {"points": points, "box": _lists(box.ranges), "whole": list(box.whole), "fixed": dict(box.fixed)}
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
    mixed = np.repeat(a[None], d, axis=0)
    for column in range(d):
        mixed[column, :, column] = b[:, column]
    stacked = np.concatenate([a, b, *mixed])
    low, high = np.array(list(box.values())).T
    is_whole = np.array([name in whole for name in box])
    scaled: Array = np.where(is_whole, np.floor(low + stacked * (high - low + 1)), low + stacked * (high - low))
    return np.clip(scaled, low, high)  # rounding may pass an end


def _support(param: Param, ends: tuple[float, float]) -> tuple[float, ...]:
    return tuple(min(max(end, param.low), param.high) for end in ends)


def _check_count(what: str, cells: int) -> None:
    if cells > MOST_CELLS:
        raise ConfigError(f"{what} has {cells:,} cells; expected at most {MOST_CELLS:,}.")


def _lists(ranges: Mapping[str, tuple[float, float]]) -> dict[str, list[float]]:
    return {name: list(pair) for name, pair in ranges.items()}
