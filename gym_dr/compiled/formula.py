"""Compiles plain functions of numbers that Python calls too, so that a formula stands once for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from gym_dr.compiled.options import INLINE


def compile_formula(function: Any, replaced: Mapping[Any, Any] = {}) -> Any:
    """A function for kernels, with the functions that it calls by name.

    Args:
        function: Takes and returns numbers, tuples of them or arrays. A class, of a named tuple, stays as is.
        replaced: Functions and modules that it names -> what it shall name instead, compiled.
    """
    if not isinstance(function, FunctionType):
        return function
    known = function.__globals__
    named = {name: _seen_by_kernels(known[name], replaced) for name in names_in(function.__code__) if name in known}
    cells = tuple(CellType(_seen_by_kernels(cell.cell_contents, replaced)) for cell in function.__closure__ or ())
    return njit(**INLINE)(
        FunctionType(function.__code__, {**known, **named}, function.__name__, function.__defaults__, cells)
    )


def _seen_by_kernels(value: Any, replaced: Mapping[Any, Any]) -> Any:
    """What a function names, as compiled code shall see it."""
    if isinstance(value, FunctionType | BuiltinFunctionType | ModuleType) and value in replaced:
        return replaced[value]
    return compile_formula(value, replaced)


def names_in(code: CodeType) -> Iterator[str]:
    """Names of globals and attributes in a function, and in those that are defined inside of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def described(value: Any) -> str:
    """A text that is another one if the machine code that is compiled from a value may differ.

    Args:
        value: A function, with everything that it names, or what functions name: numbers, tuples, arrays, classes of
            named tuples, modules.
    """
    return "\n".join(_described(value, set()))


def _described(value: Any, seen: set[int]) -> Iterator[str]:
    value = value.py_func if isinstance(value, Dispatcher) else value
    if isinstance(value, FunctionType | CodeType):
        if id(value) in seen:  # it calls itself, or two call it
            yield f"again {value.__name__ if isinstance(value, FunctionType) else value.co_name}"
            return
        seen.add(id(value))
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _described((value.__code__, value.__defaults__, *cells), seen)
        names = dict.fromkeys(names_in(value.__code__))
        for name in names:
            known = value.__globals__.get(name)
            if known is not None:
                yield name
                yield from _described(known, seen)
            if isinstance(known, ModuleType) and known.__name__.partition(".")[0] not in ("math", "numpy", "numba"):
                for attribute in names:  # of whatever module: too much does no harm
                    yield from _described(vars(known).get(attribute), seen)
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars} {value.co_argcount}"
        for constant in value.co_consts:
            yield from _described(constant, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, type):
        members = [(member.name, member.value) for member in value] if issubclass(value, Enum) else ()
        yield f"{value.__name__} {getattr(value, '_fields', ())} {members}"
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, tuple):
        yield f"tuple of {len(value)}"
        for item in value:
            yield from _described(item, seen)
    elif callable(value):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    else:
        yield repr(value)
