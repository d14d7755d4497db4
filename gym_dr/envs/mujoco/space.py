"""The parameters of a MuJoCo model: their names, and the numbers of the model behind each name.

``field:element`` is one element (``body_mass:torso``), ``field:element.axis`` one component of a vector
(``geom_friction:floor.slide``, ``gravity.z``). A vector without its axis (``body_ipos:torso``) and a field without an
element (``body_mass``) are factors, nominally 1, that scale everything they name. If several names affect one number,
its value or nominal value is multiplied by each factor.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.mujoco.fields import FACTOR_HIGH, FIELDS, Field, element_names, owner_of
from gym_dr.errors import RandomizationError, UnknownNameError, unknown_name
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization, Rule

LENGTH = "body_length"  # not a MuJoCo field: a link's length affects several fields
_CAPSULE, _CYLINDER = 3, 5  # mjtGeom
_FREE = 0  # mjtJoint
_INERTIA_SLACK = 1e-6  # relative; flat bodies lie exactly on the bound
_WILD = ("*", "?", "[")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Numbers of one field of the model that a name stands for."""

    field: str
    columns: tuple[int, ...]  # places in the flattened field
    exponent: int = 1  # of the factor, if the name is a factor


@dataclass(frozen=True, kw_only=True)
class Target:
    """How one name changes the model."""

    factor: bool  # whether its value multiplies the nominal numbers or replaces them
    parts: tuple[Part, ...]


