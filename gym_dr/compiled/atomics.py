"""Machine instructions for threads that share memory: atomic words, calls by address, and locks to sleep on.

Addresses are plain integers. Every atomic operation is sequentially consistent. The locks are Python's own, which need
no interpreter lock and sleep on whatever the system offers (Linux, macOS and Windows).
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_ORDER = "seq_cst"
_SPINS = platform.machine() in ("x86_64", "AMD64")  # has an instruction for threads that spin

for _name in ("PyThread_acquire_lock", "PyThread_release_lock"):  # found by name also by code from the disk cache
    llvmlite.binding.add_symbol(_name, ctypes.cast(getattr(ctypes.pythonapi, _name), ctypes.c_void_p).value)


@intrinsic
def load(typing_context: Any, address: Any) -> Any:
    """The word (int64) at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(arguments[0], _WORD.as_pointer()), ordering=_ORDER, align=8)

    return types.int64(types.int64), generate


@intrinsic
def exchange(typing_context: Any, address: Any, value: Any) -> Any:
    """Stores a word; returns the one before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", builder.inttoptr(arguments[0], _WORD.as_pointer()), arguments[1], _ORDER)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def add(typing_context: Any, address: Any, value: Any) -> Any:
    """Adds to a word; returns the one before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], _WORD.as_pointer()), arguments[1], _ORDER)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def call(typing_context: Any, address: Any, args: Any, slot: Any, chunk: Any) -> Any:
    """Calls a job, see ``structs.Job``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_WORD] * 3)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def acquire(typing_context: Any, lock: Any) -> Any:
    """Waits until another thread releases the lock."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [_WORD, ir.IntType(32)])
        function = cgutils.get_or_insert_function(builder.module, kind, "PyThread_acquire_lock")
        builder.call(function, [arguments[0], ir.IntType(32)(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def release(typing_context: Any, lock: Any) -> Any:
    """Wakes the thread that waits for the lock, or that will."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_WORD])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "PyThread_release_lock"), arguments)
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def pause(typing_context: Any) -> Any:
    """Tells the processor that this thread spins, where it can be told."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _SPINS:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate
