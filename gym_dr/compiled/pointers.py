"""Compiled functions as pointers: called without checking argument types, or passed to other compiled code.

Only for functions with one compiled version. To find the version of a call, numba inspects the types of all arguments,
which takes several microseconds if they are tuples of many arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import types


def entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The only compiled version of a function, for calls from Python; argument types are not checked."""
    (compiled,) = dispatcher.overloads.values()
    return cast(Callable[..., Any], compiled.entry_point)


class Address(types.WrapperAddressProtocol):
    """The only compiled version of a function, which other compiled code can call without recompiling it."""

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
