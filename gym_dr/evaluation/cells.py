"""Sets of cells to evaluate policies on.

A cell is one setting of the environment's parameters, fixed values or a distribution, that is played for a number of
episodes. The JSON form of a set determines its values, so a reader of an evaluation can recover them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.errors import ConfigError
from gym_dr.policies.frozen import Draws
from gym_dr.randomization.draws import values_at
from gym_dr.randomization.space import Param, ParamSpace, switches_needed
from gym_dr.randomization.spec import Randomization

SET_KINDS = ("nominal", "fixed", "distribution", "grid", "corners", "sobol", "sobol-box")
MAX_CELLS = 1_000_000  # of a set; more are probably a mistake
SEQUENCES = 32  # independently scrambled Sobol sequences of a set; their differences tell how exact an index is

_SOBOL_SEED = 20180907  # of the scrambling, the same in every evaluation
_HALF_STEP = 2.0**-31  # scipy's Sobol points are multiples of 2**-30, including 0; half a step more keeps them above 0


@dataclass(frozen=True, kw_only=True)
class Box:
    """Ranges of parameters, both ends included."""

    ranges: Mapping[str, tuple[float, float]]  # of parameters that vary; low < high
    fixed: Mapping[str, float]  # of parameters that do not vary but differ from nominal
    whole: tuple[str, ...] = ()  # names of parameters that are whole numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class CellSet:
    """Cells with common statistics. Episode k of the set is episode ``k % episodes`` of cell ``k // episodes``."""

    name: str  # unique in an evaluation
    kind: str  # one of SET_KINDS
    episodes: int  # of each cell
    # Determines the cells, as JSON: axes (grid); box (corners, sobol-box); whole (sobol-box); points and sequences
    # (sobol, sobol-box); randomization (distribution, sobol); space (sobol: nominal values and
    # finite bounds); fixed, which replaces draws too.
    definition: Mapping[str, Any]
    switched_on: tuple[str, ...] = ()  # switches in ``fixed`` that nobody asked for; a file does not say so

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"Expected at least 1 episode, got {self.episodes}.")

    @cached_property
    def randomization(self) -> Randomization | None:
        """The distribution of each episode's draw; None if every cell has fixed values."""
        return _saved(self.definition) if self.kind == "distribution" else None

    @property
    def points(self) -> int | None:
        """Rows of the Sobol sequences; None for other kinds. Cells ``i``, ``i + points``, ... come from row i."""
        points: int | None = self.definition.get("points")
        return points

    @property
    def correlated(self) -> tuple[str, ...]:
        """The parameters that a Sobol sequence does not vary independently."""
        return correlated(_saved(self.definition)) if self.kind == "sobol" else ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters that vary between cells: the columns of ``values``."""
        listed = next((self.definition[key] for key in ("axes", "box", "space") if key in self.definition), ())
        return tuple(name for name in listed if name not in self.fixed)

    @cached_property
    def values(self) -> Array:
        """Shape ``(cells, len(names))``; the last name varies fastest on a grid and over corners."""
        return _values(self.kind, self.definition)

    def quantiles(self, levels: Array) -> Array:
        """Quantiles of each parameter of a Sobol set.

        Args:
            levels: Probabilities in [0, 1), shape ``(N,)``.

        Returns:
            Shape ``(N, len(names))``.
        """
        by_quantile = self.kind == "sobol"
        unit = np.repeat(levels[:, None], len(self.definition["space" if by_quantile else "box"]), axis=1)
        return (_by_quantile if by_quantile else _in_box)(self.definition, unit)

    @property
    def fixed(self) -> Mapping[str, float]:
        """Values that all cells share and that differ from nominal."""
        fixed: Mapping[str, float] = self.definition.get("fixed", {})
        return fixed

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters that may differ from nominal."""
        if self.randomization is None:
            return (*self.names, *self.fixed)
        return tuple(dict.fromkeys((*self.randomization, *self.fixed)))

    @property
    def draws(self) -> Draws:
        """What its episodes draw, and which values they set."""
        return Draws(
            randomization=self.randomization or Randomization(),
            fixed=self.fixed,
            settable=self.names,
            episodes=self.num_episodes,
        )

    @property
    def notes(self) -> list[str]:
        """Remarks for the user."""
        return [
            f"{self.name}: {switch} is on, since a parameter has no effect without it." for switch in self.switched_on
        ]

    @property
    def num_cells(self) -> int:
        """The number of cells."""
        return len(self.values)

    @property
    def num_episodes(self) -> int:
        """The number of episodes of all cells."""
        return self.num_cells * self.episodes

    def cell(self, index: int) -> dict[str, float]:
        """The values of one cell by name; other parameters are nominal."""
        return {**dict(zip(self.names, self.values[index].tolist(), strict=True)), **self.fixed}

    def params(self, episodes: Indices) -> dict[str, Array]:
        """The fixed values of episodes.

        Args:
            episodes: Indices of episodes in the set, shape ``(N,)``.

        Returns:
            name -> values of shape ``(N,)``; empty for nominal values and for draws.
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


def fixed(name: str, values: Mapping[str, float], episodes: int) -> CellSet:
    """One cell with these values, checked; other parameters are nominal."""
    return CellSet(name=name, kind="fixed", episodes=episodes, definition={"fixed": dict(values)})


def distribution(
    name: str, randomization: Randomization, episodes: int, values: Mapping[str, float] | None = None
) -> CellSet:
    """One cell with a new draw in each episode, in which ``values``, checked, replace draws."""
    definition: dict[str, Any] = {"randomization": randomization.to_dict()}
    if values:
        definition["fixed"] = dict(values)
    return CellSet(name=name, kind="distribution", episodes=episodes, definition=definition)


def grid(space: ParamSpace, axes: Mapping[str, npt.ArrayLike], episodes: int) -> CellSet:
    """Every combination of the parameters' values in ``axes``, name -> values; other parameters are nominal.

    If a parameter only has an effect while a switch is on (wind power needs wind), the switch is on, unless the switch
    is one of the axes.

    Raises:
        UnknownNameError: There is no such parameter.
        RandomizationError: A value is out of bounds or of the wrong kind.
        ConfigError: There is no cell, or there are too many.
    """
    if not axes:
        raise ConfigError("The grid is empty: expected values of at least one parameter.")
    checked = {name: np.atleast_1d(space[name].check(values)).tolist() for name, values in axes.items()}
    _check_count("The grid", math.prod(len(values) for values in checked.values()))
    fixed = switches_needed(space, {name: (min(values), max(values)) for name, values in checked.items()})
    definition = {"axes": checked, "fixed": fixed}
    cells = CellSet(name="grid", kind="grid", episodes=episodes, definition=definition, switched_on=tuple(fixed))
    space.check_vector(dict(zip(cells.names, cells.values.T, strict=True)), cells.num_cells)  # valid combinations?
    return cells


def training_box(space: ParamSpace, randomizations: Iterable[Randomization | None]) -> Box:
    """The smallest box that contains all training ranges.

    Raises:
        ConfigError: Nothing varies, or something has no finite range.
    """
    ends: dict[str, list[float]] = {}
    for randomization in randomizations:
        given = randomization or Randomization()
        for name, rule in given.items():
            ends.setdefault(name, []).extend(
                np.clip(rule.support(space[name].nominal), space[name].low, space[name].high)
            )
    ranges = {name: (min(ends[name]), max(ends[name])) for name in space.in_order(ends)}
    unbounded = [name for name, (low, high) in ranges.items() if not math.isfinite(high - low)]
    if unbounded:
        raise ConfigError(f"The training range of {', '.join(unbounded)} is unbounded; choose values with `grid`.")
    varying = {name: pair for name, pair in ranges.items() if pair[0] < pair[1]}
    if not varying:
        raise nothing_varies()
    whole = tuple(name for name in varying if space[name].kind != "float")
    return Box(ranges=varying, fixed={name: low for name, (low, high) in ranges.items() if low == high}, whole=whole)


def corners(box: Box, episodes: int) -> CellSet:
    """Every combination of the parameters' smallest and largest values.

    Raises:
        ConfigError: There are too many.
    """
    _check_count(f"The box of {len(box.ranges)} parameters", 2 ** len(box.ranges))
    definition = {"box": _json_ranges(box), "fixed": dict(box.fixed)}
    return CellSet(name="corners", kind="corners", episodes=episodes, definition=definition)


def varies(space: ParamSpace, randomization: Randomization) -> bool:
    """Whether a parameter can have more than one value."""
    return any(np.ptp(rule.support(space[name].nominal)) > 0 for name, rule in randomization.items())


def nothing_varies() -> ConfigError:
    """The error for sets that need a training randomization, without one."""
    return ConfigError(
        "Sobol points and corners cover the randomization that policies were trained on: expected runs trained with "
        "randomized parameters, or `randomization` for other policies, got none. Choose values with `grid`."
    )


def correlated(randomization: Randomization) -> tuple[str, ...]:
    """The parameters that are not drawn independently."""
    if (found := randomization.correlation) is None:
        return ()
    return tuple(name for name, row in zip(found.names, found.matrix, strict=True) if sum(map(bool, row)) > 1)


def sobol(name: str, randomization: Randomization, space: ParamSpace, points: int, episodes: int) -> CellSet:
    """Points that fill a distribution evenly: Sobol sequences, mapped like the uniforms of draws.

    Their layout allows sensitivity indices. In uniforms, cells are those of Saltelli et al. (2010, "Variance based
    sensitivity analysis of model output", table 2): matrices A and B of ``points`` rows each, and for each of the d
    parameters that vary, A with that parameter's column from B. Rows come from ``SEQUENCES`` independently scrambled
    sequences (Owen 1997, "Scrambled net variance for integrals of smooth functions"), or each from its own if there are
    fewer rows: a single sequence does not show how exact it is. Correlated parameters have no such indices, since one
    cannot change without the others: cells are only the rows of A, from one sequence.

    Args:
        name: Name of the set.
        randomization: The distribution; at least one parameter varies.
        space: Nominal values and bounds.
        points: Rows of A, a power of 2.
        episodes: Episodes of each of the ``points * (d + 2)`` cells, or ``points`` cells with correlation.

    Raises:
        ConfigError: The number of points is not a power of 2, or there are too many cells.
    """
    names = space.in_order(randomization)
    middle = values_at(randomization, space, dict.fromkeys(names, np.full(1, 0.5)))
    constant = {n: float(middle[n][0]) for n in names if np.ptp(randomization[n].support(space[n].nominal)) == 0}
    _check_points(points, 1 if correlated(randomization) else len(names) - len(constant) + 2)
    numbers = {n: {"nominal": space[n].nominal, "low": space[n].low, "high": space[n].high} for n in names}
    finite = {n: {k: float(v) for k, v in row.items() if math.isfinite(v)} for n, row in numbers.items()}
    rows = {"points": points} if correlated(randomization) else _rows(points)
    definition = {**rows, "randomization": randomization.to_dict(), "space": finite, "fixed": constant}
    return CellSet(name=name, kind="sobol", episodes=episodes, definition=definition)


def sobol_box(box: Box, points: int, episodes: int) -> CellSet:
    """Points that fill a box uniformly, whatever the distribution in it; otherwise like ``sobol``.

    Raises:
        ConfigError: The number of points is not a power of 2, or there are too many cells.
    """
    _check_points(points, len(box.ranges) + 2)
    definition = {**_rows(points), "box": _json_ranges(box), "whole": list(box.whole), "fixed": dict(box.fixed)}
    return CellSet(name="sobol-box", kind="sobol-box", episodes=episodes, definition=definition)


def _values(kind: str, definition: Mapping[str, Any]) -> Array:
    if kind in ("grid", "corners"):
        columns: Collection[Sequence[float]] = definition["axes" if kind == "grid" else "box"].values()
        _check_count("A set", math.prod(map(len, columns)))  # again: a file may hold anything
        return np.array(list(itertools.product(*columns)), dtype=np.float64)
    if kind in ("sobol", "sobol-box"):
        return (_by_quantile if kind == "sobol" else _in_box)(definition, _sobol_points(kind, definition))
    return np.empty((1, 0))


def _sobol_points(kind: str, definition: Mapping[str, Any]) -> Array:
    """Uniforms of a Sobol set's cells, a column for each parameter of its space or box."""
    points, sequences = definition["points"], definition.get("sequences", 1)
    names = list(definition["space" if kind == "sobol" else "box"])
    if kind == "sobol" and correlated(_saved(definition)):
        return _unit_points(points, len(names), sequences)
    fixed = definition["fixed"] if kind == "sobol" else ()
    varied = [k for k, name in enumerate(names) if name not in fixed]
    return _saltelli(points, len(names), varied, sequences)


def _by_quantile(definition: Mapping[str, Any], unit: Array) -> Array:
    """Values of the parameters that vary in a distribution, ``(N, parameters)`` in [0, 1) -> ``(N, d)``."""
    randomization = _saved(definition)
    unbounded = {"low": -math.inf, "high": math.inf}
    space = ParamSpace("", [Param(name=n, **{**unbounded, **row}) for n, row in definition["space"].items()])
    drawn = values_at(randomization, space, dict(zip(space, unit.T + _HALF_STEP, strict=True)))
    return np.column_stack([drawn[name] for name in space if name not in definition["fixed"]])


def _in_box(definition: Mapping[str, Any], unit: Array) -> Array:
    """Values that are uniform in a box, ``(N, d)`` in [0, 1) -> ``(N, d)``."""
    box = definition["box"]
    low, high = np.array(list(box.values())).T
    is_whole = np.array([name in definition["whole"] for name in box])
    scaled: Array = np.where(is_whole, np.floor(low + unit * (high - low + 1)), low + unit * (high - low))
    return np.clip(scaled, low, high)  # rounding may exceed an end


def _saltelli(points: int, d: int, columns: Iterable[int], sequences: int) -> Array:
    """Stacks matrices A and B, and A with each of ``columns`` from B; all values are in [0, 1)."""
    unit = _unit_points(points, 2 * d, sequences)
    a, b = unit[:, :d], unit[:, d:]
    return np.concatenate([a, b, *(np.where(np.arange(d) == column, b, a) for column in columns)])


def _unit_points(points: int, d: int, sequences: int) -> Array:
    """Scrambled Sobol sequences in [0, 1), one after the other, shape ``(points, d)``."""
    from scipy.stats import qmc  # heavy

    _check_count("A Sobol sequence", max(points, sequences))  # again: a file may hold anything
    rng = np.random.default_rng(_SOBOL_SEED)
    return np.concatenate([qmc.Sobol(d, scramble=True, rng=rng).random(points // sequences) for _ in range(sequences)])


def _rows(points: int) -> dict[str, int]:
    return {"points": points, "sequences": min(points, SEQUENCES)}


def _saved(definition: Mapping[str, Any]) -> Randomization:
    """The randomization of a set's definition."""
    return Randomization.from_dict(definition["randomization"])


def _check_points(points: int, cells_each: int) -> None:
    if points < 2 or points & (points - 1):
        near = 2 ** max(1, round(math.log2(max(points, 1))))
        raise ConfigError(f"`sobol`: expected a power of 2, at least 2, got {points}; {near} is near.")
    _check_count(f"`sobol={points}`", points * cells_each)


def _check_count(what: str, cells: int) -> None:
    if cells > MAX_CELLS:
        raise ConfigError(f"{what} has {cells:,} cells; expected at most {MAX_CELLS:,}.")


def _json_ranges(box: Box) -> dict[str, list[float]]:
    return {name: list(pair) for name, pair in box.ranges.items()}
