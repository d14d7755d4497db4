"""The parameters of a MuJoCo model: their names, and the numbers of the model behind each name.

``field:element`` is one element (``body_mass:torso``), ``field:element.axis`` one component of a vector
(``geom_friction:floor.slide``, ``gravity.z``). A vector without its axis (``body_ipos:torso``) and a field without an
element (``body_mass``) are factors, nominally 1, that scale everything they name. A pattern (``geom_friction:*foot``)
is one parameter where a rule is shared: a value for all, or a factor where nominal values differ. If several names
affect one number, its value or nominal value is multiplied by each factor.
"""

from __future__ import annotations

import copy
import fnmatch
import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.mujoco.fields import (
    FACTOR_HIGH,
    FIELDS,
    RANGE,
    SOLREF,
    XYZ,
    Field,
    Part,
    Parts,
    element_names,
    field_array,
    outranked,
    owner_of,
)
from gym_dr.errors import RandomizationError, RandomizationWarning, UnknownNameError, listed, unknown_name, warn
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization, Rule

_FREE = 0  # mjtJoint
_INERTIA_SLACK = 1e-6  # relative; flat bodies lie exactly on the bound
_WILD = ("*", "?", "[")
_REACH = 10.0  # by how much an extreme nominal value may change


@dataclass(frozen=True, kw_only=True)
class ModelParam(Param):
    """A parameter, and how it changes the model."""

    element: str  # the name without its axis
    factor: bool  # whether its value multiplies the nominal numbers or replaces them
    parts: tuple[Part, ...]
    members: tuple[ModelParam, ...] = ()  # of a shared pattern


Entries = dict[str, ModelParam]