class ModelSpace(ParamSpace):
    """The parameters of one MuJoCo model.

    ``nominal`` contains only the randomized names, since a model has hundreds; ``params`` and ``info["params"]`` report
    these and parameters set by hand. ``space[name].nominal`` works for every name.
    """

    def __init__(self, name: str, params: list[Param], targets: Mapping[str, Target], *, floats: bool = False) -> None:
        """Collects parameters; ``model_space`` makes them from a model.

        Args:
            name: Name under which presets are registered.
            params: The parameters that may vary.
            targets: How each name changes the model.
            floats: Whether it has a floating base, a free joint.
        """
        super().__init__(name, params)
        self.targets, self.floats = targets, floats
        self.nominal = {}

    def __getitem__(self, name: str) -> Param:
        if name in self:
            return super().__getitem__(name)
        raise self._unknown(name)

    def reporting(self, randomization: Randomization) -> ModelSpace:
        """The same parameters, reporting those of a randomization."""
        space = ModelSpace(self.name, list(self.values()), self.targets, floats=self.floats)
        space.nominal = {name: float(self[name].nominal) for name in randomization}
        return space

    def expand(self, randomization: Randomization) -> Randomization:
        """Replaces patterns (``body_mass:*leg*``) by the names that match, each with an independent draw.

        An explicit name takes precedence over a pattern. A pattern for vectors without an axis draws a factor for each
        element if its rule is a Scale, and otherwise each component.

        Raises:
            UnknownNameError: A name or pattern matches nothing in the model.
            RandomizationError: Two patterns match one name, a factor has a rule other than Scale, or an inertia is
                impossible.
        """
        rules: dict[str, Rule] = {}
        for pattern, rule in randomization.items():
            for name in self._matches(pattern, rule) if _is_pattern(pattern) else ():
                if name in rules:
                    raise RandomizationError(f"Parameter {name!r}: two patterns match it. Name it explicitly.")
                if name not in randomization:
                    rules[name] = rule
        rules |= {name: rule for name, rule in randomization.items() if not _is_pattern(name)}
        supports = {name: rule.support(self[name].nominal) for name, rule in rules.items()}
        for name, rule in rules.items():
            self._check_operation(name, rule)
        self._check_inertia(supports)
        return Randomization(rules, correlation=randomization.correlation)

    def check_vector(self, values: Any, num_envs: int) -> dict[str, Array]:
        checked = super().check_vector(values, num_envs)
        if any(name.startswith("body_inertia:") for name in checked):
            for i in range(num_envs):
                self._check_inertia({name: (float(column[i]),) * 2 for name, column in checked.items()})
        return checked

    def _matches(self, pattern: str, rule: Rule) -> list[str]:
        """The names that a pattern stands for."""
        head, _, rest = pattern.partition(":")
        matched = [name for name in self.targets if name != head and fnmatch.fnmatchcase(name, pattern)]
        axes = FIELDS[head].axes if head in FIELDS else ()
        if axes:
            with_axis = "." in rest and rest.rpartition(".")[2] in (*axes, "*")
            components = with_axis or rule.operation != "scale"
            matched = [name for name in matched if self.targets[name].factor != components]
        if not matched:
            raise self._unknown(pattern)
        if rule.operation == "scale":
            return [name for name in matched if not self._multiplies_zeros(name)] or matched
        return matched

    def _multiplies_zeros(self, name: str) -> bool:
        """Whether a Scale of this parameter changes nothing: its numbers are 0."""
        return self[name].nominal == 0 or (self.targets[name].factor and bool(self[name].needs))

    def _check_operation(self, name: str, rule: Rule) -> None:
        if self.targets[name].factor and rule.operation != "scale":
            axes = FIELDS[name.partition(":")[0]].axes if not name.startswith(LENGTH) else ()
            hint = f", or name a component: {', '.join(f'{name}.{axis}' for axis in axes)}" if axes else ""
            raise RandomizationError(
                f"Parameter {name!r}: one draw scales several numbers; expected Scale(...){hint}, got {rule!r}."
            )

    def _check_inertia(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        """Raises RandomizationError if a moment can exceed the sum of the other two, which is physically impossible."""
        named = {name for name in bounds if name.startswith("body_inertia:") and not self.targets[name].factor}
        for body in sorted({name.rpartition(".")[0] for name in named}):
            names = [f"{body}.{axis}" for axis in FIELDS["body_inertia"].axes]
            lows, highs = zip(*(bounds.get(name, (self[name].nominal,) * 2) for name in names), strict=True)
            for k, high in enumerate(highs):
                rest = sum(lows[:k] + lows[k + 1 :])
                if high > rest * (1.0 + _INERTIA_SLACK):
                    raise RandomizationError(
                        f"Parameter {body!r}: expected principal moments of inertia of which none exceeds the sum of "
                        f"the other two, got up to {high:g} beside {rest:g}. Scale all three together: {body!r} "
                        "without an axis."
                    )

    def _unknown(self, name: object) -> UnknownNameError:
        """The error for an unknown name, with the elements or fields that the model has."""
        head, _, rest = str(name).partition(":")
        elements = [known.partition(":")[2] for known in self if known.startswith(f"{head}:")]
        if elements:
            similar = [element for element in elements if ("." in element) == ("." in rest)] or elements
            return unknown_name(f"element of {head} in {self.name}:", rest, similar)
        fields = dict.fromkeys(known.partition(":")[0].partition(".")[0] for known in self)
        components = [known for known in self if "." in known and ":" not in known]
        return unknown_name(f"parameter of {self.name}:", name, [*fields, *components])


def model_space(name: str, model: Any) -> ModelSpace:
    """Lists the parameters of a model.

    Args:
        name: Name under which presets are registered, for example ``"Hopper"``.
        model: An ``MjModel`` with its nominal values.
    """
    found = [pair for field in FIELDS.values() for pair in _of_field(field, model)]
    found += _lengths(model)
    targets = {param.name: target for param, target in found}
    return ModelSpace(name, [param for param, _ in found], targets, floats=_FREE in model.jnt_type)


def space_of_env(env: Any) -> ModelSpace:
    """Lists the parameters of the model of a MuJoCo environment without wrappers; presets are those of its class."""
    return model_space(getattr(env, "space_name", type(env).__name__.removesuffix("Env")), env.model)


def field_array(model: Any, name: str) -> Array:
    """The values of a field in a model, flattened; a copy."""
    return np.array(getattr(owner_of(model, name), name), dtype=np.float64).reshape(-1)


def _of_field(field: Field, model: Any) -> Iterator[tuple[Param, Target]]:
    values = field_array(model, field.name)
    names = element_names(model, field.objects)
    if not names:
        return
    stride = values.size // len(names)  # actuator_gear has six numbers, of which joints use the first
    numbers: dict[int, str] = {}  # place in the flattened field -> name
    elements: list[tuple[Param, Target]] = []
    for i, element in enumerate(names):
        columns = tuple(range(i * stride, i * stride + max(1, len(field.axes))))
        if not _may_vary(field, model, i, values[list(columns)]):
            continue
        full = f"{field.name}:{element}" if field.objects else field.name
        own = {
            column: f"{full}.{axis}" if axis else full
            for column, axis in zip(columns, field.axes or ("",), strict=True)
        }
        if field.axes and field.objects:
            elements.append(_factor(field, full, own, values))
        elements += [_value(field, component, float(values[column]), column) for column, component in own.items()]
        numbers |= own
    if numbers and (field.objects or field.axes):
        yield _factor(field, field.name, numbers, values)
    yield from elements


def _may_vary(field: Field, model: Any, i: int, values: Array) -> bool:
    if field.name in ("body_mass", "body_inertia"):  # the world and massless bodies have none
        return bool((values > 0).all())
    if field.name == "body_ipos":  # a body compiled as simple has a diagonal inertia matrix for good
        return bool(model.body_mass[i] > 0 and model.body_simple[i] == 0)
    return True


def _value(field: Field, name: str, nominal: float, column: int) -> tuple[Param, Target]:
    """A parameter for one number, given by its place."""
    # a number that the model places outside the field's range varies as far as a factor for the field moves it
    reach = (nominal,) if field.low <= nominal <= field.high else (nominal * field.factor_low, nominal * FACTOR_HIGH)
    low, high = min(field.low, *reach), max(field.high, *reach)
    needs = ("density", "viscosity") if field.name == "wind" else ()
    param = Param(name=name, nominal=nominal, low=low, high=high, unit=field.unit, doc=field.doc, needs=needs)
    return param, Target(factor=False, parts=(Part(field=field.name, columns=(column,)),))


def _factor(field: Field, name: str, numbers: Mapping[int, str], values: Array) -> tuple[Param, Target]:
    """A parameter that multiplies numbers, given by their places and names."""
    columns = tuple(numbers)
    needs = () if values[list(columns)].any() else tuple(numbers.values())
    doc = f"factor: {field.doc}"
    param = Param(name=name, nominal=1.0, low=field.factor_low, high=FACTOR_HIGH, unit="x", doc=doc, needs=needs)
    return param, Target(factor=True, parts=(Part(field=field.name, columns=columns),))


def _lengths(model: Any) -> Iterator[tuple[Param, Target]]:
    """Lengths of links that are a single capsule or cylinder, in models without contacts, which depend on shapes."""
    if (model.geom_contype[:, None] & model.geom_conaffinity[None, :]).any():
        return
    for i, element in enumerate(element_names(model, "body")):
        geoms = np.flatnonzero(model.geom_bodyid == i)
        if not (model.body_mass[i] > 0 and len(geoms) == 1 and model.geom_type[geoms[0]] in (_CAPSULE, _CYLINDER)):
            continue
        if model.body_simple[i] or not model.body_ipos[i].any():  # the frame must be at one end
            continue
        geom = int(geoms[0])
        thin = int(np.argmin(model.body_inertia[i]))  # the moment about the link's own axis does not change
        bent = tuple(3 * i + axis for axis in range(3) if axis != thin)
        moved = [("body_ipos", i), ("geom_pos", geom)]
        moved += [("body_pos", int(child)) for child in np.flatnonzero(model.body_parentid == i) if child]
        moved += [("site_pos", int(site)) for site in np.flatnonzero(model.site_bodyid == i)]
        parts = [Part(field=name, columns=tuple(range(3 * k, 3 * k + 3))) for name, k in moved]
        parts.append(Part(field="geom_size", columns=(3 * geom + 1,)))
        parts.append(Part(field="body_inertia", columns=bent, exponent=2))
        doc = "factor: length of a link at constant mass; also moves its center of mass, inertia and attached bodies"
        param = Param(name=f"{LENGTH}:{element}", nominal=1.0, low=0.05, high=20.0, unit="x", doc=doc)
        yield param, Target(factor=True, parts=tuple(parts))


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in _WILD)
