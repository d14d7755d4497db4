"""Turns parameter values into fields of a model, always from nominal, and updates derived constants once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.mujoco import derived
from gym_dr.envs.mujoco.fields import FIELDS, field_array, owner_of
from gym_dr.envs.mujoco.space import ModelSpace
from gym_dr.errors import RandomizationError

_TURNED = ("body", "geom", "site", "cam")  # kinds of elements that ``*_rotation`` turns
_DERIVED = {
    *(field.name for field in FIELDS.values() if field.derived),
    *("body_iquat", *(f"{kind}_quat" for kind in _TURNED)),
}
# what is changed besides a field: it is computed from it and from what it lists
_BESIDE = {
    "body_mass": ("body_inertia",),
    "pseudo_inertia": ("body_mass", "body_ipos", "body_inertia", "body_iquat"),
    **{f"{kind}_rotation": (f"{kind}_quat",) for kind in _TURNED},
}


def needs_set_const(fields: Mapping[str, Array]) -> bool:
    """Whether MuJoCo derives constants from one of these fields."""
    return not _DERIVED.isdisjoint(fields)


class ModelFields:
    """The fields of a model as functions of some of its parameters, for many sub-environments at once.

    All fields are stored in one row of numbers, since with few environments every numpy call counts.

    Attributes:
        names: The parameters.
        nominal: Field -> its nominal values, flattened, in the order of the row.
        places: Field -> its place in the row.
    """

    def __init__(self, space: ModelSpace, names: Sequence[str]) -> None:
        """Finds the numbers that each name affects.

        Args:
            space: The model's parameters, and its nominal values, which are copied.
            names: Parameters, in the order of the columns of ``__call__``.
        """
        self.names = tuple(names)
        targets = [space[name] for name in names]
        fields = list(dict.fromkeys(part.field for target in targets for part in target.parts))
        for field in fields:  # also those that are added here
            fields += [other for other in _BESIDE.get(field, ()) if other not in fields]
        arrays = {field: field_array(space.model, field) for field in fields}
        self._shapes = {field: array.shape for field, array in arrays.items()}
        self.nominal = {field: array.reshape(-1) for field, array in arrays.items()}
        ends = np.cumsum([len(numbers) for numbers in self.nominal.values()], dtype=np.int64).tolist()
        self.places = {field: slice(*ends) for field, ends in zip(fields, pairwise([0, *ends]), strict=True)}
        self._row: Array = np.concatenate([np.zeros(0), *self.nominal.values()])
        self._inertia_named = [  # columns, and the bodies whose inertia they name
            (column, sorted({number // 3 for number in targets[column].parts[0].columns}))
            for column, name in enumerate(names)
            if name.startswith("body_inertia")
        ]
        values: list[tuple[int, int, float]] = []  # column, place, coefficient
        groups: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)  # by number of earlier factors there
        factors_at: Counter[int] = Counter()
        for column, target in enumerate(targets):
            for part in target.parts:
                for place in [self.places[part.field].start + number for number in part.columns]:
                    if target.factor:
                        groups[factors_at[place]].append((column, place, part.exponent))
                        factors_at[place] += 1
                    else:
                        values.append((column, place, part.coef))
        table = np.array(values, np.float64).reshape(-1, 3).T
        self._value_columns, self._value_places = table[:2].astype(np.int64)
        self._coefs = table[2]
        # factors of distinct numbers, which numpy multiplies at once: (3, numbers) columns in the table of values,
        # places in the row of all fields, and exponents, 1 or 2
        self._factors: list[Indices] = [np.array(group).T for group in groups.values()]

    def __call__(self, values: Array) -> dict[str, Array]:
        """The fields for some sub-environments.

        Args:
            values: Shape ``(n, len(names))``; nan where a parameter is not set and keeps its nominal value.

        Returns:
            MuJoCo's name -> array ``(n, *shape of the field)``.
        """
        rows = self.rows(values)
        real = [field for field in self.places if field not in FIELDS or not FIELDS[field].added]
        return {field: rows[:, self.places[field]].reshape(-1, *self._shapes[field]) for field in real}

    def rows(self, values: Array) -> Array:
        """All fields of some sub-environments, concatenated: shape ``(n, numbers)``."""
        missing = np.isnan(values)
        rows = np.repeat(self._row[None], len(values), axis=0)
        if len(self._value_columns):
            chosen, places = values[:, self._value_columns] * self._coefs, self._value_places
            rows[:, places] = np.where(missing[:, self._value_columns], self._row[places], chosen)
        filled = np.where(missing, 1.0, values)
        for columns, places, exponents in self._factors:
            scale = filled[:, columns]
            rows[:, places] *= np.where(exponents == 2, scale * scale, scale)
        if "body_mass" in self.places:
            mass, nominal = rows[:, self.places["body_mass"]], self.nominal["body_mass"]
            ratio = np.ones_like(mass)  # inertia scales with the mass, except where it is set
            np.divide(mass, nominal, out=ratio, where=nominal > 0)
            for column, bodies in self._inertia_named:
                ratio[:, bodies] = np.where(missing[:, column, None], ratio[:, bodies], 1.0)
            rows[:, self.places["body_inertia"]] *= np.repeat(ratio, 3, axis=1)
        self._derive(rows)
        return rows

    def _derive(self, rows: Array) -> None:
        """Computes the fields that others determine, in the rows of all fields ``(n, numbers)``."""

        def part(field: str) -> Array:  # a view
            return rows[:, self.places[field]].reshape(-1, *self._shapes[field])

        for kind in (kind for kind in _TURNED if f"{kind}_rotation" in self.places):
            rotations = part(f"{kind}_rotation")
            where = np.nonzero(rotations.any(axis=2))  # rows, elements
            quats = part(f"{kind}_quat")
            quats[where] = derived.rotated(quats[where], rotations[where][None])[0]
        if "pseudo_inertia" in self.places:
            changes = part("pseudo_inertia")
            where = np.nonzero(changes.any(axis=2))
            inertial = [part(field) for field in _BESIDE["pseudo_inertia"]]
            mass, center, inertia, axes = (values[where] for values in inertial)
            changed = derived.pseudo_inertia(mass, center, inertia, axes, changes[where][None])
            for values, new in zip(inertial, changed, strict=True):
                values[where] = new[0]


def edit(model: Any, data: Any, fields: Mapping[str, Array], row: int) -> None:
    """Writes one row of each field into a model, and recomputes derived constants.

    Args:
        model: An ``MjModel``.
        data: An ``MjData`` of such a model, whose state is lost.
        fields: Field -> ``(rows, *shape of the field)``.
        row: Which row.
    """
    import mujoco  # type: ignore[import-untyped]  # heavy

    for field, array in fields.items():
        if array.ndim == 1:  # an option that is one number
            setattr(model.opt, field, float(array[row]))
        else:
            getattr(owner_of(model, field), field)[...] = array[row]
    if needs_set_const(fields):
        derived.before_set_const(model, fields)
        mujoco.mj_setConst(model, data)


class ModelEditor:
    """Sets a model to the values of one episode.

    It writes the numbers that follow from parameters, and no others of the same fields, which environments may write
    themselves: Meta-World's resets place bodies and sites, for example.
    """

    def __init__(self, space: ModelSpace) -> None:
        """Prepares to edit models like that of a space, which has the nominal values."""
        self._space = space
        self._fields = ModelFields(space, ())
        self._scratch: Any = None  # an MjData, if anything was ever edited

    def apply(self, model: Any, values: Mapping[str, float]) -> None:
        """Writes values into a model; parameters that are no longer given return to nominal.

        Args:
            model: The environment's, or that of a copy, which Gymnasium makes anew.
            values: Of the episode.

        Raises:
            RandomizationError: The model has other elements than the nominal one; nothing has changed.
        """
        import mujoco  # heavy

        if model.names != self._space.model.names:
            raise RandomizationError(
                "Expected a model with the same elements in every episode, got another: the environment builds others."
            )
        new = [name for name in values if name not in self._fields.names]
        if new:
            self._fields = ModelFields(self._space, [*self._fields.names, *new])
            self._places = self._find_places(self._fields.names)
            self._scratch = mujoco.MjData(self._space.model)  # since MuJoCo resets it when it derives constants
        fields = self._fields(np.array([[values.get(name, np.nan) for name in self._fields.names]]))
        now = {name: field_array(model, name) for name in fields}
        mixed = {name: np.where(self._places[name], array, now[name]) for name, array in fields.items()}
        edit(model, self._scratch, mixed, 0)
        self._written = {name: field_array(model, name) for name in fields}

    def undone(self, model: Any) -> list[str]:
        """The parameters of which something has written numbers since ``apply``."""
        pairs = {name: (array, field_array(model, name)) for name, array in self._written.items()}
        changed = {name: self._places[name] & (before != now) for name, (before, now) in pairs.items()}
        lost = any(numbers.any() for numbers in changed.values())  # hardly ever
        places = {name: self._find_places({name}) for name in self._fields.names if lost}
        return [name for name, own in places.items() if any((own[field] & changed[field]).any() for field in changed)]

    def _find_places(self, names: Collection[str]) -> dict[str, Mask]:
        """The numbers that follow from these parameters: field -> shape of the field."""
        found = {name: np.zeros(field_array(self._space.model, name).shape, np.bool_) for name in self._fields.places}
        for part in (part for name in names for part in self._space[name].parts):
            found[part.field].flat[list(part.columns)] = True
            for other in _BESIDE.get(part.field, ()):
                width = found[part.field][0].size
                found[other][np.array(part.columns) // width] = True
        return found
