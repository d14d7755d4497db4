"""The parameters that a user chooses to play policies under, instead of their training draws."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError
from gym_dr.evaluation.captions import exact_text
from gym_dr.randomization.distributions import Constant
from gym_dr.randomization.needs import ranges_of, switches_needed
from gym_dr.randomization.presets import CUSTOM, NONE, presets, resolve, with_rules
from gym_dr.randomization.rules import Rule, as_rule
from gym_dr.randomization.space import ParamSpace, nominal_may_be_outside
from gym_dr.randomization.spec import Randomization
from gym_dr.wording import either

MAX_NAMED = 4  # rules in a name


@dataclass(frozen=True, kw_only=True)
class ChosenParams:
    """Draws, and exact values that replace draws; other parameters are nominal."""

    space: ParamSpace  # of the environment
    name: str  # "wide, gravity=-3"
    randomization: Randomization
    params: Mapping[str, float]  # name -> value, with the switches that they turn on
    switched_on: tuple[str, ...]  # those switches

    def notes(self) -> list[str]:
        """Remarks for the user."""
        needing = {on: [name for name in self.params if on in self.space[name].needs] for on in self.switched_on}
        return [
            f"{on} is on, since {' and '.join(names)} {'has' if len(names) == 1 else 'have'} no effect without it."
            for on, names in needing.items()
        ]


def choose_params(
    env: str,
    space: ParamSpace | None,
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    params: Mapping[str, float] | None = None,
) -> ChosenParams | None:
    """Checks what a user chose.

    Args:
        env: Id of the environment, for messages.
        space: Its parameters; None if it has none.
        randomization: Draws, in any form that an environment takes.
        randomize: Rules for single parameters, which replace those of ``randomization``.
        params: name -> value, which replaces a draw.

    Returns:
        The choice; None if nothing was chosen.

    Raises:
        ConfigError: The environment has no parameters, or a file cannot be read.
        UnknownNameError: There is no such parameter or preset.
        RandomizationError: A range or a value is impossible.
    """
    if randomization is None and not randomize and not params:
        return None
    if space is None:
        listing = either("gymdr list envs", "gymnasium.pprint_registry()")
        raise ConfigError(f"{env} has no parameters to vary. {listing} shows environments that have some.")
    values = space.check(params or {})
    with nominal_may_be_outside():  # on purpose
        drawn = with_rules(randomization, randomize, space) if randomize else resolve(randomization, space)
    ranges = ranges_of(drawn, space)
    asked = {key: ends for key, ends in ranges.items() if key in (randomize or {})}
    on = switches_needed(space, asked | {key: (value, value) for key, value in values.items()}, ranges)
    exact = {**values, **on}
    parts = [] if randomization is None else [_name(randomization, space)]
    parts += [f"{name}={_rule_text(as_rule(rule))}" for name, rule in (randomize or {}).items()]
    parts += [f"{name}={exact_text(values[name])}" for name in space.in_order(values)]
    return ChosenParams(
        space=space,
        name=", ".join(parts),
        randomization=drawn,
        params=exact,
        switched_on=tuple(on),
    )


def _rule_text(rule: Rule) -> str:
    number = isinstance(rule.distribution, Constant) and rule.operation == "absolute"
    return exact_text(rule.distribution.support[0]) if number else repr(rule)


def _name(randomization: Any, space: ParamSpace) -> str:
    """The name of a preset or of a file; a mapping is named after its rules, or if they are many by a digest."""
    if isinstance(randomization, str) and randomization in presets(space.name):
        return randomization
    if isinstance(randomization, str | os.PathLike):
        path = Path(os.fspath(randomization))
        return path.name if path.stem in presets(space.name) else path.stem
    found = randomization if isinstance(randomization, Randomization) else Randomization.from_dict(randomization)
    if len(found) <= MAX_NAMED and found.correlation is None:
        return ", ".join(f"{name}={_rule_text(rule)}" for name, rule in found.items()) or NONE
    return f"{CUSTOM} {hashlib.sha256(json.dumps(found.to_dict(), sort_keys=True).encode()).hexdigest()[:8]}"
