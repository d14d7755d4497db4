"""Checks of the functions of equations, and calls of them in Python whose errors name the user's lines."""

from __future__ import annotations

import dis
import inspect
import linecache
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.compiled.named import named_by, plain
from gym_dr.envs.family import takes_arguments
from gym_dr.errors import EquationsError, shortened

_RANDOM = ("random", "_random", "numpy.random", "secrets")  # modules whose numbers no seed of an environment repeats


def check_function(name: str, function: Any, arguments: str) -> None:
    """Refuses what is no plain function, or what compiled code cannot do in the same way.

    Args:
        name: What it is: "step".
        function: What a user gave.
        arguments: That it must take: "c, state, action".

    Raises:
        EquationsError: It takes other arguments; or it, or a function that it calls, calls itself, raises errors,
            returns nothing on some path, or draws random numbers of its own.
    """
    if not isinstance(function, FunctionType):
        raise EquationsError(f"expected a function {name}({arguments}), made with def or lambda, got {function!r}.")
    if not takes_arguments(function, len(arguments.split(","))):
        more = ", where w is its process noise," if arguments.endswith("w") else ""
        raise EquationsError(
            f"expected {name}({arguments}){more} at {place_of(function)}, got {name}{inspect.signature(function)}."
        )
    _check_called(name, function, (), set())


def _check_called(name: str, function: FunctionType, callers: tuple[Any, ...], checked: set[Any]) -> None:
    """Checks a function and those that it calls, each once."""
    if function in callers:
        raise EquationsError(f"{name}: {function.__name__} at {place_of(function)} calls itself. Write a loop.")
    if function in checked:
        return
    checked.add(function)
    _check_ends(name, function)
    for path, value in named_by(function):
        module = _module_of(value)
        if any(module == known or module.startswith(f"{known}.") for known in _RANDOM):
            raise EquationsError(
                f"{name}: {function.__name__} at {place_of(function)} uses {path}, whose random numbers no seed of an "
                "environment would repeat. Declare them: start={'x': Normal(0, 1)} for begin(c, u), "
                "process_noise={'gust': Normal(0, 1)} for step(c, state, action, w)."
            )
        if isinstance(plain(value), FunctionType) and module.partition(".")[0] not in ("numpy", "numba", "math"):
            _check_called(name, plain(value), (*callers, function), checked)


def words_of(function: FunctionType) -> set[str]:
    """Names of attributes and variables, and texts, in a function and in those that it calls."""
    words: set[str] = set()
    checked: list[FunctionType] = [function]
    for each in checked:
        codes = [each.__code__]
        for code in codes:
            words.update(code.co_names, code.co_varnames, (text for text in code.co_consts if isinstance(text, str)))
            codes += [inside for inside in code.co_consts if isinstance(inside, CodeType)]
        values = [plain(value) for _, value in named_by(each)]
        checked += [value for value in values if isinstance(value, FunctionType) and value not in checked]
    return words


def _check_ends(name: str, function: FunctionType) -> None:
    """Refuses functions that raise errors, which compiled rollouts would not pass on, or return None."""
    last, instructions = None, list(dis.get_instructions(function))
    if any(instruction.opname == "BEFORE_WITH" for instruction in instructions):
        return  # which numba does not compile at all
    for instruction in instructions:
        line = instruction.positions.lineno if instruction.positions else None
        where = f"{name}: {function.__name__} at {line_of(function.__code__.co_filename, line or 0)}"
        if instruction.opname in ("RAISE_VARARGS", "LOAD_ASSERTION_ERROR"):
            raise EquationsError(
                f"{where} raises an error, which compiled code cannot report. End the episode instead."
            )
        loaded = last is not None and last.opname == "LOAD_CONST" and last.argval is None
        if (instruction.opname == "RETURN_CONST" and instruction.argval is None) or (
            instruction.opname == "RETURN_VALUE" and loaded
        ):
            raise EquationsError(f"{where} ends without a value on some path. Return one on every path.")
        last = instruction


def _module_of(value: Any) -> str:
    """Name of a module, or of that of a function or of the generator that it belongs to."""
    if isinstance(value, ModuleType):
        return value.__name__
    owner = getattr(value, "__self__", None)
    return str(getattr(value, "__module__", None) or type(owner).__module__)


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
    if not own or (fields is not None and own != fields):
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
