"""Flags of the compiler that make machine code exact and fast."""

from __future__ import annotations

from typing import Any, Final

from gym_dr.compiled.kernel import EntryCompiler, KernelCompiler

# "numpy": a division by zero gives inf or nan, as in C, instead of a Python exception (which is a branch).
# fastmath stays off: reassociation and contraction would change the last bit, and every bit counts.
# _nrt: few functions allocate, and without numba's runtime, slices are not reference-counted.
_EXACT: Final[dict[str, Any]] = {"error_model": "numpy", "fastmath": False, "nogil": True, "_nrt": False}

# a function that Python calls
ENTRY: Final = _EXACT | {"pipeline_class": EntryCompiler}

# a function that compiled functions call: without wrappers and machine code it compiles faster
KERNEL: Final = _EXACT | {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": False,  # otherwise taken over from the first caller
    "pipeline_class": KernelCompiler,
}

# a function that must be inlined: a small one, since otherwise the loop that calls it stays scalar, or one that takes
# tuples of many arrays and is called only once, since a call would put all of them on the stack
INLINE: Final = KERNEL | {"forceinline": True}

# added for a function that allocates or multiplies matrices, and for those that call it
RUNTIME: Final = {"_nrt": True}
