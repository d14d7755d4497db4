"""Compiles plain functions of numbers that Python calls too, so that a formula stands once for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any
from uuid import uuid4

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from gym_dr.compiled.named import globals_of, named_by, plain
from gym_dr.compiled.options import INLINE

_KNOWN = ("builtins", "math", "numpy", "numba")  # packages whose versions are part of every key


def compile_formula(function: Any, replaced: Mapping[Any, Any] = {}) -> Any:
    """A function for kernels, with the functions that it calls by name.

    Args:
        function: Takes and returns numbers, tuples of them or arrays. A class, of a named tuple, stays as is.
        replaced: Functions and modules that it names -> what it shall name instead, compiled.
    """
    return _compiled(function, replaced, {})


def _compiled(value: Any, replaced: Mapping[Any, Any], done: dict[FunctionType, Any]) -> Any:
    """What a function names, as compiled code shall see it; each function is compiled once."""
    if isinstance(value, FunctionType | BuiltinFunctionType | ModuleType) and value in replaced:
        return replaced[value]
    if not isinstance(value, FunctionType):
        return value
    if value not in done:
        known = value.__globals__
        named = {
            path: _compiled(each, replaced, done) for path, each in globals_of(value.__code__, known) if path in known
        }
        cells = tuple(CellType(_compiled(cell.cell_contents, replaced, done)) for cell in value.__closure__ or ())
        defaults = tuple(_compiled(each, replaced, done) for each in value.__defaults__ or ())
        made = FunctionType(value.__code__, {**known, **named}, value.__name__, defaults or None, cells)
        made.__kwdefaults__ = value.__kwdefaults__
        done[value] = njit(**INLINE)(made)
    return done[value]


def described(value: Any) -> str:
    """A text that is another one if the machine code that is compiled from a value may differ.

    Args:
        value: A function, with everything that it names, or what functions name: numbers, tuples, arrays, classes of
            named tuples, modules.
    """
    return "\n".join(_described(value, {}))


def _described(value: Any, seen: dict[Any, int]) -> Iterator[str]:
    if plain(value) is not value:
        yield f"{type(value).__name__} {sorted(map(str, getattr(value, 'targetoptions', {}).items()))}"
        value = plain(value)
    if isinstance(value, FunctionType):
        if value in seen:  # it calls itself, or two call it
            yield f"again {seen[value]}"
            return
        seen[value] = len(seen)
        yield from _described(value.__code__, seen)
        for path, each in named_by(value):
            yield path
            yield from _described(each, seen)
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars} {value.co_argcount}"
        for constant in value.co_consts:
            yield from _described(constant, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, type):
        members = [(member.name, member.value) for member in value] if issubclass(value, Enum) else ()
        yield f"{value.__name__} {getattr(value, '_fields', ())} {getattr(value, '_field_defaults', ())} {members}"
    elif isinstance(value, ModuleType):
        yield value.__name__  # what is read of it comes next
    elif isinstance(value, tuple):
        yield f"{type(value).__name__} {getattr(value, '_fields', ())} of {len(value)}"
        for item in value:
            yield from _described(item, seen)
    elif callable(value) and not isinstance(value, Dispatcher):
        module = str(getattr(value, "__module__", None) or type(value).__module__)
        known = module.partition(".")[0] in _KNOWN
        # of anything else we do not know what it does, so its code is never found again
        yield f"{module}.{getattr(value, '__qualname__', repr(value))} {'' if known else uuid4().hex}"
    else:
        yield f"{type(value).__name__} {value!r}"
