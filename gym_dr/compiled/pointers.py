"""Compiled functions as pointers: called without a look at their arguments' types, or handed to other compiled code.

For functions that are compiled once. Numba looks at the types of all arguments of each call to find out which compiled
version is meant, which takes several microseconds where they are tuples of many arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types


def entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The one compiled version of a function, for Python; arguments of other types than its own are not refused."""
    (compiled,) = dispatcher.overloads.values()
    entry: Callable[..., Any] = compiled.entry_point
    return entry


class Address(types.WrapperAddressProtocol):
    """The one compiled version of a function, which another calls without compiling it once more."""

    def __init__(self, dispatcher: Any) -> None:
        """Points to the one signature that ``dispatcher`` was compiled for."""
        (self._compiled,) = dispatcher.overloads.values()
        name = self._compiled.fndesc.llvm_cfunc_wrapper_name
        self._address: int = self._compiled.library.get_pointer_to_function(name)

    def __wrapper_address__(self) -> int:
        """Part of numba's interface."""
        return self._address

    def signature(self) -> Any:
        """Part of numba's interface."""
        return self._compiled.signature
