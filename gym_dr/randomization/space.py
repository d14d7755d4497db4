"""What may vary in an environment: parameters with nominal values, physical bounds, units, and what they need.

A parameter may have an effect only beside a switch that is on, or another number that is not 0. This is decided once,
when parameters are chosen: drawn, set by hand, or put on the axes of a grid. A switch that nobody mentions is turned on
with the parameter that needs it, as if the user had written it. Anything else that is missing is refused.
"""

from __future__ import annotations

import difflib
import math
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.errors import (
    RandomizationError,
    UnknownNameError,
    check_known,
    shortened,
    unknown_name,
)
from gym_dr.options import plain
from gym_dr.randomization.spec import CORRELATION, Randomization, Rule

KINDS = ("float", "int", "bool")
RESET_OPTIONS = ("params", "reset_mask")  # ours, and Gymnasium's for vector environments
Ranges: TypeAlias = Mapping[str, tuple[float, float]]  # parameter -> lowest and highest value
# columns of episode tables other than parameters
LOG_COLUMNS = frozenset(
    {"policy", "set", "cell", "episode", "seed", "return", "steps", "terminated", "outcome"}
    | {"update", "env_index", "draw_index", "version", "progress"}
)
# parameters of ``Disturb``, in the same table as those of the environment
DISTURBANCE_NAMES = frozenset(
    {"obs_noise", "obs_bias", "obs_delay", "obs_drop", "action_noise", "action_delay", "action_drop"}
    | {"action_gain", "action_gain_interval", "push_speed", "push_vertical_speed", "push_angular_speed"}
    | {"push_probability", "push_interval", "wrench_force", "wrench_torque", "wrench_interval"}
)
SENSOR_DISTURBANCES = ("obs_hide", "obs_drop", "obs_offset")  # of each sensor: obs_hide:SENSOR


def is_disturbance(name: str) -> bool:
    """Whether a name is that of a disturbance, or of one of a sensor, such as ``obs_hide:theta``."""
    return name in DISTURBANCE_NAMES or name.partition(":")[0] in SENSOR_DISTURBANCES


def as_numbers(values: Any) -> Array:
    """Real numbers as float64, in an array of the same shape; -0 becomes 0, which generators take for negative.

    Raises:
        TypeError: They are text, dates, complex or masked numbers, or something else.
        ValueError: They are lists of different lengths.
    """
    array = np.asanyarray(values).astype(np.float64, casting="same_kind")  # a masked array stays one
    if np.any(getattr(array, "mask", False)):
        raise TypeError(f"expected numbers, got {values!r}")
    return np.asarray(array) + 0.0


