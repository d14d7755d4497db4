"""Compiles functions with the widest vectors, and without needless work.

On Intel processors LLVM prefers 256-bit vectors even where there are 512-bit ones, because the first processors with
AVX-512 lowered their clock to use them. Later ones hardly do, and 512 bits are faster. The width changes no bit of the
results, since fastmath is off.

Numba optimizes every function together with everything that it calls, and generates machine code for it, before
linking it into its caller, which is then optimized and compiled as a whole again. In a deep call tree this takes most
of the compile time without making the result faster. So a kernel is only optimized on its own here, and the rest is
left to the function that Python calls.

A kernel can be stored on disk as LLVM's bitcode, so that another process may compile it for its caller.

The parts of numba used beyond its documented interface (which includes ``pipeline_class``) are three stages of a
library and the flag ``no_compile``, with which numba itself skips machine code; the form in which its own cache stores
code; and ``get_call_type``, which finds the type of a call.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result
from numba.core.types.functions import BaseFunction

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

    def serialize_using_object_code(self) -> Any:
        """The form in which numba stores a library; this one has no object code."""
        return self.serialize_using_bitcode()


_calls: Any = BaseFunction  # whose method is replaced for a while
_find_type = _calls.get_call_type


@contextlib.contextmanager
def _economy() -> Iterator[None]:
    """Saves a sixth of the time of a function and all that it calls: finds the type of a call once, and garbage rarely.

    Numba tries the rules for all types, one after the other, at each call and at each arithmetic operation.
    """
    if _calls.get_call_type is not _find_type:  # within another function
        yield
        return
    found: dict[Any, Any] = {}

    def remember(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = self, context, args, tuple(kws.items())
        if key not in found:
            found[key] = _find_type(self, context, args, kws)
        return found[key]

    thresholds = gc.get_threshold()
    _calls.get_call_type = remember
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        _calls.get_call_type = _find_type
        gc.set_threshold(*thresholds)


class EntryCompiler(Compiler):
    """Numba's compiler, with wide vectors."""

    def compile_extra(self, func: Any) -> Any:
        self.state.library = _EntryLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        with _economy():
            return super().compile_extra(func)


class KernelCompiler(Compiler):
    """Numba's compiler without the final machine code."""

    def compile_extra(self, func: Any) -> Any:
        self.state.flags.no_compile = True
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        # numba finds a function by its entry point; this one is unique and raises an error when Python calls it
        with _economy():
            result = super().compile_extra(func)._replace(entry_point=[].index)
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


def rebuild(target_context: Any, stored: Any, *rest: Any) -> Any:
    """A compiled function from what ``CompileResult._reduce`` stored: an entry, or a kernel, which is bitcode."""
    name, form, code = stored
    if form != "bitcode":
        return CompileResult._rebuild(target_context, stored, *rest)
    library = _LinkedLibrary(target_context.codegen(), name)
    library._final_module = llvmlite.binding.parse_bitcode(code)
    library._finalize_final_module()
    description, environment, signature = rest[:3]
    return compile_result(
        target_context=target_context,
        library=library,
        entry_point=[].index,
        fndesc=description,
        environment=environment,
        signature=signature,
        objectmode=False,
    )
