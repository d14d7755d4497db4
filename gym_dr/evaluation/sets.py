"""Sets of test conditions: ``gym_dr.grid``, ``sobol`` and ``draws`` make them.

The content of a set depends on the environment, and may depend on training randomizations. When both are known, an
``EvaluationSet`` becomes one or more ``CellSet``. Each of its cells fixes the environment's parameters, or their
distribution, for a number of episodes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import ConfigError, exact_text, shortened
from gym_dr.evaluation import ranges
from gym_dr.evaluation.ranges import SEQUENCES, check_count, varies
from gym_dr.options import plain
from gym_dr.policies.frozen import Draws
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.presets import CUSTOM, NONE, presets, resolve, with_rules
from gym_dr.randomization.sampler import values_at
from gym_dr.randomization.space import ParamSpace, acts, ranges_of, switches_needed
from gym_dr.randomization.spec import Randomization, Rule, as_rule

DRAW_EPISODES, CELL_EPISODES, POINT_EPISODES = 100, 20, 5  # of nominal values and draws, of a cell, of a Sobol point
SET_KINDS = ("nominal", "fixed", "distribution", "grid", "sobol")
TRAINING = "training"  # name of the set of training draws
MAX_NAMED = 4  # rules in a name

Needs: TypeAlias = Mapping[str, Mapping[str, float]]  # parameter -> those that it needs -> their nominal values
NO_NEEDS: Needs = {}
Trained = Mapping[str, Randomization]  # distinct training randomizations by the names of their sets


@dataclass(frozen=True, kw_only=True, eq=False)
class CellSet:
    """Cells with common statistics. Episode k of the set is episode ``k % episodes`` of cell ``k // episodes``.

    Its JSON form determines its values, so a reader of an evaluation can recover them.
    """

    name: str  # unique in an evaluation
    kind: str  # one of SET_KINDS
    episodes: int  # of each cell
    # Determines the cells, as JSON: axes (grid); points, sequences and space with nominal values and finite bounds
    # (sobol); randomization (distribution, sobol); fixed, which replaces draws too.
    definition: Mapping[str, Any]
    switched_on: tuple[str, ...] = ()  # switches in ``fixed`` that the user did not ask for; not in the JSON form

    @classmethod
    def nominal(cls, episodes: int) -> CellSet:
        """One cell with nominal values."""
        return cls(name="nominal", kind="nominal", episodes=episodes, definition={})

    @classmethod
    def of_values(cls, name: str, values: Mapping[str, float], episodes: int) -> CellSet:
        """One cell with these values, checked; other parameters are nominal."""
        return cls(name=name, kind="fixed", episodes=episodes, definition={"fixed": dict(values)})

    @classmethod
    def of_draws(
        cls, name: str, randomization: Randomization, episodes: int, values: Mapping[str, float] | None = None
    ) -> CellSet:
        """One cell with a new draw in each episode, in which ``values``, checked, replace draws."""
        definition = {"randomization": randomization.to_dict(), **({"fixed": dict(values)} if values else {})}
        return cls(name=name, kind="distribution", episodes=episodes, definition=definition)

    @classmethod
    def grid(cls, space: ParamSpace, axes: Mapping[str, npt.ArrayLike], episodes: int) -> CellSet:
        """Every combination of the parameters' values in ``axes``, name -> values; other parameters are nominal.

        If a parameter only has an effect while a switch is on (wind power needs wind), the switch is on, unless the
        switch is one of the axes.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is out of bounds or of the wrong kind, or a combination is impossible.
            ConfigError: There is no cell, or there are too many.
        """
        if not axes:
            raise ConfigError("The grid is empty: expected values of at least one parameter.")
        values = {name: np.atleast_1d(space[name].check(axis)).tolist() for name, axis in axes.items()}
        check_count("The grid", math.prod(map(len, values.values())))
        fixed = switches_needed(space, {name: (min(axis), max(axis)) for name, axis in values.items()})
        found = cls(
            name="grid",
            kind="grid",
            episodes=episodes,
            definition={"axes": values, "fixed": fixed},
            switched_on=tuple(fixed),
        )
        space.check_vector(dict(zip(found.names, found.values.T, strict=True)), found.num_cells)
        return found

    @classmethod
    def sobol(cls, name: str, randomization: Randomization, space: ParamSpace, points: int, episodes: int) -> CellSet:
        """Points that fill a distribution evenly: Sobol sequences, mapped like the uniforms of draws.

        Args:
            name: Name of the set.
            randomization: The distribution; at least one parameter varies.
            space: Nominal values and bounds.
            points: Rows of matrix A (see ``gym_dr.evaluation.ranges``), a power of 2.
            episodes: Episodes of each of the ``points * (d + 2)`` cells, or ``points`` cells with correlation.

        Raises:
            ConfigError: The number of points is not a power of 2, or there are too many cells.
        """
        names = space.in_order(randomization)
        middle = values_at(randomization, space, dict.fromkeys(names, np.full(1, 0.5)))
        constant = {n: float(middle[n][0]) for n in names if np.ptp(randomization[n].support(space[n].nominal)) == 0}
        bounds = {n: {"nominal": space[n].nominal, "low": space[n].low, "high": space[n].high} for n in names}
        finite = {n: {k: float(v) for k, v in row.items() if math.isfinite(v)} for n, row in bounds.items()}
        definition = {
            "points": points,
            **({} if ranges.correlated(randomization) else {"sequences": min(points, SEQUENCES)}),
            "randomization": randomization.to_dict(),
            "space": finite,
            "fixed": constant,
        }
        ranges.check_points(definition)
        return cls(name=name, kind="sobol", episodes=episodes, definition=definition)

    @cached_property
    def randomization(self) -> Randomization | None:
        """The distribution of each episode's draw; None if every cell has fixed values."""
        return Randomization.from_dict(self.definition["randomization"]) if self.kind == "distribution" else None

    @property
    def points(self) -> int | None:
        """Rows of the Sobol sequences; None for other kinds. Cells ``i``, ``i + points``, ... come from row i."""
        return cast(int | None, self.definition.get("points"))

    @property
    def correlated(self) -> tuple[str, ...]:
        """The parameters that a Sobol sequence does not vary independently."""
        if self.kind != "sobol":
            return ()
        return ranges.correlated(Randomization.from_dict(self.definition["randomization"]))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters that vary between cells: the columns of ``values``."""
        listed = next((self.definition[key] for key in ("axes", "space") if key in self.definition), ())
        return tuple(name for name in listed if name not in self.fixed)

    @property
    def fixed(self) -> Mapping[str, float]:
        """Values that all cells share and that differ from nominal."""
        return cast(Mapping[str, float], self.definition.get("fixed", {}))

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters that may differ from nominal."""
        return tuple(dict.fromkeys((*self.names, *(self.randomization or ()), *self.fixed)))

    @cached_property
    def num_cells(self) -> int:
        """The number of cells."""
        found = ranges.num_cells(self.definition) if self.points else math.prod(map(len, self._axes))
        return check_count("A set", found)  # again: a file may hold anything

    @property
    def num_episodes(self) -> int:
        """The number of episodes of all cells."""
        return self.num_cells * self.episodes

    @property
    def values(self) -> Array:
        """Shape ``(cells, len(names))``; the last name varies fastest on a grid."""
        if self.points:
            return ranges.cell_values(self.definition)
        return np.array(list(itertools.product(*self._axes)), np.float64).reshape(self.num_cells, -1)

    @property
    def columns(self) -> dict[str, Any]:
        """Parameters that may differ from nominal -> values in each cell, ``(cells,)``, or one that all cells share."""
        return {**dict(zip(self.names, self.values.T, strict=True)), **self.fixed}

    @property
    def _axes(self) -> list[Sequence[float]]:
        return list(self.definition.get("axes", {}).values())

    def quantiles(self, levels: Array) -> Array:
        """Quantiles of each parameter of a Sobol set.

        Args:
            levels: Probabilities in [0, 1), shape ``(N,)``.

        Returns:
            Shape ``(N, len(names))``.
        """
        return ranges.values_of(self.definition, np.repeat(levels[:, None], len(self.definition["space"]), axis=1))

    @property
    def draws(self) -> Draws:
        """The draws and values of its episodes."""
        cells = {name: np.broadcast_to(values, self.num_cells) for name, values in self.columns.items()}
        return Draws(
            randomization=self.randomization or Randomization(),
            values={name: np.repeat(values, self.episodes) for name, values in cells.items()},
            episodes=self.num_episodes,
        )

    def cell(self, index: int, needs: Needs = NO_NEEDS) -> dict[str, float]:
        """The values of one cell by name; other parameters are nominal.

        Args:
            index: The cell.
            needs: As in ``sensitivity``; parameters without an effect in the cell are left out.
        """
        values = {**dict(zip(self.names, self.values[index].tolist(), strict=True)), **self.fixed}
        return {name: value for name, value in values.items() if acts(needs.get(name, {}), values, 1)}

    @property
    def notes(self) -> list[str]:
        """Remarks for the user."""
        return [
            f"{self.name}: {switch} is on, since a parameter has no effect without it." for switch in self.switched_on
        ]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; see ``from_dict``."""
        head = {"name": self.name, "kind": self.kind, "episodes": self.episodes, "cells": self.num_cells}
        return {**head, **self.definition}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> CellSet:
        """Reads the JSON form."""
        head = {key: form[key] for key in ("name", "kind", "episodes")}
        return cls(**head, definition={key: value for key, value in form.items() if key not in (*head, "cells")})


@dataclass(frozen=True, repr=False)
class EvaluationSet:
    """Test conditions for any environment."""

    text: str  # how it was made
    # makes its cells in an environment; the number is the default of episodes per cell
    cells: Callable[[ParamSpace, Trained, int | None], list[CellSet]]

    def __repr__(self) -> str:
        return self.text


SetLike = Any  # an EvaluationSet, or what ``draws`` takes: the name of a preset, a file, a mapping, a Randomization


def grid(*, episodes: int | None = None, **axes: tuple[float, float, int]) -> EvaluationSet:
    """Every combination of values of some parameters; all others are nominal.

    Example:
        >>> gym_dr.evaluate("runs/first", sets=[gym_dr.grid(gravity=(-12, -2, 11), wind_power=(0, 20, 5))])

    Args:
        episodes: Episodes of each cell; None for 20.
        **axes: name=(lowest, highest, count), both ends included.

    Raises:
        ConfigError: An axis describes no values.
    """
    values = {name: _axis(name, given) for name, given in axes.items()}
    episodes = check_episodes(episodes)

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        return [CellSet.grid(space, values, episodes or default or CELL_EPISODES)]

    return EvaluationSet(f"grid({', '.join(f'{name}={given}' for name, given in axes.items())})", make)


def sobol(points: int, *, episodes: int | None = None) -> EvaluationSet:
    """Points that fill each training distribution evenly, for sensitivity indices.

    Args:
        points: Number of points, a power of 2; indices need at least 4.
        episodes: Episodes of each point; None for 5.
    """
    episodes = check_episodes(episodes)

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        each = episodes or default or POINT_EPISODES
        varied = {of: randomization for of, randomization in trained.items() if varies(space, randomization)}
        if not varied:
            raise ConfigError(
                "Sobol points cover the randomization that policies were trained on: expected runs trained with "
                "randomized parameters, or `randomization` for other policies, got none. Choose values with `grid`."
            )
        return [CellSet.sobol(sobol_name(of), rules, space, points, each) for of, rules in varied.items()]

    return EvaluationSet(f"sobol({points})", make)


def draws(randomization: Any = None, /, *, name: str = "", episodes: int | None = None, **params: Any) -> EvaluationSet:
    """New draws in each episode, or values that you choose.

    Example:
        >>> gym_dr.draws("wide")
        >>> gym_dr.draws(gravity=-3, wind_power=15)  # exactly these values; others are nominal
        >>> gym_dr.draws("wide", gravity=gym_dr.Uniform(-4, -2), name="weak")

    Args:
        randomization: The distribution, in any form that an environment takes; None draws nothing.
        name: Name of the set; empty to name it after its content.
        episodes: Episodes; None for 100.
        **params: name=value, which replaces a draw, or name=rule, which replaces the rule of ``randomization``.
    """
    episodes = check_episodes(episodes)
    if type(randomization) is dict and not randomization | params:
        raise ConfigError("Expected draws or values, got none. For nominal values: `randomization='none'`")
    params = {key: plain(value) for key, value in params.items()}
    rules = {key: value for key, value in params.items() if not isinstance(value, numbers.Real)}
    exact = {key: value for key, value in params.items() if key not in rules}

    def make(space: ParamSpace, trained: Trained, default: int | None) -> list[CellSet]:
        return [_chosen(space, randomization, rules, exact, name, episodes or default or DRAW_EPISODES)]

    given = [repr(randomization)] if randomization is not None else []
    return EvaluationSet(f"draws({', '.join([*given, *(f'{key}={value!r}' for key, value in params.items())])})", make)


def sobol_name(training: str) -> str:
    """The name of a Sobol set, from that of its training draws: ``training``, ``training: NAME`` or a preset."""
    return f"sobol{training.removeprefix(TRAINING) if training.startswith(TRAINING) else f': {training}'}"


def cells_of(
    env: str, space: ParamSpace | None, sets: SetLike | Sequence[SetLike], trained: Trained, episodes: int | None
) -> list[CellSet]:
    """The cells of sets in an environment; for arguments see ``sets_of``."""
    several = sets if isinstance(sets, Sequence) and not isinstance(sets, str) else [sets]
    if space is None and several:
        raise ConfigError(f"{env} has no parameters to vary: expected no sets, got {shortened(several[0])}.")
    made = [one if isinstance(one, EvaluationSet) else draws(one) for one in several]
    known = ParamSpace("", []) if space is None else space
    return [cells for one in made for cells in one.cells(known, trained, episodes)]


def _axis(name: str, given: Any) -> Array:
    """The values of a parameter on a grid.

    Raises:
        ConfigError: The ends and the count describe no values.
    """
    try:
        low, high, count = given
        values = np.linspace(np.asarray(low), np.asarray(high), count)
        fits = bool(np.isfinite(values).all()) and (count == 1 if low == high else low < high and count > 1)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ConfigError(
            f"`grid`: {name}: expected (lowest, highest, count), such as (-12, -2, 11), finite and with both ends "
            f"included, so a whole count of at least 2, or 1 for a single value; got {shortened(given)}."
        )
    return values


def check_episodes(episodes: int | None) -> int | None:
    """Checks a number of episodes and returns it.

    Raises:
        ConfigError: It is not a whole number of at least 1.
    """
    return None if episodes is None else check_whole_number("`episodes`", episodes)


# ---- draws and values that the user chooses --------------------------------------------------------------------------


def _chosen(
    space: ParamSpace, whole: Any, rules: Mapping[str, Any], exact: Mapping[str, float], name: str, episodes: int
) -> CellSet:
    """The set of draws, and of values that replace draws; see ``draws``."""
    values = space.check(exact)
    drawn = with_rules(whole, rules, space) if rules else resolve(NONE if whole is None else whole, space)
    ranges = ranges_of(drawn, space)
    asked = {key: ends for key, ends in ranges.items() if key in rules}
    on = switches_needed(space, asked | {key: (value, value) for key, value in values.items()}, ranges)
    fixed = {**values, **on}
    if not (drawn or fixed or name):
        return CellSet.nominal(episodes)
    parts = [] if whole is None else [_name(whole, space)]
    parts += [f"{key}={_rule_text(as_rule(rule))}" for key, rule in rules.items()]
    parts += [f"{key}={exact_text(values[key])}" for key in space.in_order(values)]
    name = name or ", ".join(parts)
    if name.split(":")[0] in (*SET_KINDS, TRAINING):
        raise ConfigError(f"{name!r} is the name of a kind of set. Choose another name.")
    made = CellSet.of_draws(name, drawn, episodes, fixed) if drawn else CellSet.of_values(name, fixed, episodes)
    return replace(made, switched_on=tuple(on))


def _rule_text(rule: Rule) -> str:
    number = isinstance(rule.distribution, Constant) and rule.operation == "absolute"
    return exact_text(rule.distribution.support[0]) if number else repr(rule)


def _name(randomization: Any, space: ParamSpace) -> str:
    """The name of a preset or a file; a mapping is named after its rules or, if they are many, by a digest."""
    if isinstance(randomization, str) and randomization in presets(space.name):
        return randomization
    if isinstance(randomization, str | os.PathLike):
        path = Path(os.fspath(randomization))
        return path.name if path.stem in presets(space.name) else path.stem
    found = randomization if isinstance(randomization, Randomization) else Randomization.from_dict(randomization)
    if len(found) <= MAX_NAMED and found.correlation is None:
        return ", ".join(f"{name}={_rule_text(rule)}" for name, rule in found.items()) or NONE
    return f"{CUSTOM} {hashlib.sha256(json.dumps(found.to_dict(), sort_keys=True).encode()).hexdigest()[:8]}"
