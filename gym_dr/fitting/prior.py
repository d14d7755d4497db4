"""The prior of a fit: the parameters to find with their distributions, and the known values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import RandomizationError
from gym_dr.randomization.distributions import Bernoulli, Choice, Constant, Distribution, Integer
from gym_dr.randomization.draws import values_at
from gym_dr.randomization.presets import with_rules
from gym_dr.randomization.space import ParamSpace, ranges_of, switches_needed
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.disturbances import DISTURBANCES
from gym_dr.wrappers.disturbed_space import DisturbedSpace

DELAYS = ("action_delay", "obs_delay")
NOISE = "obs_noise"
_EDGE = 1e-9  # uniforms stay this far inside (0, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """The prior; a point of it is ``u``, a uniform number in (0, 1) for each parameter to find."""

    space: ParamSpace  # of the environment
    randomization: Randomization  # of the parameters to find
    known: Mapping[str, float]  # values of other parameters that are not nominal
    delay: str = ""  # one of DELAYS; empty for none
    delays: tuple[int, ...] = (0,)  # steps that are possible
    delay_weights: tuple[float, ...] = (1.0,)  # their probabilities
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
    disturbances = {name: rules[name] for name in rules if name not in space}
    own = rules.without(disturbances)
    if both := [name for name in randomize or () if name in known]:
        raise RandomizationError(
            f"{', '.join(both)}: expected in `randomize` or in `params`, got both. Leave a known value out of "
            "`randomize`."
        )
    if given := [name for name in known if name in DISTURBANCES and name not in space]:
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
    delay, delays, weights = _delays(disturbances)
    noise = disturbances[NOISE].distribution if NOISE in disturbances else None
    if not wanted and not delay and noise is None:
        raise RandomizationError(
            "Expected parameters to find, each with the range in which it may be, such as "
            "`randomize={'gravity': 'uniform:-12:-6'}`."
        )
    return Prior(
        space=space,
        randomization=wanted,
        known=checked,
        delay=delay,
        delays=delays,
        delay_weights=weights,
        noise=noise,
    )


def with_whole_delays(prior: Prior, hold: int) -> Prior:
    """The same prior with only the delays that a log can show, in steps of the environment.

    Args:
        prior: With all delays.
        hold: Steps of the environment for which a logged action acts; 0 if they differ.

    Raises:
        RandomizationError: There are none.
    """
    if not hold:
        if any(prior.delays):
            raise RandomizationError(
                f"{prior.delay}: expected a log at a fixed rate to find a delay in, got intervals of different lengths."
            )
        return prior
    kept = [k for k, delay in enumerate(prior.delays) if delay % hold == 0]
    if not kept:
        raise RandomizationError(
            f"{prior.delay}: expected multiples of {hold}, such as {hold}, got {', '.join(map(str, prior.delays))}. "
            f"Each logged action acts for {hold} steps of the environment, and delays are in such steps."
        )
    weights = np.array(prior.delay_weights)[kept]
    return replace(
        prior,
        delays=tuple(prior.delays[k] for k in kept),
        delay_weights=tuple((weights / weights.sum()).tolist()),
    )


def _delays(disturbances: Mapping[str, Any]) -> tuple[str, tuple[int, ...], tuple[float, ...]]:
    """The delay to find, its possible values and their probabilities."""
    unknown = [name for name in disturbances if name not in (*DELAYS, NOISE)]
    if unknown:
        raise RandomizationError(
            f"{unknown[0]}: expected parameters of the environment, {', '.join(DELAYS)} or {NOISE}. A log does not "
            "show other disturbances: they look like process noise, which a fit estimates too."
        )
    asked = [name for name in DELAYS if name in disturbances]
    if len(asked) > 1:
        raise RandomizationError(f"Expected {DELAYS[0]} or {DELAYS[1]}, got both: in a log they look the same.")
    if not asked:
        return "", (0,), (1.0,)
    rule = disturbances[asked[0]]
    uniforms = (np.arange(4096) + 0.5) / 4096
    values, counts = np.unique(rule.distribution.ppf(uniforms), return_counts=True)
    if len(values) > 50 or (values != np.floor(values)).any():
        raise RandomizationError(f"{asked[0]}: expected at most 50 whole numbers, such as integer:0:3, got {rule!r}.")
    return asked[0], tuple(int(v) for v in values), tuple((counts / counts.sum()).tolist())
