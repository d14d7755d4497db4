"""Checks of equations when they are registered: names, spaces, arguments, and what ``derive`` and ``begin`` return."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import parse_env_id
from gymnasium.spaces import Box, Discrete

from gym_dr.arrays import Array
from gym_dr.envs.equations.equations import Equations
from gym_dr.envs.interface import Interface
from gym_dr.errors import EquationsError, RandomizationError, shortened
from gym_dr.randomization.distributions import Distribution, Normal, Uniform
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import Param, ParamSpace, nominal_may_be_outside
from gym_dr.randomization.spec import Randomization

_RANDOM = ("random", "numpy.random", "secrets")  # modules whose numbers do not come from an environment's own stream
_ARGUMENTS = {"derive": "p", "begin": "c, u", "step": "c, state, action", "observe": "c, state"}


def same(p: Any) -> Any:
    """The parameters themselves: what ``derive`` is if there is none."""
    return p


def check_id(env_id: str) -> None:
    """Checks the form of an id.

    Raises:
        EquationsError: It is malformed.
    """
    try:
        parse_env_id(env_id)
    except gym.error.Error as error:
        raise EquationsError(f"expected an id such as 'Glider-v0' or 'mine/Glider-v0': {error}") from None


def param_space(name: str, params: Any) -> ParamSpace:
    """What may vary.

    Raises:
        EquationsError: It is no sequence of parameters, or an empty one.
        RandomizationError: Two have the same name.
    """
    space = params if isinstance(params, ParamSpace) else None
    if space is None and isinstance(params, Sequence) and all(isinstance(param, Param) for param in params):
        space = ParamSpace(name, list(params))
    if not space:
        raise EquationsError(
            "params: expected at least one, such as [Param(name='mass', nominal=1.0, low=0.1, high=9.0)], got "
            f"{shortened(params)}."
        )
    return space


def names(what: str, given: Iterable[Any]) -> list[str]:
    """Names of numbers, which become fields of a named tuple.

    Raises:
        EquationsError: One of them cannot.
    """
    found = list(given)
    try:
        namedtuple("Fields", found)
    except ValueError as error:
        raise EquationsError(f"{what}: expected names that can follow a dot, as in p.mass: {error}.") from None
    return found


def random_numbers(what: str, given: Mapping[str, Any]) -> dict[str, Distribution]:
    """Distributions of random numbers.

    Args:
        what: Argument that they come from.
        given: name -> ``Uniform``, (low, high) or ``Normal``.

    Raises:
        EquationsError: Something else.
    """
    if not isinstance(given, Mapping):
        raise EquationsError(f"{what}: expected names with their distributions, got {shortened(given)}.")
    found: dict[str, Distribution] = {}
    for name in names(what, given):
        value = given[name]
        try:
            made = Uniform(*value) if isinstance(value, tuple) and len(value) == 2 else value
        except (RandomizationError, TypeError) as error:
            raise EquationsError(f"{what} {name!r}: {error}") from None
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
        EquationsError: There is none called "default".
        UnknownNameError: A preset names a parameter that there is not.
        RandomizationError: A range is impossible.
    """
    if not isinstance(given, Mapping) or "default" not in given:
        example = next(iter(space))
        raise EquationsError(
            "presets: expected one called 'default', what environments draw unless told otherwise, such as "
            f"{{'default': {{{example!r}: (low, high)}}}}, or {{'default': {{}}}} for nothing; got {shortened(given)}."
        )
    own = {
        name: value if isinstance(value, Randomization) else Randomization.from_dict(value)
        for name, value in given.items()
    }
    for randomization in own.values():
        with nominal_may_be_outside():
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
        _check_function(name, getattr(equations, name), expected)
    physics = called(equations.derive, "derive", equations.params(*nominal))
    check_numbers("derive", equations.derive, physics)
    begun = called(equations.begin, "begin", physics, _tuple_of("Start", equations.start))
    check_numbers("begin", equations.begin, begun)
    unknown = [name for name in equations.pushed if name not in begun._fields]
    if unknown:
        raise EquationsError(f"pushed: expected fields of the state ({', '.join(begun._fields)}), got {unknown[0]!r}.")
    return replace(equations, physics=type(physics), state=type(begun))


def _tuple_of(name: str, drawn: Mapping[str, Distribution]) -> Any:
    """The middles of distributions, as equations get them."""
    return made_of(name, drawn, (distribution.mean for distribution in drawn.values()))


def made_of(name: str, fields: Iterable[str], numbers: Iterable[float]) -> Any:
    """A named tuple of numbers."""
    return cast(Any, namedtuple)(name, list(fields))(*numbers)


