"""How functions are compiled that only compiled functions call: to code that is linked into their callers'.

Numba optimises every function together with all that it calls, and makes machine code of it, before it links it into
the next one above, which is optimised and made machine code of as a whole again. For a deep tree of functions that is
most of the time that compiling takes, and what comes out at the top is as fast without it. So a kernel here is
optimised by itself alone, and the rest is left to the function that Python calls.

The parts of numba used beyond its documented interface (``pipeline_class`` is part of it) are a library's two last
stages and the flag ``no_compile``, by which numba itself leaves machine code out.
"""

# mypy: allow-untyped-calls
# numba annotates few of its functions

from __future__ import annotations

from typing import Any

from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Compiler


class _LinkedLibrary(CPUCodeLibrary):
    """Code of a function and of all that it calls, for those that call it."""

    def _optimize_final_module(self) -> None:
        """Leaves that to whoever is linked with it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelCompiler(Compiler):
    """Numba's compiler without machine code at the end."""

    def compile_extra(self, func: Any) -> Any:
        self.state.flags.no_compile = True
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        # numba finds a function by its entry point; this one is unlike any other and raises when Python calls it
        result = super().compile_extra(func)._replace(entry_point=[].index)
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result
