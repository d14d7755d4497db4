"""Fused multiply-add, with one rounding, on processors that have it; C libraries are built to use it."""

from __future__ import annotations

from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from gym_dr.compiled.flags import INLINE

HAS_FMA = bool(llvmlite.binding.get_host_cpu_features().get("fma", False))


@intrinsic
def _fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


if HAS_FMA:

    @njit(**INLINE)
    def multiply_add(a, b, c):
        """``a * b + c`` in float64 as the C library evaluates it on this processor."""
        return _fused(a, b, c)  # type: ignore[call-arg]  # numba supplies the typing context

else:

    @njit(**INLINE)
    def multiply_add(a, b, c):
        """``a * b + c`` in float64 as the C library evaluates it on this processor."""
        return a * b + c
