"""Compiles plain functions of numbers that Python calls too, so that a formula stands once for both."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from numba import njit

from gym_dr.compiled.options import INLINE


def compile_formula(function: Any, replaced: Mapping[Any, Any] = {}) -> Any:
    """A function for kernels, with the functions of its file that it calls.

    Args:
        function: Takes and returns numbers, tuples of them or arrays. A class, of a named tuple, stays as is.
        replaced: Functions that it calls by name -> compiled ones to call instead.
    """
    if not isinstance(function, FunctionType):
        return function
    known = function.__globals__
    called = {
        name: replaced[known[name]] if known[name] in replaced else compile_formula(known[name], replaced)
        for name in function.__code__.co_names
        if callable(known.get(name)) and (known[name] in replaced or isinstance(known[name], FunctionType))
    }
    copied = FunctionType(function.__code__, {**known, **called}, function.__name__)
    return njit(**INLINE)(copied)
