"""Checks of equations when they are registered: names, spaces, arguments, and what ``derive`` and ``begin`` return."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Box, Discrete

from gym_dr.envs.equations.equations import Equations
from gym_dr.envs.equations.functions import called, check_function, check_numbers
from gym_dr.envs.family import read_presets
from gym_dr.envs.interface import NAME, Interface
from gym_dr.envs.vector_arguments import OF_EVERY_ENV
from gym_dr.errors import EquationsError, RandomizationError, located, shortened
from gym_dr.options import is_number
from gym_dr.randomization.distributions import Distribution, Normal, Uniform
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import DISTURBANCE_NAMES, Param, ParamSpace
from gym_dr.randomization.spec import Randomization

_FLOATS = ("float32", "float64")
# keywords of every environment, of vector environments, and of what makes them
_TAKEN = frozenset(
    {*OF_EVERY_ENV, "num_envs", "num_threads", "autoreset_mode", "max_episode_steps", "equations"}
    | {"vectorization_mode", "vector_kwargs", "wrappers", "disable_env_checker"}
)
_ARGUMENTS = {"derive": "p", "begin": "c, u", "step": "c, state, action", "observe": "c, state"}


def same(p: Any) -> Any:
    """The parameters themselves: the default ``derive``."""
    return p


def param_space(name: str, params: Any) -> ParamSpace:
    """The parameter space of equations.

    Raises:
        EquationsError: It is not a sequence of at least one parameter.
        RandomizationError: Two have the same name, or one has the name of a disturbance.
    """
    given = list(params.values()) if isinstance(params, ParamSpace) else params
    space = None
    if isinstance(given, Sequence) and all(isinstance(param, Param) for param in given):
        space = ParamSpace(name, list(given))
        for taken in DISTURBANCE_NAMES.intersection(space):
            raise RandomizationError(
                f"Parameter {taken!r}: this name is reserved for a disturbance. Choose another name."
            )
    if not space:
        raise EquationsError(
            "params: expected at least one, such as [Param(name='mass', nominal=1.0, low=0.1, high=9.0)], got "
            f"{shortened(params)}."
        )
    return space


def names(what: str, given: Iterable[Any]) -> list[str]:
    """Names of numbers, which become fields of a named tuple.

    Raises:
        EquationsError: A name cannot be a field.
    """
    found = list(given)
    try:
        namedtuple("Fields", found)
    except (ValueError, TypeError) as error:
        raise EquationsError(f"{what}: expected names that can follow a dot, as in p.mass: {error}.") from None
    return found


def random_numbers(what: str, given: Mapping[str, Any]) -> dict[str, Distribution]:
    """Distributions of random numbers.

    Args:
        what: The argument that they come from.
        given: name -> ``Uniform``, (low, high) or ``Normal``.

    Raises:
        EquationsError: Something else.
    """
    found: dict[str, Distribution] = {}
    for name in names(what, given):
        value = given[name]
        with located(f"{what} {name!r}"):
            made = Uniform(*value) if isinstance(value, tuple) and len(value) == 2 else value
        unbounded = isinstance(made, Normal) and made == Normal(made.mu, made.sigma)
        if not (unbounded or type(made) is Uniform):
            raise EquationsError(
                f"{what} {name!r}: expected Uniform(low, high), (low, high) or Normal(mu, sigma), got "
                f"{shortened(value)}. Compute other distributions from these."
            )
        found[name] = made
    return found


def checked_presets(given: Mapping[str, Any], space: ParamSpace) -> dict[str, Randomization]:
    """Presets of a space, by name.

    Raises:
        EquationsError: None is called "default".
        UnknownNameError: A preset names an unknown parameter.
        RandomizationError: A preset is not a mapping, or a range is impossible.
    """
    if "default" not in given:
        example = next(iter(space))
        raise EquationsError(
            "presets: expected one called 'default', which is used if no other is given, such as "
            f"{{'default': {{{example!r}: (low, high)}}}}, or {{'default': {{}}}} for nothing; got {shortened(given)}."
        )
    own = read_presets(given)
    for name, randomization in own.items():
        with located(f"preset {name!r}"):
            resolve(randomization, space)
    return own


def checked(equations: Equations, nominal: Sequence[float]) -> Equations:
    """Equations with the named tuples of their physics and state, which ``derive`` and ``begin`` return.

    Args:
        equations: What a user gave.
        nominal: Their parameters.

    Raises:
        EquationsError: A space or a function cannot be used.
    """
    _check_spaces(equations)
    arguments = {**_ARGUMENTS, **({"step": "c, state, action, w"} if equations.process_noise else {})}
    for name, expected in arguments.items():
        check_function(name, getattr(equations, name), expected)
    physics = called(equations.derive, "derive", equations.params(*nominal))
    check_numbers("derive", equations.derive, physics)
    middles = (float(one.ppf(0.5)) for one in equations.start.values())
    begun = called(equations.begin, "begin", physics, made_of("Start", equations.start, middles))
    check_numbers("begin", equations.begin, begun)
    unknown = [name for name in names("pushed", equations.pushed) if name not in begun._fields]
    if unknown:
        raise EquationsError(f"pushed: expected fields of the state ({', '.join(begun._fields)}), got {unknown[0]!r}.")
    return replace(
        equations, physics=type(physics), state=type(begun), rewarded=not _steps_alone(equations, physics, begun)
    )


def _steps_alone(equations: Equations, physics: Any, state: Any) -> bool:
    """Whether ``step`` returns the next state alone."""
    space, noise = equations.action_space, equations.process_noise
    numbers = [0.0] if isinstance(space, Discrete) else np.clip(0.0, space.low, space.high).tolist()
    action = numbers[0] if len(numbers) == 1 else tuple(numbers)
    middles = [made_of("ProcessNoise", noise, (float(one.ppf(0.5)) for one in noise.values()))] if noise else []
    try:
        return type(equations.step(physics, state, action, *middles)) is type(state)
    except Exception:  # the trial of an environment tells it
        return False


def made_of(name: str, fields: Iterable[str], numbers: Iterable[float]) -> Any:
    """A named tuple of numbers."""
    return cast(Any, namedtuple)(name, list(fields))(*numbers)


def _check_spaces(equations: Equations) -> None:
    seen, actions = equations.observation_space, equations.action_space
    if not (isinstance(seen, Box) and len(seen.shape) == 1 and seen.shape[0] and seen.dtype in _FLOATS):
        raise EquationsError(f"observation_space: expected a Box of one row of floats (32 or 64 bits), got {seen}.")
    numbers = isinstance(actions, Box) and len(actions.shape) == 1 and actions.shape[0] and actions.dtype in _FLOATS
    if not (numbers or isinstance(actions, Discrete)):
        raise EquationsError(
            f"action_space: expected a Discrete or a Box of one row of floats (32 or 64 bits), got {actions}."
        )


def check_keywords_of(space: ParamSpace, keywords: Any, options: Any) -> None:
    """Checks an environment's own keywords.

    Raises:
        EquationsError: A name is taken.
        UnknownNameError: A keyword is not a parameter.
    """
    for name in keywords:
        space[name]
    for name in _TAKEN.intersection([*keywords, *options]):
        raise EquationsError(f"keywords, options: expected names that environments do not use already, got {name!r}.")


def check_time_step(time_step: Any, space: ParamSpace) -> None:
    """Checks the duration of a step.

    Raises:
        EquationsError: It is neither a duration nor the name of a parameter.
    """
    if not (time_step is None or (is_number(time_step) and time_step > 0) or time_step in [*space]):
        raise EquationsError(
            f"time_step: expected None, a number above 0 or one of the parameters ({', '.join(space)}), got "
            f"{shortened(time_step)}."
        )


def check_interface(equations: Equations, interface: Interface | None) -> None:
    """Checks that ``interface`` describes the spaces.

    Raises:
        EquationsError: The sizes or names do not fit.
    """
    if interface is None:
        return
    actions = equations.action_space
    for what, quantities, size in (
        ("observation", interface.observation, equations.observation_space.shape[0]),
        ("actions", interface.actions, int(actions.n) if isinstance(actions, Discrete) else actions.shape[0]),
    ):
        found = sum(quantity.size for quantity in quantities)
        if found != size:
            raise EquationsError(f"interface: expected quantities for {size} {what}, as in the space, got {found}.")
    named = [quantity.name for quantity in interface.observation if quantity.name]
    if len(set(named)) < len(named) or not all(re.fullmatch(NAME, str(name)) for name in named):
        raise EquationsError(
            "interface: expected different names of observed quantities, of letters, digits, _ and ., not beginning "
            f"with a digit, got {', '.join(map(repr, named))}."
        )
