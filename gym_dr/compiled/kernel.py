"""Compiles functions with the widest vectors, and without needless work.

On Intel processors LLVM prefers 256-bit vectors even where there are 512-bit ones, because the first processors with
AVX-512 lowered their clock to use them. Later ones hardly do, and 512 bits are faster. The width changes no bit of the
results, since fastmath is off.

Numba optimizes every function together with everything that it calls, and generates machine code for it, before
linking it into its caller, which is then optimized and compiled as a whole again. In a deep call tree this takes most
of the compile time without making the result faster. So a kernel is only optimized on its own here, and the rest is
left to the function that Python calls.

The parts of numba used beyond its documented interface (which includes ``pipeline_class``) are three stages of a
library and the flag ``no_compile``, with which numba itself skips machine code.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler import Compiler

# Ice Lake, Zen 4 and later, which run at about the same clock with 512-bit vectors, have these instructions.
_FULL_SPEED = bool(llvmlite.binding.get_host_cpu_features().get("avx512vbmi2", False))
_WIDE = '"prefer-vector-width"="512"'


class _WideLibrary(CPUCodeLibrary):
    """Machine code with the widest vectors that the processor runs at full speed."""

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions if _FULL_SPEED else ():
            set.add(function.attributes, _WIDE)  # its own add() refuses attributes that depend on the processor
        super().add_ir_module(ir_module)


class _EntryLibrary(_WideLibrary, JITCodeLibrary):
    """Code of a function that Python calls, and of everything that it calls."""


class _LinkedLibrary(_WideLibrary):
    """Code of a function and of everything that it calls, for linking into its callers."""

    def _optimize_final_module(self) -> None:
        """Leaves this to the caller's library."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class EntryCompiler(Compiler):
    """Numba's compiler, with wide vectors."""

    def compile_extra(self, func: Any) -> Any:
        self.state.library = _EntryLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class KernelCompiler(Compiler):
    """Numba's compiler without the final machine code."""

    def compile_extra(self, func: Any) -> Any:
        self.state.flags.no_compile = True
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        # numba finds a function by its entry point; this one is unique and raises an error when Python calls it
        result = super().compile_extra(func)._replace(entry_point=[].index)
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result