@dataclass(frozen=True, kw_only=True)
class Param:
    """One quantity of an environment's physics."""

    name: str  # as users write it: "gravity", or "body_mass:torso" for one of many
    nominal: float  # the value without randomization
    low: float  # smallest possible value, inclusive
    high: float  # largest possible value, inclusive
    unit: str = ""  # "m/s^2"; empty for pure numbers
    doc: str = ""  # its effect, in one line
    kind: str = "float"  # "float", "int" (whole numbers) or "bool" (0 or 1)
    needs: tuple[str, ...] = ()  # parameters of which one must not be 0 for this one to have an effect, as a switch
    idle: str = ""  # why it cannot vary in this environment; empty if it can

    def __post_init__(self) -> None:
        check_known("kind of parameter", self.kind, KINDS)
        for end in ("nominal", "low", "high"):
            object.__setattr__(self, end, plain(getattr(self, end)))
        for names, what in ((LOG_COLUMNS, "a column of episode tables"), ({CORRELATION}, "an entry of randomizations")):
            if self.name in names:
                raise RandomizationError(
                    f"Parameter {self.name!r}: this name is reserved for {what}. Choose another name."
                )
        if self.name.startswith("_"):
            raise RandomizationError(
                f"Parameter {self.name!r}: expected a name that does not begin with _, which in Gymnasium's info marks "
                "the mask of another entry. Choose another name; in RandomizeAttributes, apply= sets what it stands "
                f"for: apply=lambda env, values: setattr(env, {self.name!r}, values[{self.name.strip('_')!r}])."
            )
        numbers = (self.nominal, self.low, self.high)
        if not (
            all(isinstance(number, int | float | np.floating) for number in numbers)
            and math.isfinite(self.nominal)
            and self.low < self.high
        ):
            raise RandomizationError(
                f"Parameter {self.name!r}: expected a finite nominal value and low < high, "
                f"got nominal={self.nominal!r}, low={self.low!r}, high={self.high!r}."
            )
        if self.kind == "bool" and (self.low, self.high) != (0, 1):
            raise RandomizationError(
                f"Parameter {self.name!r}: expected low=0 and high=1 for kind 'bool', "
                f"got low={self.low}, high={self.high}."
            )
        if self.kind != "float" or not self.low <= self.nominal <= self.high:  # which is quicker; models have thousands
            self.check(self.nominal)

    def check(self, values: npt.ArrayLike) -> Array:
        """Returns ``values`` as float64 of the same shape.

        Raises:
            RandomizationError: A value is not a number, not finite, out of bounds or of the wrong kind.
        """
        try:
            array = as_numbers(values)
        except (TypeError, ValueError, RuntimeError):  # the last of a tensor that requires gradients
            raise RandomizationError(f"Parameter {self.name!r}: expected numbers, got {values!r}.") from None
        good = np.isfinite(array) & (array >= self.low) & (array <= self.high)
        if self.kind != "float":
            good &= array == np.floor(array)
        if not np.all(good):
            bad = array[~good].flat[0] if array.ndim else array[()]
            raise RandomizationError(f"Parameter {self.name!r}: expected {self.bounds_text()}, got {bad}.")
        return array

    def bounds_text(self) -> str:
        """The allowed values in words, with the unit."""
        if self.kind == "bool":
            return "0 or 1"
        what = "a finite value" if math.isinf(self.high - self.low) else "a value"
        what = "a whole number" if self.kind == "int" else what
        return f"{what} from {self.low:g} to {self.high:g}{' ' if self.unit else ''}{self.unit}"