def _check_spaces(equations: Equations) -> None:
    seen, actions = equations.observation_space, equations.action_space
    if not (isinstance(seen, Box) and len(seen.shape) == 1 and seen.shape[0] and seen.dtype.kind == "f"):
        raise EquationsError(f"observation_space: expected a Box of one row of floats, got {seen}.")
    numbers = isinstance(actions, Box) and len(actions.shape) == 1 and actions.shape[0] and actions.dtype.kind == "f"
    if not (numbers or isinstance(actions, Discrete)):
        raise EquationsError(f"action_space: expected a Discrete or a Box of one row of floats, got {actions}.")


def _check_function(name: str, function: Any, arguments: str) -> None:
    """Refuses what is no plain function, takes other arguments, calls itself, or draws random numbers of its own."""
    if not isinstance(function, FunctionType):
        raise EquationsError(f"expected a function {name}({arguments}), made with def or lambda, got {function!r}.")
    count = len(arguments.split(","))
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        more = ", where w is its process noise," if arguments.endswith("w") else ""
        raise EquationsError(
            f"expected {name}({arguments}){more} at {place_of(function)}, got {name}{inspect.signature(function)}."
        ) from None
    _check_called(name, function, ())


def _check_called(name: str, function: FunctionType, callers: tuple[FunctionType, ...]) -> None:
    if function in callers:
        raise EquationsError(f"{name}: {function.__name__} at {place_of(function)} calls itself. Write a loop.")
    words = function.__code__.co_names
    for word in words:
        value = function.__globals__.get(word)
        if (value is np and "random" in words) or _module_of(value).startswith(_RANDOM):
            raise EquationsError(
                f"{name}: {function.__name__} at {place_of(function)} uses {word}, whose random numbers no seed of an "
                "environment would repeat. Declare them: start={'x': Normal(0, 1)} for begin(c, u), "
                "process_noise={'gust': Normal(0, 1)} for step(c, state, action, w)."
            )
        if isinstance(value, FunctionType):
            _check_called(name, value, (*callers, function))


def _module_of(value: Any) -> str:
    """Name of a module, or of that of a function or of the generator that it belongs to."""
    if isinstance(value, ModuleType):
        return value.__name__
    owner = getattr(value, "__self__", None)
    return str(getattr(value, "__module__", None) or type(owner).__module__)


def check_appearance(equations: Equations, render: Any, interface: Any) -> None:
    """Checks how an environment looks to people.

    Raises:
        EquationsError: ``render`` is no function, or ``interface`` does not describe the spaces.
    """
    if render is not None and not callable(render):
        raise EquationsError(f"expected a function as render, got {render!r}.")
    if interface is None:
        return
    if not isinstance(interface, Interface):
        raise EquationsError(f"expected an Interface as interface, got {shortened(interface)}.")
    actions = equations.action_space
    for what, quantities, size in (
        ("observation", interface.observation, equations.observation_space.shape[0]),
        ("actions", interface.actions, int(actions.n) if isinstance(actions, Discrete) else actions.shape[0]),
    ):
        found = sum(quantity.size for quantity in quantities)
        if found != size:
            raise EquationsError(f"interface: expected quantities for {size} {what}, as in the space, got {found}.")


def called(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    """What a function returns.

    Raises:
        EquationsError: It raised an error; the message says where.
    """
    try:
        return function(*arguments)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if len(traceback.extract_tb(error.__traceback__)) == 1:  # it was not even called
            where = place_of(function)
        else:
            where = line_of(frame.filename, frame.lineno or 0)
        values = ", ".join(shortened(argument) for argument in arguments)
        raise EquationsError(
            f"{name} failed with {type(error).__name__}: {error}, at {where}, called with {values}."
        ) from error


def check_numbers(name: str, function: Any, found: Any, fields: Sequence[str] | None = None) -> Array:
    """The numbers of a named tuple.

    Args:
        name: Of the function.
        function: What returned it.
        found: What should be a named tuple.
        fields: The names that it should have; None for any.

    Raises:
        EquationsError: It is something else, or one of them is no number.
    """
    own = getattr(found, "_fields", None)
    if own is None or (fields is not None and own != fields):
        expected = f"a named tuple of {', '.join(fields)}" if fields is not None else "a named tuple of numbers"
        raise EquationsError(f"expected {name} at {place_of(function)} to return {expected}, got {shortened(found)}.")
    for field, value in zip(own, found, strict=True):
        if not isinstance(value, int | float | np.number | np.bool_):
            raise EquationsError(
                f"expected {name} at {place_of(function)} to return numbers, got {field} = {shortened(value)}."
            )
    return np.array(found, np.float64)


def place_of(function: Any) -> str:
    """File and line of a function."""
    code = getattr(function, "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else repr(function)


def line_of(file: str, number: int) -> str:
    """File, line and its text."""
    text = linecache.getline(file, number).strip()
    return f"{Path(file).name}:{number}" + (f" `{text}`" if text else "")