class ModelSpace(ParamSpace):
    """The parameters of one MuJoCo model, found field by field when they are asked for, since a model has thousands.

    ``nominal`` contains only the randomized names; ``params`` and ``info["params"]`` report these and parameters set by
    hand. ``space[name].nominal`` works for every name, and for patterns.

    Attributes:
        model: The ``MjModel`` with nominal values.
    """

    def __init__(self, name: str, model: Any, own: Sequence[Param] = ()) -> None:
        """Keeps a copy of the model.

        Args:
            name: Name under which presets are registered, for example ``"Hopper"``.
            model: An ``MjModel`` with its nominal values.
            own: Parameters of a task, which change nothing in the model.

        Raises:
            RandomizationError: A task's parameter has the name of one of the model.
        """
        self.name, self.model, self.nominal = name, copy.copy(model), {}
        self.floats = _FREE in model.jnt_type
        self._own = {each.name: ModelParam(**vars(each), element=each.name, factor=False, parts=()) for each in own}
        if taken := [one for one in self._own if _head(one) in FIELDS or ":" in one]:
            raise RandomizationError(
                f"Parameter {taken[0]!r}: expected another name than that of a field of the model."
            )
        self._entries: dict[str, Entries] = {}  # of a field, or of a pattern

    def __getitem__(self, name: str) -> ModelParam:
        known = self._near(name)
        if name not in known:
            raise self._unknown(name)
        return known[name]

    def __contains__(self, name: object) -> bool:
        try:
            return name in self._near(name)
        except UnknownNameError:  # of a pattern
            return False

    def __iter__(self) -> Iterator[str]:
        return itertools.chain(self._own, *map(self._of_field, FIELDS))

    def __len__(self) -> int:
        return len(self._own) + sum(len(self._of_field(field)) for field in FIELDS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelSpace):
            return NotImplemented
        mine, theirs = ((one.name, one.nominal, one._own, one.model.names) for one in (self, other))
        if mine != theirs:
            return False
        fields = [name for name in present(self.model) if not FIELDS[name].parts]
        return all(np.array_equal(field_array(self.model, name), field_array(other.model, name)) for name in fields)

    __hash__ = None  # type: ignore[assignment]  # as of every mapping

    def __repr__(self) -> str:
        return f"ModelSpace({self.name!r})"

    def reporting(self, randomization: Randomization) -> ModelSpace:
        """The same parameters, reporting those of a randomization."""
        space = copy.copy(self)
        space.nominal = {name: float(self[name].nominal) for name in randomization}
        return space

    def expand(self, randomization: Randomization) -> Randomization:
        """Replaces patterns (``body_mass:*leg*``) by the names that match, each with an independent draw.

        A pattern whose rule is shared stays one parameter. An explicit name takes precedence over a pattern. A pattern
        for vectors without an axis draws a factor for each element if its rule is a Scale, and otherwise each
        component. Patterns leave out what cannot vary, with a warning.

        Raises:
            UnknownNameError: A name or pattern matches nothing in the model.
            RandomizationError: Two patterns match one name, a factor has a rule other than Scale, or an inertia or a
                range is impossible.
        """
        rules = {name: rule for name, rule in randomization.items() if not self._is_pattern(name)}
        taken = dict.fromkeys(rules, "")  # name -> the pattern that it comes from
        for pattern, rule in randomization.items():
            matched = self._matches(pattern, rule) if self._is_pattern(pattern) else ()
            for name in [one.name for one in matched]:
                if taken.get(name) or (rule.shared and name in taken):
                    hint = "Leave one out" if rule.shared else "Name it explicitly"
                    raise RandomizationError(f"Parameter {name!r}: two patterns match it. {hint}.")
                if name not in taken:
                    rules[pattern if rule.shared else name] = rule
                    taken[name] = pattern
        supports = {name: rule.support(self[name].nominal) for name, rule in rules.items()}
        for name, rule in rules.items():
            self._check_operation(name, rule)
        self._check_together(supports)
        self._warn_outranked(taken)
        return Randomization(rules, correlation=randomization.correlation)

    def check_vector(self, values: Any, num_envs: int) -> dict[str, Array]:
        checked = super().check_vector(values, num_envs)
        if any(name.startswith("body_inertia:") or name.endswith((*RANGE, *SOLREF, "timestep")) for name in checked):
            for i in range(num_envs):
                self._check_together({name: (float(column[i]),) * 2 for name, column in checked.items()})
        return checked

    # ---- names -------------------------------------------------------------------------------------------------------

    def _near(self, name: object) -> Entries:
        """The parameters among which a name is, if there is one: those of its field, or the pattern."""
        if name in self._own:
            return self._own
        if not (isinstance(name, str) and self._is_pattern(name)):
            return self._of_field(_head(name)) if _head(name) in FIELDS else {}
        if name not in self._entries:
            self._entries[name] = {name: self._together(name)}
        return self._entries[name]

    def _of_field(self, name: str) -> Entries:
        """The parameters of a field; none if the model has no such field or elements."""
        if name not in self._entries:
            self._entries[name] = _entries_of(FIELDS[name], self.model) if name in present(self.model) else {}
        return self._entries[name]

    def _is_pattern(self, name: str) -> bool:
        """Whether a name stands for several; names of elements may have brackets too."""
        wild = any(sign in name for sign in _WILD)
        return wild and not (_head(name) in FIELDS and name in self._of_field(_head(name)))

    def _matches(self, pattern: str, rule: Rule) -> list[ModelParam]:
        """The parameters that a pattern stands for, without those that cannot vary."""
        names = self._of_field(_head(pattern)) if _head(pattern) in FIELDS else self
        matched = [self[name] for name in names if name not in FIELDS and fnmatch.fnmatchcase(name, pattern)]
        twice = {one.element for one in matched if one.name != one.element} & {one.name for one in matched}
        whole = rule.operation == "scale" or rule.shared
        matched = [one for one in matched if one.element not in twice or (one.name == one.element) == whole]
        if not matched:
            raise self._unknown(pattern)
        reasons: dict[str, dict[str, None]] = {}  # why -> elements that cannot vary
        for one in matched:
            reasons.setdefault(one.idle, {})[one.element.partition(":")[2]] = None
        reasons.pop("", None)
        matched = [one for one in matched if not one.idle]
        told = "; ".join(f"{listed(list(left))}: {reason}" for reason, left in reasons.items())
        if not matched:
            raise RandomizationError(f"Parameter {pattern!r}: nothing that it matches can vary ({told}).")
        if told:
            warn(f"{pattern} leaves out what cannot vary ({told}).", RandomizationWarning)
        if rule.operation == "scale":  # it would multiply zeros
            return [one for one in matched if one.nominal and not (one.factor and one.needs)] or matched
        return matched

    def _together(self, pattern: str) -> ModelParam:
        """A pattern as one parameter: one value for all that it matches, or a factor if their nominal values differ."""
        found = self._matches(pattern, Rule(Constant(1.0), shared=True))
        first, parts = found[0], tuple(part for one in found for part in one.parts)
        factor = any(one.factor for one in found) or len({one.nominal for one in found}) > 1
        doc = f"{'factor' if factor else 'one value'} for {len(found)} elements: {first.doc}"
        nominal, unit, low, high = 1.0, "x", max(FIELDS[_head(one.name)].factor_low for one in found), FACTOR_HIGH
        if not factor:
            nominal, unit = first.nominal, first.unit
            low, high = max(one.low for one in found), min(one.high for one in found)
        shown = replace(first, name=pattern, nominal=nominal, low=low, high=high, unit=unit, doc=doc)
        return replace(shown, element=pattern, factor=factor, parts=parts, members=tuple(found))

    # ---- checks ------------------------------------------------------------------------------------------------------

    def _check_operation(self, name: str, rule: Rule) -> None:
        if self[name].factor and rule.operation != "scale":
            axes = [other.rpartition(".")[2] for other in self._of_field(_head(name)) if other.startswith(f"{name}.")]
            unit = f" in {FIELDS[_head(name)].unit}" if FIELDS[_head(name)].unit else ""
            hint = f", or a component{unit}: {', '.join(f'{name}.{axis}' for axis in axes)}" if axes else ""
            raise RandomizationError(
                f"Parameter {name!r}: it is a factor of several numbers, nominally 1; expected Scale((low, high)), "
                f"on the command line {name}=scale:LOW:HIGH, for factors from low to high{hint}, got {rule!r}."
            )

    def _check_together(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        """Checks numbers that depend on each other.

        Raises:
            RandomizationError: A moment can exceed the sum of the other two, which is physically impossible, or the
                lower end of a range the upper one, or the numbers of a solref have different signs, for which MuJoCo
                takes its defaults, or a delay is longer than an actuator's history.
        """
        ends = dict(bounds)
        for name in bounds:
            for one in self[name].members:
                low, high = sorted(end * (one.nominal if self[name].factor else 1.0) for end in bounds[name])
                ends[one.name] = low, high
        shorter = ends["timestep"][0] / self["timestep"].nominal if "timestep" in ends else 1.0
        late = [one for one in ends if _head(one) == "actuator_delay" and ends[one][1] > self[one].high * shorter]
        if late:
            raise RandomizationError(
                f"Parameter {late[0]!r}: expected at most {self[late[0]].high * shorter:g} s, for which the actuator "
                f"remembers controls at the shortest timestep, got {ends[late[0]][1]:g}. Lengthen actuator_history, "
                "or nsample in the model."
            )
        chosen = {self[name].element for name in ends if name != self[name].element}
        for element in sorted(chosen):
            axes = FIELDS[_head(element)].axes
            if axes not in (RANGE, SOLREF, XYZ):
                continue
            names = [f"{element}.{axis}" for axis in axes]
            lows, highs = zip(*(ends.get(name, (self[name].nominal,) * 2) for name in names), strict=True)
            if axes == RANGE and highs[0] > lows[1] and not self[names[0]].idle:
                raise RandomizationError(
                    f"Parameter {element!r}: expected low <= high, got low up to {highs[0]:g} and high from "
                    f"{lows[1]:g}."
                )
            if axes == SOLREF and min(lows) <= 0 < max(highs):
                raise RandomizationError(
                    f"Parameter {element!r}: expected a time constant and a damping ratio above 0, or stiffness and "
                    f"damping, both negative, got {axes[0]} from {lows[0]:g} to {highs[0]:g} and {axes[1]} from "
                    f"{lows[1]:g} to {highs[1]:g}."
                )
            for k, high in enumerate(highs) if _head(element) == "body_inertia" else ():
                rest = sum(lows[:k] + lows[k + 1 :])
                if high > rest * (1.0 + _INERTIA_SLACK):
                    raise RandomizationError(
                        f"Parameter {element!r}: expected principal moments of inertia of which none exceeds the sum "
                        f"of the other two, got up to {high:g} beside {rest:g}. Scale all three together: {element!r} "
                        "without an axis."
                    )

    def _warn_outranked(self, names: Collection[str]) -> None:
        """Tells which contacts do not follow the parameters of a geom, since the other geom has a higher priority."""
        geoms, ranks = element_names(self.model, "geom"), outranked(self.model)
        lost: dict[str, list[str]] = {}  # the others, which do not vary -> parameters
        for head in ("geom_friction", "geom_solref", "geom_solimp"):
            chosen = {name: self[name].element.partition(":")[2] for name in names if name.startswith(f"{head}:")}
            for name, geom in chosen.items():
                higher = [geoms[k] for k in ranks[geoms.index(geom)].nonzero()[0]]
                unchanged = [other for other in higher if other not in chosen.values() and head not in names]
                lost.setdefault(listed(unchanged), []).append(name)
        lost.pop("", None)
        for others, ignored in lost.items():
            text = f"Contacts with {others} ignore {listed(ignored)}, since their priority is higher."
            warn(text, RandomizationWarning)

    def _unknown(self, name: object) -> UnknownNameError:
        """The error for an unknown name, with the elements or fields that the model has."""
        head, _, rest = str(name).partition(":")
        elements = [known.partition(":")[2] for known in self._of_field(head)] if head in FIELDS else []
        if elements := [element for element in elements if element]:
            similar = [element for element in elements if ("." in element) == ("." in rest)] or elements
            return unknown_name(f"element of {head} in {self.name}:", rest, similar)
        fields = dict.fromkeys(map(_head, self))
        components = [known for known in self if "." in known and ":" not in known]
        return unknown_name(f"parameter of {self.name}:", name, [*fields, *components])


def space_of_env(env: Any, model: Any = None, name: str = "") -> ModelSpace:
    """The parameters of a MuJoCo environment without wrappers.

    Args:
        env: The environment.
        model: Its ``MjModel``; None for ``env.model``.
        name: Of its presets; empty for that of its class. A robot has a name of its own.

    Returns:
        New parameters. Whoever asks a new robot first gets those that its presets were checked with, since finding them
        takes most of the time in which a robot is made.
    """
    if "checked_space" in vars(env):
        return cast(ModelSpace, vars(env).pop("checked_space"))
    name = getattr(env, "space_name", name or type(env).__name__.removesuffix("Env"))
    return ModelSpace(name, env.model if model is None else model, getattr(env, "own_parameters", ()))


def present(model: Any) -> list[str]:
    """The fields of the table that a model has; older versions of MuJoCo lack some."""
    return [f.name for f in FIELDS.values() if f.added or f.parts or hasattr(owner_of(model, f.name), f.name)]


def _entries_of(field: Field, model: Any) -> Entries:
    """The parameters of one field, the factor for the whole field first."""
    names = element_names(model, field.objects)
    reasons = field.idle(model) if field.idle is not None and names else [""] * len(names)
    values = functools.cache(lambda name: field_array(model, name).reshape(-1))
    stride = 0 if field.parts or not names else len(values(field.name)) // len(names)
    found: Entries = {}
    for i, (element, idle) in enumerate(zip(names, reasons, strict=True)):
        full = f"{field.name}:{element}" if field.objects else field.name
        numbers = field.numbers(model, i, stride)
        own = {f"{full}.{axis}" if axis else full: parts for axis, parts in numbers.items()}
        if twice := own.keys() & found.keys() or ({full} & found.keys()):
            raise RandomizationError(f"{min(twice)!r} names two parameters of the model. Rename one of its elements.")
        if not _exists(field, model, i):
            continue
        bounded = field if field.highest is None else replace(field, high=field.highest(model, i))
        params = [_value(bounded, name, full, parts, values, idle) for name, parts in own.items()]
        if full not in own and own and field.objects and field.scales:
            found[full] = _factor(field, full, params, values)
        found |= {param.name: param for param in params}
    if field.name in found or not field.scales or not found:
        return found
    single = [param for param in found.values() if field.factor or not param.factor]
    return {field.name: _factor(field, field.name, single, values), **found}


def _exists(field: Field, model: Any, i: int) -> bool:
    """Whether an element has the quantity: the world has no place, and what cannot move no mass."""
    if field.name in ("body_mass", "body_inertia", "body_ipos", "pseudo_inertia"):
        heavy = model.body_mass[i] > 0 and (field.name != "body_inertia" or (model.body_inertia[i] > 0).all())
        return bool(heavy and model.body_weldid[i])
    return field.objects != "body" or i > 0


Values = Callable[[str], Array]  # field -> its nominal values, flattened


def _value(field: Field, name: str, element: str, parts: Parts, values: Values, idle: str) -> ModelParam:
    """A parameter for the value of an element or a component, or for a factor that an element is by its nature."""
    first = parts[0]
    nominal = 1.0 if field.factor else float(values(first.field)[first.columns[0]]) / first.coef
    low, high = field.limits.get(name.rpartition(".")[2], (field.low, field.high))
    reach = () if field.closed or field.highest or field.limits else (nominal / _REACH, nominal * _REACH)
    return ModelParam(
        name=name,
        nominal=nominal,
        low=min(low, *reach, nominal),
        high=max(high, *reach, nominal),
        unit=field.unit,
        doc=field.doc,
        kind=field.kind,
        needs=("density", "viscosity") if field.name == "wind" else (),
        idle=idle,
        element=element,
        factor=field.factor,
        parts=parts,
    )


def _factor(field: Field, name: str, multiplied: Sequence[ModelParam], values: Values) -> ModelParam:
    """A parameter that multiplies the numbers of others, as far as they can vary."""
    able = [param for param in multiplied if not param.idle] or multiplied
    parts = tuple(part for param in able for part in param.parts)
    zero = not any(values(part.field)[list(part.columns)].any() for part in parts)
    return ModelParam(
        name=name,
        nominal=1.0,
        low=field.factor_low,
        high=FACTOR_HIGH,
        unit="x",
        doc=field.doc if field.factor else f"factor: {field.doc}",
        needs=tuple(param.name for param in able) if zero and not able[0].idle else (),
        idle=able[0].idle,
        element=name,
        factor=True,
        parts=parts,
    )


def _head(name: object) -> str:
    """The field in a name."""
    return str(name).partition(":")[0].partition(".")[0]
