"""How every function of the native lander is compiled: the options that make it exact and fast, named once."""

from __future__ import annotations

from typing import Any, Final

# "numpy": a division by zero gives inf or nan, as in C, instead of a Python exception (which is a branch).
# fastmath stays off: reassociation and contraction would change the last bit, and every bit counts here.
_EXACT: Final[dict[str, Any]] = {"error_model": "numpy", "fastmath": False, "nogil": True}

KERNEL: Final = _EXACT
"""Options of a function that is compiled on its own; LLVM decides where to inline it."""

INLINE: Final = _EXACT | {"forceinline": True}
"""Options of a small function that must disappear into the loop that calls it, or the loop stays scalar."""
