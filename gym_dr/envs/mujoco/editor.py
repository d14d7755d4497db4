"""Turns parameter values into fields of a model, always from nominal, and updates derived constants once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.mujoco.fields import FIELDS
from gym_dr.envs.mujoco.space import ModelSpace

_OPTIONS = frozenset(field.name for field in FIELDS.values() if field.objects is None)
# a link's length moves these; they have derived constants too
_MOVED = {"body_pos", "geom_pos", "geom_size", "site_pos"}
_DERIVED = _MOVED | {field.name for field in FIELDS.values() if field.derived}


def needs_set_const(fields: Mapping[str, Array]) -> bool:
    """Whether MuJoCo derives constants from one of these fields."""
    return not _DERIVED.isdisjoint(fields)


def batch_name(field: str) -> str:
    """The name of a field in ``mujoco.batch``."""
    return f"opt.{field}" if field in _OPTIONS else field


class _Factors(NamedTuple):
    """Factors that affect distinct numbers, so that numpy can multiply all at once."""

    columns: Indices  # in the table of values
    places: Indices  # in the row of all fields
    squared: Mask


class ModelFields:
    """The fields of a model as functions of some of its parameters, for many sub-environments at once.

    All fields are stored in one row of numbers, since with few environments every numpy call counts.

    Attributes:
        names: The parameters.
        nominal: Field -> its nominal values, flattened, in the order of the row.
        places: Field -> its place in the row.
    """

    def __init__(self, space: ModelSpace, model: Any, names: Sequence[str]) -> None:
        """Plans which numbers each name affects.

        Args:
            space: The model's parameters.
            model: An ``MjModel`` with nominal values, which are copied.
            names: Parameters, in the order of the columns of ``__call__``.
        """
        self.names = tuple(names)
        fields = list(dict.fromkeys(part.field for name in names for part in space.targets[name].parts))
        if "body_mass" in fields and "body_inertia" not in fields:
            fields.append("body_inertia")  # follows the mass
        self.nominal = {field: np.array(_field(model, field), dtype=np.float64).reshape(-1) for field in fields}
        ends = np.cumsum([len(numbers) for numbers in self.nominal.values()], dtype=np.int64).tolist()
        self.places = {field: slice(*ends) for field, ends in zip(fields, pairwise([0, *ends]), strict=True)}
        self._shapes = {field: np.shape(_field(model, field)) for field in fields}
        self._row: Array = np.concatenate([np.zeros(0), *self.nominal.values()])
        self._values: tuple[list[int], list[int]] = ([], [])  # columns, places
        self._inertia_named: list[tuple[int, list[int]]] = []  # column, bodies whose inertia it names
        factors: list[tuple[list[int], list[int], list[bool]]] = []
        uses: Counter[int] = Counter()  # of each place by factors
        for column, name in enumerate(names):
            target = space.targets[name]
            for part in target.parts:
                for place in (self.places[part.field].start + k for k in part.columns):
                    if target.factor:
                        if uses[place] == len(factors):
                            factors.append(([], [], []))
                        for numbers, number in zip(
                            factors[uses[place]], (column, place, part.exponent == 2), strict=True
                        ):
                            cast(list[Any], numbers).append(number)
                        uses[place] += 1
                    else:
                        self._values[0].append(column)
                        self._values[1].append(place)
            if name.startswith("body_inertia"):
                self._inertia_named.append((column, sorted({place // 3 for place in target.parts[0].columns})))
        self._factors = [_Factors(*map(np.array, group)) for group in factors]

    def __call__(self, values: Array) -> dict[str, Array]:
        """The fields for some sub-environments.

        Args:
            values: Shape ``(n, len(names))``; nan where a parameter is not set and keeps its nominal value.

        Returns:
            MuJoCo's name -> array ``(n, *shape of the field)``.
        """
        rows = self.rows(values)
        return {field: rows[:, at].reshape(-1, *self._shapes[field]) for field, at in self.places.items()}

    def rows(self, values: Array) -> Array:
        """All fields of some sub-environments, concatenated: shape ``(n, numbers)``."""
        missing = np.isnan(values)
        some_missing = bool(missing.any())
        filled = np.where(missing, 1.0, values) if some_missing else values
        rows = np.repeat(self._row[None], len(values), axis=0)
        columns, places = self._values
        if columns:
            chosen = values[:, columns]
            rows[:, places] = np.where(missing[:, columns], self._row[places], chosen) if some_missing else chosen
        for group in self._factors:
            scale = filled[:, group.columns]
            rows[:, group.places] *= np.where(group.squared, scale * scale, scale)
        if "body_mass" in self.places:
            self._follow_mass(rows, missing)
        return rows

    def _follow_mass(self, rows: Array, missing: Mask) -> None:
        """Scales the inertia of bodies with their mass, except where it is set explicitly."""
        mass, nominal = rows[:, self.places["body_mass"]], self.nominal["body_mass"]
        ratio = np.ones_like(mass)
        np.divide(mass, nominal, out=ratio, where=nominal > 0)
        for column, bodies in self._inertia_named:
            ratio[:, bodies] = np.where(missing[:, column, None], ratio[:, bodies], 1.0)
        rows[:, self.places["body_inertia"]] *= np.repeat(ratio, 3, axis=1)


def write_fields(model: Any, fields: Mapping[str, Array], row: int) -> None:
    """Writes one row of each field into a model; ``mj_setConst`` is up to the caller."""
    for field, array in fields.items():
        if array.ndim == 1:  # an option that is one number
            setattr(model.opt, field, float(array[row]))
        else:
            _field(model, field)[...] = array[row]


def _field(model: Any, name: str) -> Any:
    return getattr(model.opt if name in _OPTIONS else model, name)


class ModelEditor:
    """Sets a model to the values of one episode."""

    def __init__(self, space: ModelSpace, model: Any) -> None:
        """Copies the model, which must have nominal values."""
        import copy

        self._space = space
        self._nominal = copy.copy(model)
        self._fields = ModelFields(space, model, ())
        self._scratch: Any = None

    def apply(self, model: Any, values: Mapping[str, float]) -> None:
        """Writes values into a model; parameters that are no longer given return to nominal.

        ``mj_setConst`` gets its own ``MjData``, since it resets the positions in it.

        Args:
            model: The environment's, or that of a copy, which Gymnasium makes anew.
            values: Of the episode.
        """
        import mujoco  # type: ignore[import-untyped]

        new = [name for name in values if name not in self._fields.names]
        if new:
            self._fields = ModelFields(self._space, self._nominal, [*self._fields.names, *new])
        if not self._fields.names:
            return
        row = np.array([[values.get(name, np.nan) for name in self._fields.names]])
        fields = self._fields(row)
        write_fields(model, fields, 0)
        if needs_set_const(fields):
            if self._scratch is None:
                self._scratch = mujoco.MjData(self._nominal)
            mujoco.mj_setConst(model, self._scratch)