class ParamSpace(Mapping[str, Param]):
    """The parameters of a family of environments, in a fixed order.

    Attributes:
        name: Name under which presets are registered.
        nominal: name -> nominal value, of the parameters that environments always report.
        constants: Names of the parameters whose nominal values are keywords of the environment.
        floats: Whether these are parameters of a robot with a floating base.
    """

    constants: frozenset[str] = frozenset()
    floats: bool = False

    def __init__(self, name: str, params: list[Param]) -> None:
        """Collects parameters.

        Args:
            name: Name under which presets are registered, for example ``"LunarLander"``.
            params: In the order in which tables show them.

        Raises:
            RandomizationError: Two parameters have the same name, or one needs a parameter that is missing.
        """
        self.name = name
        self._params = {param.name: param for param in params}
        if len(self._params) != len(params):
            raise RandomizationError(f"Parameter space {name!r}: two parameters have the same name.")
        for param in params:
            if unknown := [name for name in param.needs if name not in self._params]:
                raise RandomizationError(
                    f"Parameter {param.name!r}: expected the names of other parameters as needs, got {unknown[0]!r}."
                )
        self.nominal = {param.name: float(param.nominal) for param in params}

    def __getitem__(self, name: str) -> Param:
        try:
            return self._params[name]
        except (KeyError, TypeError):
            raise unknown_name(f"parameter of {self.name}:", name, self._params) from None

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __repr__(self) -> str:
        return f"ParamSpace({self.name!r}: {', '.join(self._params)})"

    def in_order(self, names: Collection[str]) -> list[str]:
        """The known names, in the order of the space; known names that it does not list come last, sorted."""
        listed = [name for name in self if name in names]
        return listed + sorted(name for name in names if name not in listed and name in self)

    def with_constants(self, keywords: Mapping[str, Any]) -> ParamSpace:
        """The space of an environment in which keywords set the nominal values of some parameters.

        Presets do not vary these, and nothing turns them on.

        Args:
            keywords: The parameters with their values; other names are ignored.

        Raises:
            RandomizationError: A value is impossible.
        """
        params = [replace(p, nominal=keywords[p.name]) if p.name in keywords else p for p in self.values()]
        space = ParamSpace(self.name, params)
        space.constants = frozenset(keywords) & set(self)
        return space

    def expand(self, randomization: Randomization) -> Randomization:
        """Replaces names that stand for several parameters by those parameters; the base class has none."""
        return randomization

    def reporting(self, randomization: Randomization) -> ParamSpace:
        """The space for an environment with this randomization; large spaces report only what varies."""
        return self

    def check_randomization(self, randomization: Randomization) -> None:
        """Checks every rule against its parameter.

        Raises:
            UnknownNameError: A parameter is unknown.
            RandomizationError: A rule can give a value outside the parameter's bounds or of the wrong kind, multiplies
                0, or replaces a keyword.
        """
        for name, rule in randomization.rules:
            _check_rule(self[name], rule)
            if name in self.constants and rule.operation == "absolute":
                raise RandomizationError(
                    f"Parameter {name!r}: expected a keyword or a rule, got {name}={self[name].nominal:g} and "
                    f"{rule!r}. Leave one of them out. Scale and Add start from the keyword."
                )

    def check(self, values: Any) -> dict[str, float]:
        """Checks parameter values of one environment before any of them is used.

        Args:
            values: Mapping of names to numbers.

        Returns:
            name -> float.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not a single number, out of bounds, not finite or of the wrong kind.
        """
        return {name: float(array[0]) for name, array in self.check_vector(values, 1).items()}

    def check_vector(self, values: Any, num_envs: int) -> dict[str, Array]:
        """Checks parameter values of a vector environment before any of them is used.

        Args:
            values: Mapping of names to numbers or arrays of shape ``(num_envs,)``.
            num_envs: Number of sub-environments.

        Returns:
            name -> new float64 array of shape ``(num_envs,)``.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value has the wrong shape or kind, is out of bounds or not finite.
        """
        checked = {}
        if not isinstance(values, Mapping):
            raise RandomizationError(f"Expected a mapping of parameter names to values, got {values!r}.")
        for name, value in values.items():
            array = self[name].check(value)
            if array.shape not in ((), (num_envs,)):
                expected = "one number" if num_envs == 1 else f"one number or shape ({num_envs},)"
                raise RandomizationError(f"Parameter {name!r}: expected {expected}, got shape {array.shape}.")
            checked[name] = np.full(num_envs, array)
        return checked


