"""Compiles plain functions of numbers, so that Python and kernels share one formula."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import njit

from gym_dr.compiled.flags import INLINE

_KNOWN = ("numpy", "numba")  # packages whose functions are known by their version


def compile_formula(function: Any) -> Any:
    """A function for kernels, with the functions that it calls by name.

    Args:
        function: Takes and returns numbers, tuples of them or arrays. A class, of a named tuple, stays as is.
    """
    return _compiled(function, {})


def _compiled(value: Any, done: dict[FunctionType, Any]) -> Any:
    """A function compiled once with all functions that it names; any other value as it is."""
    if not isinstance(value, FunctionType):
        return value
    if value not in done:
        known = dict(value.__globals__)
        cells = tuple(CellType(cell.cell_contents) for cell in value.__closure__ or ())
        defaults = tuple(_compiled(each, done) for each in value.__defaults__ or ())
        made = FunctionType(value.__code__, known, value.__name__, defaults or None, cells)
        made.__kwdefaults__ = value.__kwdefaults__
        done[value] = njit(**INLINE)(made)  # before the functions that it names, which may name it
        for name in _names_in(value.__code__) & known.keys():
            known[name] = _compiled(known[name], done)
        for cell in cells:
            cell.cell_contents = _compiled(cell.cell_contents, done)
    return done[value]


@cache
def _names_in(code: CodeType) -> frozenset[str]:
    """Names of the globals and attributes that code and the functions inside it read."""
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*map(_names_in, inside))


def _named_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function may read: globals, attributes of modules, what is in its closure, and its defaults."""
    yield from _read_from(function.__globals__, _names_in(function.__code__), set())
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default", value


def _read_from(known: Mapping[str, Any], names: frozenset[str], modules: set[ModuleType]) -> Iterator[tuple[str, Any]]:
    """The values with these names, and those in modules among them."""
    for name in sorted(names & known.keys()):
        yield name, known[name]
        if isinstance(known[name], ModuleType) and known[name] not in modules:
            modules.add(known[name])
            yield from _read_from(vars(known[name]), names, modules)


def described(value: Any) -> str:
    """A text that differs wherever the machine code compiled from a value may differ.

    Args:
        value: A function, or what a function may name: numbers, tuples, arrays, classes of named tuples, modules.
    """
    return "\n".join(_described(value, {}))


def _described(value: Any, seen: dict[Any, int]) -> Iterator[str]:
    inner = _inside(value)
    if inner is not value:
        yield f"{type(value).__name__} {sorted(map(str, getattr(value, 'targetoptions', {}).items()))}"
        value = inner
    if isinstance(value, FunctionType) and _package(value) not in _KNOWN:
        if value in seen:  # it calls itself, or two call it
            yield f"again {seen[value]}"
            return
        seen[value] = len(seen)
        yield from _described(value.__code__, seen)
        for name, each in _named_by(value):
            yield name
            yield from _described(each, seen)
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars} {value.co_argcount}"
        for constant in value.co_consts:
            yield from _described(constant, seen)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, type):
        members = [(member.name, member.value) for member in value] if issubclass(value, Enum) else ()
        yield f"{value.__name__} {getattr(value, '_fields', ())} {getattr(value, '_field_defaults', ())} {members}"
    elif isinstance(value, ModuleType):
        yield value.__name__  # the attributes read from it come next
    elif isinstance(value, tuple):
        yield f"{type(value).__name__} {getattr(value, '_fields', ())} of {len(value)}"
        for item in value:
            yield from _described(item, seen)
    elif callable(value):  # of Python or of a package, whose version tells what it does
        version = getattr(sys.modules.get(_package(value)), "__version__", "")
        yield f"{_package(value)} {version} {getattr(value, '__qualname__', repr(value))}"
    else:
        # addresses and the order of sets differ between processes; nothing that numba compiles has an address
        form = sorted(map(repr, value)) if isinstance(value, set | frozenset) else value
        yield f"{type(value).__name__} {form!r}".partition(" at 0x")[0]


def _package(function: Any) -> str:
    """The package that a function or another callable is from."""
    module = str(getattr(function, "__module__", None) or type(function).__module__)
    return module.partition(".")[0]


def _inside(value: Any) -> Any:
    """The plain function inside a compiled one; anything else as it is."""
    inner = getattr(value, "py_func", None) or getattr(value, "_pyfunc", None)  # njit, cfunc
    inner = inner or getattr(getattr(value, "_dispatcher", None), "py_func", None)  # vectorize
    return inner if isinstance(inner, FunctionType) else value
