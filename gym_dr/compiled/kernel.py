"""Faster compilation of functions that only compiled functions call: their code is linked into their callers.

Numba optimises every function together with everything that it calls, and generates machine code for it, before
linking it into its caller, which is then optimised and compiled as a whole again. In a deep call tree this takes most
of the compile time without making the result faster. So a kernel is only optimised on its own here, and the rest is
left to the function that Python calls.

The parts of numba used beyond its documented interface (which includes ``pipeline_class``) are a library's two last
stages and the flag ``no_compile``, with which numba itself skips machine code.
"""

# mypy: allow-untyped-calls
# numba annotates few of its functions

from __future__ import annotations

from typing import Any

from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Compiler


class _LinkedLibrary(CPUCodeLibrary):
    """Code of a function and of everything that it calls, for linking into its callers."""

    def _optimize_final_module(self) -> None:
        """Leaves this to the caller's library."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelCompiler(Compiler):
    """Numba's compiler without the final machine code."""

    def compile_extra(self, func: Any) -> Any:
        self.state.flags.no_compile = True
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        # numba finds a function by its entry point; this one is unique and raises an error when Python calls it
        result = super().compile_extra(func)._replace(entry_point=[].index)
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result
