"""What parameters need to have an effect: a switch that is on, or another number that is not 0.

Decided once, when parameters are chosen: drawn, set by hand, or put on the axes of a grid. A switch that nobody
mentions is turned on with the parameter that needs it, as if the user had written it. Anything else that is missing is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError

if TYPE_CHECKING:
    from gym_dr.randomization.space import Param, ParamSpace
    from gym_dr.randomization.spec import Randomization

Ranges: TypeAlias = Mapping[str, tuple[float, float]]  # parameter -> lowest and highest value


def switches_needed(space: ParamSpace, chosen: Ranges, known: Ranges | None = None) -> dict[str, float]:
    """Finds the switches that chosen parameters turn on: those that they need and that nobody mentions.

    Args:
        space: The environment's parameters.
        chosen: Those that are drawn, set or varied.
        known: Those that were chosen before, which are not checked again; others are nominal.

    Returns:
        name -> 1.0; choose these too.

    Raises:
        RandomizationError: A parameter would have no effect, since a number that it needs is 0, or a switch is off on
            purpose. One that stays at its nominal value need not have any.
    """
    on, idle = _unmet(space, chosen, known or {})
    if idle:
        raise RandomizationError(
            f"Parameter {idle[0].name!r} has no effect here: it needs {needs_text(idle[0], space)}. Add that, or leave "
            f"{idle[0].name} out."
        )
    return on


def idle_parameters(space: ParamSpace, chosen: Ranges) -> list[str]:
    """The chosen parameters that have no effect, and that ``switches_needed`` refuses."""
    return [param.name for param in _unmet(space, chosen, {})[1]]


def with_switches(
    values: Mapping[str, npt.NDArray[Any]], space: ParamSpace, drawn: Randomization, pinned: Mapping[str, Array]
) -> dict[str, Array]:
    """Values set by hand, with the switches that they turn on.

    Whatever is given together with what it needs stays as it is: a draw that is repeated may have its switch off.

    Args:
        values: name -> shape ``(num_envs,)``, checked.
        space: The environment's parameters.
        drawn: What the environment draws.
        pinned: Values set before: name -> shape ``(num_envs,)``, nan where there is none.

    Raises:
        RandomizationError: A parameter would have no effect.
    """
    ends = {name: (float(array.min()), float(array.max())) for name, array in values.items()}
    alone = {name: pair for name, pair in ends.items() if not values.keys() & set(space[name].needs)}
    if not any(space[name].needs for name in alone):
        return dict(values)
    # a switch that is pinned in some sub-environments is turned on in the others
    before = {n: a for n, a in pinned.items() if space[n].kind != "bool" or not np.isnan(a).any()}
    known = ranges_of(drawn, space) | {n: (float(np.nanmin(a)), float(np.nanmax(a))) for n, a in before.items()} | ends
    nowhere = np.full(len(next(iter(values.values()))), np.nan)
    on = {name: pinned.get(name, nowhere) for name in switches_needed(space, alone, known)}
    return {**values, **{name: np.where(np.isnan(pins), 1.0, pins) for name, pins in on.items()}}


def ranges_of(randomization: Randomization, space: ParamSpace) -> dict[str, tuple[float, float]]:
    """The lowest and the highest value of each parameter that a randomization draws."""
    return {name: rule.support(space[name].nominal) for name, rule in randomization.rules}


def switch_notes(randomization: Randomization, space: ParamSpace) -> list[str]:
    """Says which switches are on in every episode, and for which of the drawn parameters."""
    ranges = ranges_of(randomization, space)
    needing: dict[str, list[str]] = {}
    for name in space.in_order(ranges):
        for other in space[name].needs:
            if space[other].kind == "bool" and ranges.get(other) == (1.0, 1.0):
                needing.setdefault(other, []).append(name)
    return [f"{on} is on: without it, {' and '.join(names)} would have no effect." for on, names in needing.items()]


def needs_text(param: Param, space: Mapping[str, Param]) -> str:
    """What a parameter needs, in words; empty if it needs nothing."""
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
        if not param.needs or any(_may_differ_from_0(space[other], mentioned) for other in param.needs):
            continue
        free = [o for o in param.needs if space[o].kind == "bool" and o not in mentioned and o not in space.constants]
        if free:
            on[free[0]] = 1.0
        elif ends != (param.nominal, param.nominal):
            idle.append(param)
    return on, idle


def _may_differ_from_0(param: Param, ranges: Ranges) -> bool:
    return ranges.get(param.name, (param.nominal, param.nominal)) != (0.0, 0.0)
