"""The prior of a fit: the parameters to find with their distributions, and the known values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError
from gym_dr.fitting.sensors import DELAY
from gym_dr.randomization.distributions import Bernoulli, Choice, Constant, Distribution, Integer
from gym_dr.randomization.presets import with_rules
from gym_dr.randomization.sampler import values_at
from gym_dr.randomization.space import ParamSpace, ranges_of, switches_needed
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.disturbances import DISTURBANCES
from gym_dr.wrappers.disturbed_space import DisturbedSpace

DELAYS = ("action_delay", "obs_delay")
NOISE = "obs_noise"
_UNIFORMS = (np.arange(4096) + 0.5) / 4096
_TRIED = 50  # combinations of delays, at most
_EDGE = 1e-9  # uniforms stay this far inside (0, 1)


@dataclass(frozen=True, kw_only=True)
class Delay:
    """A delay to find, of all actions, all observations or a sensor."""

    name: str  # one of DELAYS, or "obs_delay:theta"
    steps: tuple[int, ...]  # that are possible
    weights: tuple[float, ...]  # their probabilities


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """The prior; a point of it is ``u``, a uniform number in (0, 1) for each parameter to find."""

    space: ParamSpace  # of the environment
    randomization: Randomization  # of the parameters to find
    known: Mapping[str, float]  # values of other parameters that are not nominal
    delays: tuple[Delay, ...] = ()
    noise: Distribution | None = None  # of ``obs_noise``; None if it is not to be found

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters to find."""
        return tuple(self.randomization)

    def value(self, name: str) -> float:
        """The value of a parameter that is not to be found."""
        return self.known.get(name, self.space[name].nominal)

    def values(self, u: Array) -> dict[str, Array]:
        """Values of the parameters to find at points ``(count, parameters)``: name -> ``(count,)``."""
        inside = np.clip(u, _EDGE, 1.0 - _EDGE)
        found = values_at(self.randomization, self.space, dict(zip(self.names, inside.T, strict=True)))
        return {name: found[name] for name in self.names}

    def alone(self, name: str, u: Array) -> Array:
        """Values of one parameter at probabilities ``(count,)``, without its correlation with others."""
        single = Randomization({name: self.randomization[name]})
        return values_at(single, self.space, {name: np.clip(u, _EDGE, 1.0 - _EDGE)})[name]

    def params(self, u: Array) -> dict[str, float]:
        """All parameters that are not nominal, at a point ``(parameters,)``."""
        return {**self.known, **{name: float(values[0]) for name, values in self.values(u[None]).items()}}


def make_prior(space: ParamSpace, randomize: Any, randomization: Any, known: Mapping[str, float]) -> Prior:
    """Makes a prior.

    Args:
        space: The environment's parameters.
        randomize: name -> prior, of parameters and of disturbances that a log can show; None for none.
        randomization: A whole prior in any form that an environment takes, whose rules ``randomize`` replaces; None for
            none.
        known: name -> known value that is not nominal.

    Raises:
        RandomizationError: There is nothing to find, a parameter is not continuous or is also known, or a disturbance
            cannot be found.
        UnknownNameError: There is no such parameter.
    """
    rules = with_rules(randomization, randomize or {}, DisturbedSpace(space, DISTURBANCES.values()))
    disturbances = {name: rules[name] for name in rules if name not in space or name.startswith(f"{DELAY}:")}
    own = rules.without(disturbances)
    if both := [name for name in randomize or () if name in known]:
        raise RandomizationError(
            f"{', '.join(both)}: expected in `randomize` or in `params`, got both. Leave a known value out of "
            "`randomize`."
        )
    if given := [name for name in known if name in DISTURBANCES and (name not in space or name.startswith(DELAY))]:
        raise RandomizationError(
            f"{given[0]}: expected parameters of the environment in `params`. Give a delay or noise that you know as "
            f"`randomize={ {given[0]: known[given[0]]} }`."
        )
    checked = space.check(known)
    constants = {name: rule for name, rule in own.rules if isinstance(rule.distribution, Constant)}
    for name, rule in constants.items():
        checked.setdefault(name, rule.support(space[name].nominal)[0])
    wanted = own.without(set(checked))
    for name, rule in wanted.rules:
        if isinstance(rule.distribution, Bernoulli | Choice | Integer) or space[name].kind != "float":
            raise RandomizationError(
                f"Parameter {name!r}: expected a range of numbers to find it in, got {rule!r}. A fit finds "
                f"numbers, not choices: set it with `params`."
            )
    chosen = ranges_of(wanted, space) | {name: (value, value) for name, value in checked.items()}
    checked |= switches_needed(space, chosen)
    delays = _delays(disturbances)
    noise = disturbances[NOISE].distribution if NOISE in disturbances else None
    if not wanted and not delays and noise is None:
        raise RandomizationError(
            "Expected parameters to find, each with the range in which it may be, such as "
            "`randomize={'gravity': 'uniform:-12:-6'}`."
        )
    return Prior(
        space=space,
        randomization=wanted,
        known=checked,
        delays=delays,
        noise=noise,
    )


def _delays(disturbances: Mapping[str, Any]) -> tuple[Delay, ...]:
    """The delays to find, their possible values and the probabilities of these."""
    asked = [name for name in disturbances if name in DELAYS or name.startswith(f"{DELAY}:")]
    unknown = [name for name in disturbances if name not in (*asked, NOISE)]
    if unknown:
        raise RandomizationError(
            f"{unknown[0]}: expected parameters of the environment, {', '.join(DELAYS)} or {NOISE}. A log does not "
            "show other disturbances: they look like process noise, which a fit estimates too."
        )
    if all(name in asked for name in DELAYS):
        raise RandomizationError(f"Expected {DELAYS[0]} or {DELAYS[1]}, got both: in a log they look the same.")
    found: list[Delay] = []
    for name in asked:
        values, counts = np.unique(disturbances[name].distribution.ppf(_UNIFORMS), return_counts=True)
        combined = len(values) * math.prod(len(one.steps) for one in found)
        if (values != np.floor(values)).any() or combined > _TRIED:
            raise RandomizationError(
                f"{name}: expected whole numbers, such as integer:0:3, and at most {_TRIED} combinations with other "
                f"delays, got {disturbances[name]!r}."
            )
        weights = (counts / counts.sum()).tolist()
        found.append(Delay(name=name, steps=tuple(map(int, values)), weights=tuple(weights)))
    return tuple(found)