class StackedSpace(ChainMap[str, Param], ParamSpace):
    """The parameters of two layers around one environment; the inner one sets those that both know."""

    def __init__(self, inner: ParamSpace, outer: ParamSpace, varying: Iterable[str]) -> None:
        """Joins both; presets are those of the outer one.

        Args:
            inner: The space of the layer inside.
            outer: That of the layer around it.
            varying: The randomized parameters, which environments report.
        """
        super().__init__(inner, outer)  # type: ignore[arg-type]  # it changes neither
        self.name, self.floats = outer.name, inner.floats or outer.floats
        self.constants = inner.constants | outer.constants
        self._with_patterns = inner if type(outer) is ParamSpace else outer
        self.nominal = {name: float(self[name].nominal) for name in (*inner.nominal, *outer.nominal, *varying)}

    def _space_of(self, name: str) -> Any:
        return next((space for space in self.maps if name in space), self._with_patterns)

    def __getitem__(self, name: str) -> Param:
        return cast(Param, self._space_of(name)[name])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StackedSpace) and (self.maps, self.nominal) == (other.maps, other.nominal)

    def parts(self, given: Mapping[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
        """The space of the inner layer and its entries of a mapping, and those of the outer one."""
        return [(space, {n: v for n, v in given.items() if self._space_of(n) is space}) for space in self.maps]

    def expand(self, randomization: Randomization) -> Randomization:
        """See ``ParamSpace.expand``; each space expands its own names."""
        expanded = [space.expand(Randomization(part)) for space, part in self.parts(randomization)]
        return Randomization(dict(ChainMap(*expanded)), correlation=randomization.correlation)

    def check_vector(self, values: Any, num_envs: int) -> dict[str, Array]:
        """See ``ParamSpace.check_vector``; each space checks its own values."""
        parts = self.parts(super().check_vector(values, num_envs))
        return dict(ChainMap(*(space.check_vector(part, num_envs) for space, part in parts)))


def exact_values(options: Mapping[str, Any] | None, space: Mapping[str, Any]) -> Any:
    """``options["params"]`` of ``reset``, the exact values of the next episode; None without.

    Other options belong to the environment and are not checked.

    Args:
        options: Those of ``reset``.
        space: The parameters.

    Raises:
        RandomizationError: The options are not a mapping.
        UnknownNameError: An option is named like a parameter, or looks like a misspelled one of ours.
    """
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise RandomizationError(f"Expected options to be a dict or None, got {shortened(options)}.")
    for name in options:
        if name in space and name not in RESET_OPTIONS:
            raise UnknownNameError(
                f"Unknown option of reset {name!r}. Write {{'params': {{{name!r}: {shortened(options[name])}}}}}."
            )
        if name not in RESET_OPTIONS and difflib.get_close_matches(str(name), RESET_OPTIONS, cutoff=0.8):
            raise unknown_name("option of reset", name, RESET_OPTIONS)
    return options.get("params")


def _check_rule(param: Param, rule: Rule) -> None:
    if rule.operation == "scale" and param.nominal == 0:
        raise RandomizationError(
            f"Parameter {param.name!r} has no effect here: Scale multiplies its nominal value, which is 0. Use Add, or "
            "a distribution of its values."
        )
    low, high = rule.support(param.nominal)
    start = abs(param.nominal) if rule.operation == "add" else 0.0
    # 0.1 x 3 is one ulp above 0.3; ``draw`` clips that, and nothing else
    below, above = (4.0 * math.ulp(max(abs(end), start)) for end in (param.low, param.high))
    if not (param.low - below <= low and high <= param.high + above):
        unbounded = " Give the distribution bounds (low, high)." if math.isinf(high - low) else ""
        raise RandomizationError(
            f"Parameter {param.name!r}: expected {param.bounds_text()}, "
            f"got {rule!r}, which reaches from {low:g} to {high:g}.{unbounded}"
        )
    if param.kind != "float" and not (rule.distribution.integral and rule.operation != "scale"):
        raise RandomizationError(
            f"Parameter {param.name!r}: expected {param.bounds_text()}, got {rule!r}. "
            "Use Bernoulli, Integer, Choice or Constant with whole numbers."
        )


# ---- needs ----------------------------------------------------------------------------------------------------


def switches_needed(space: ParamSpace, chosen: Ranges, known: Ranges | None = None) -> dict[str, float]:
    """Finds the switches that chosen parameters turn on: those that they need and the user does not mention.

    Args:
        space: The environment's parameters.
        chosen: Those that are drawn, set or varied.
        known: Those chosen before, which are not checked again; all others are nominal.

    Returns:
        name -> 1.0, to add to ``chosen``.

    Raises:
        RandomizationError: A parameter that leaves its nominal value would have no effect: a number that it needs is 0,
            or a switch is off on purpose.
    """
    on, idle = _unmet(space, chosen, known or {})
    if idle and idle[0].idle:
        raise RandomizationError(f"Parameter {idle[0].name!r} cannot vary here: {idle[0].idle}.")
    if idle:
        raise RandomizationError(
            f"Parameter {idle[0].name!r} has no effect here: it needs {needs_text(idle[0], space)}. Add that, or leave "
            f"{idle[0].name} out."
        )
    return on


def idle_parameters(space: ParamSpace, chosen: Ranges) -> list[str]:
    """The chosen parameters without effect, which ``switches_needed`` refuses."""
    return [param.name for param in _unmet(space, chosen, {})[1]]


def checked_values(
    given: Any, num_envs: int, space: ParamSpace, drawn: Randomization, pinned: Mapping[str, Array]
) -> dict[str, Array]:
    """Values set by hand, checked, with the switches that they turn on: name -> ``(num_envs,)``.

    A value given together with a parameter that it needs is accepted as is: a repeated draw may have its switch off.

    Args:
        given: name -> number or shape ``(num_envs,)``.
        num_envs: Number of sub-environments.
        space: The environment's parameters.
        drawn: What the environment draws.
        pinned: Values set before: name -> shape ``(num_envs,)``, nan where there is none.

    Raises:
        UnknownNameError: There is no such parameter.
        RandomizationError: A value is impossible, or a parameter would have no effect.
    """
    values = space.check_vector(given, num_envs)
    ends = {name: (float(array.min()), float(array.max())) for name, array in values.items()}
    alone = {name: pair for name, pair in ends.items() if not values.keys() & set(space[name].needs)}
    if not any(space[name].needs or space[name].idle for name in alone):
        return values
    # a switch that is pinned in some sub-environments is turned on in the others
    before = {n: a for n, a in pinned.items() if space[n].kind != "bool" or not np.isnan(a).any()}
    known = ranges_of(drawn, space) | {n: (float(np.nanmin(a)), float(np.nanmax(a))) for n, a in before.items()} | ends
    nowhere = np.full(num_envs, np.nan)
    on = {name: pinned.get(name, nowhere) for name in switches_needed(space, alone, known)}
    return {**values, **{name: np.where(np.isnan(pins), 1.0, pins) for name, pins in on.items()}}


def ranges_of(randomization: Randomization, space: ParamSpace) -> dict[str, tuple[float, float]]:
    """The lowest and the highest value of each parameter that a randomization draws."""
    return {name: rule.support(space[name].nominal) for name, rule in randomization.rules}


def in_effect(names: Collection[str], values: Mapping[str, float], space: Mapping[str, Param]) -> list[str]:
    """The names that have a value, without parameters that are idle since all that they need, or their switch, is 0."""
    needs = {name: {other: space[other].nominal for other in space[name].needs} for name in names if name in space}
    return [name for name in names if name in values and acts(needs.get(name, {}), values, 1)]


def acts(needs: Mapping[str, float], values: Mapping[str, Any], count: int) -> Mask:
    """Where a parameter has an effect: where one of the parameters that it needs is not 0, as a switch that is on.

    Args:
        needs: The parameters that it needs -> their nominal values; empty if it always has an effect.
        values: Values of parameters that may not be nominal, each of shape ``(count,)`` or one for all.
        count: Number of episodes or cells.

    Returns:
        Shape ``(count,)``.
    """
    found = np.full(count, not needs)
    for name, nominal in needs.items():
        found |= np.not_equal(values.get(name, nominal), 0)
    return found


def needs_text(param: Param, space: Mapping[str, Param]) -> str:
    """The needs of a parameter, in words; empty if there are none."""
    first, *others = param.needs or ("",)
    if first and space[first].kind == "bool":
        return f"{first} = 1"
    either = f"one of {len(others)} others" if len(others) > 2 else " or ".join(others)
    return first and f"{first}{' or ' if others else ''}{either} other than 0"


def _unmet(space: ParamSpace, chosen: Ranges, known: Ranges) -> tuple[dict[str, float], list[Param]]:
    """The switches to turn on, and the parameters that have no effect."""
    mentioned = {**known, **chosen}
    on: dict[str, float] = {}
    idle = []
    for name, ends in chosen.items():
        param = space[name]
        zero = [one for one in param.needs if mentioned.get(one, (space[one].nominal,) * 2) == (0.0, 0.0)]
        if not param.idle and (not param.needs or len(zero) < len(param.needs)):
            continue
        free = [o for o in param.needs if space[o].kind == "bool" and o not in mentioned and o not in space.constants]
        if free:
            on[free[0]] = 1.0
        elif ends != (param.nominal, param.nominal):
            idle.append(param)
    return on, idle
