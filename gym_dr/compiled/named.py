"""What plain functions name: the globals that they read, what is in their closures, and their defaults."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple


class Named(NamedTuple):
    """What a function names."""

    path: str  # "math.sin"
    value: Any


def named_by(function: FunctionType) -> Iterator[Named]:
    """Globals that a function reads, attributes of modules among them, what is in its closure, and its defaults."""
    yield from globals_of(function.__code__, function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield Named(name, cell.cell_contents)
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield Named("a default", value)


def globals_of(code: CodeType, known: Mapping[str, Any]) -> Iterator[Named]:
    """The globals that code reads, of those ``known``, with attributes of modules and functions inside of it."""
    for name, *attributes in _paths_in(code):
        if name not in known:
            continue
        found = Named(name, known[name])
        yield found
        for attribute in attributes:
            if not isinstance(found.value, ModuleType) or attribute not in vars(found.value):
                break
            found = Named(f"{found.path}.{attribute}", vars(found.value)[attribute])
            yield found


@cache
def _paths_in(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """Names of globals that code loads, each with the attributes that it reads of it at once, without repetitions."""
    paths: dict[tuple[str, ...], None] = {}
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            path = (instruction.argval,)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and path:
            path = (*path, instruction.argval)
        else:
            path = ()
        if path:
            paths[path] = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # of a function inside
            paths |= dict.fromkeys(_paths_in(constant))
    return tuple(paths)


def plain(value: Any) -> Any:
    """The plain function in one that numba has compiled; anything else as it is."""
    inner = getattr(value, "py_func", None) or getattr(value, "_pyfunc", None)  # njit, cfunc
    inner = inner or getattr(getattr(value, "_dispatcher", None), "py_func", None)  # vectorize
    return inner if isinstance(inner, FunctionType) else value
