"""Turns parameter values into fields of a model: always from nominal, and derived constants once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.envs.mujoco.fields import FIELDS
from gym_dr.envs.mujoco.space import ModelSpace

_OPTIONS = frozenset(field.name for field in FIELDS.values() if field.objects is None)
# the shapes that a link's length moves have derived constants too
_MOVED = {"body_pos", "geom_pos", "geom_size", "site_pos"}
_DERIVED = _MOVED | {field.name for field in FIELDS.values() if field.derived}


def needs_set_const(fields: Mapping[str, Array]) -> bool:
    """Whether MuJoCo derives constants from one of these fields."""
    return not _DERIVED.isdisjoint(fields)


def batch_name(field: str) -> str:
    """What ``mujoco.batch`` calls a field."""
    return f"opt.{field}" if field in _OPTIONS else field


@dataclass(frozen=True)
class _Factor:
    column: int  # in the table of values
    places: npt.NDArray[np.int64]  # in the flattened field
    exponent: int


class ModelFields:
    """The fields of a model as functions of some of its parameters, for many sub-environments at once."""

    def __init__(self, space: ModelSpace, model: Any, names: Sequence[str]) -> None:
        """Plans which numbers each name reaches.

        Args:
            space: The model's parameters.
            model: An ``MjModel`` with nominal values; they are copied.
            names: Parameters, in the order of the columns of ``__call__``.
        """
        self.names = tuple(names)
        self.fields = list(dict.fromkeys(part.field for name in names for part in space.targets[name].parts))
        if "body_mass" in self.fields and "body_inertia" not in self.fields:
            self.fields.append("body_inertia")  # follows the mass
        self.shapes = {field: np.shape(_field(model, field)) for field in self.fields}
        self.nominal = {field: np.array(_field(model, field), dtype=np.float64).reshape(-1) for field in self.fields}
        self._values: dict[str, tuple[list[int], list[int]]] = {field: ([], []) for field in self.fields}
        self._factors: dict[str, list[_Factor]] = {field: [] for field in self.fields}
        self._inertia_named: list[tuple[int, list[int]]] = []  # column, bodies whose inertia it names
        for column, name in enumerate(names):
            target = space.targets[name]
            for part in target.parts:
                if target.factor:
                    self._factors[part.field].append(_Factor(column, np.array(part.columns), part.exponent))
                else:
                    self._values[part.field][0].append(column)
                    self._values[part.field][1].append(part.columns[0])
            if name.startswith("body_inertia"):
                self._inertia_named.append((column, sorted({place // 3 for place in target.parts[0].columns})))

    def __call__(self, values: Array) -> dict[str, Array]:
        """The fields for some sub-environments.

        Args:
            values: Shape ``(n, len(names))``; nan where a parameter is not named and so has its nominal value.

        Returns:
            MuJoCo's name -> array ``(n, *shape of the field)``.
        """
        missing = np.isnan(values)
        some_missing = bool(missing.any())
        filled = np.where(missing, 1.0, values) if some_missing else values
        fields = {}
        for field in self.fields:
            array = np.tile(self.nominal[field], (len(values), 1))
            columns, places = self._values[field]
            if columns:
                chosen = values[:, columns]
                array[:, places] = (
                    np.where(missing[:, columns], self.nominal[field][places], chosen) if some_missing else chosen
                )
            for factor in self._factors[field]:
                array[:, factor.places] *= (filled[:, factor.column] ** factor.exponent)[:, None]
            fields[field] = array
        if "body_mass" in fields:
            self._follow_mass(fields, missing)
        return {field: array.reshape(-1, *self.shapes[field]) for field, array in fields.items()}

    def _follow_mass(self, fields: dict[str, Array], missing: Mask) -> None:
        """Scales the inertia of bodies with their mass, except where it is named."""
        nominal = self.nominal["body_mass"]
        ratio = np.ones_like(fields["body_mass"])
        np.divide(fields["body_mass"], nominal, out=ratio, where=nominal > 0)
        for column, bodies in self._inertia_named:
            ratio[:, bodies] = np.where(missing[:, column, None], ratio[:, bodies], 1.0)
        fields["body_inertia"] *= np.repeat(ratio, 3, axis=1)


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
    """Gives one model the values of one episode."""

    def __init__(self, space: ModelSpace, model: Any) -> None:
        """Remembers the model, whose values are nominal now."""
        import copy

        self._space = space
        self._model = model
        self._nominal = copy.copy(model)
        self._fields = ModelFields(space, model, ())
        self._scratch: Any = None

    def apply(self, values: Mapping[str, float]) -> None:
        """Writes values into the model; what was named before and is not now goes back to nominal.

        ``mj_setConst`` gets an ``MjData`` of its own, since it resets the positions of the one that it is given.
        """
        import mujoco  # type: ignore[import-untyped]

        new = [name for name in values if name not in self._fields.names]
        if new:
            self._fields = ModelFields(self._space, self._nominal, [*self._fields.names, *new])
        if not self._fields.names:
            return
        row = np.array([[values.get(name, np.nan) for name in self._fields.names]])
        fields = self._fields(row)
        write_fields(self._model, fields, 0)
        if needs_set_const(fields):
            if self._scratch is None:
                self._scratch = mujoco.MjData(self._nominal)
            mujoco.mj_setConst(self._model, self._scratch)
