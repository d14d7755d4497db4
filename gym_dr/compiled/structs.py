"""Arguments of compiled functions as addresses, so that any thread can call any function by its address alone.

A *struct* is a named tuple of arrays, numbers and other named tuples, written as a table of 64-bit words. A *job* is a
compiled ``function(args, slot, chunk)``: ``args`` is the named tuple again, ``slot`` numbers the thread, for scratch
memory, and ``chunk`` the part of the work. All jobs look alike to their callers: three integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from gym_dr.compiled.cache import Part, cache_on_disk
from gym_dr.compiled.flags import ENTRY

_WORD = ir.IntType(64)


class Struct:
    """A named tuple as a table of words.

    Attributes:
        kind: Its type for numba.
        address: Of the table.
    """

    def __init__(self, values: tuple[Any, ...], kind: Any = None) -> None:
        """Writes the table. Arrays stay shared, and must never be reallocated; numbers are copied.

        Args:
            values: The named tuple.
            kind: Its type, if it is known, since finding it takes longer than the rest.
        """
        self.kind = kind_of(values) if kind is None else kind
        self._values = values  # keeps the arrays alive
        self._words: npt.NDArray[np.int64] = np.array(_words(values), np.uint64).view(np.int64)
        self.address = int(self._words.ctypes.data)

    def lead(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Replaces the first fields by arrays of the same kinds and shapes, which the caller keeps alive."""
        place = 0
        for array in arrays:
            self._words[place] = array.ctypes.data
            place += 1 + array.ndim


def kind_of(value: Any) -> Any:
    """The type of a value in a struct: an array's without its flags, a number's with 64 bits or float32."""
    if isinstance(value, tuple):
        return types.BaseTuple.from_types(tuple(map(kind_of, value)), type(value))
    if isinstance(value, np.ndarray):
        return types.Array(from_dtype(value.dtype), value.ndim, "C" if value.flags.c_contiguous else "A")
    if isinstance(value, bool | np.bool_):
        return types.boolean
    if isinstance(value, np.float32):
        return types.float32
    return types.float64 if isinstance(value, float) else types.int64


def _words(value: Any) -> list[int]:
    if isinstance(value, tuple):
        return [word for each in value for word in _words(each)]
    if isinstance(value, np.ndarray):
        strides = () if value.flags.c_contiguous else value.strides
        return [value.ctypes.data, *value.shape, *(stride % 2**64 for stride in strides)]
    if isinstance(value, float | np.float32):
        return [int(np.float64(value).view(np.uint64))]
    return [int(value) % 2**64]


def _read(context: Any, builder: Any, kind: Any, table: Any) -> Any:
    """Code for the value of a kind at the next words of a table, an iterator over them."""
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_read(context, builder, each, table) for each in cast(Any, kind)])
    if isinstance(kind, types.Array):
        array = make_array(kind)(context, builder)
        item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        data = builder.inttoptr(next(table), array.data.type)
        shape = [next(table) for _ in range(kind.ndim)]
        strides = [next(table) for _ in range(kind.ndim if kind.layout == "A" else 0)]
        stride = _WORD(item)
        for length in reversed(shape if kind.layout == "C" else ()):
            strides.insert(0, stride)
            stride = builder.mul(stride, length)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=_WORD(item), meminfo=None)
        return array._getvalue()
    word = next(table)
    if kind in (types.float32, types.float64):
        number = builder.bitcast(word, ir.DoubleType())
        return number if kind == types.float64 else builder.fptrunc(number, ir.FloatType())
    return builder.icmp_signed("!=", word, _WORD(0)) if kind == types.boolean else word


def reader(kind: Any) -> Any:
    """A compiled function from an address to the named tuple of a kind."""

    @intrinsic
    def read(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            start = builder.inttoptr(arguments[0], _WORD.as_pointer())

            def words() -> Any:
                place = 0
                while True:
                    yield builder.load(cgutils.gep_inbounds(builder, start, place))
                    place += 1

            return _read(context, builder, kind, words())

        return kind(types.int64), generate

    return read


class Job:
    """A compiled ``function(args, slot, chunk)`` for one kind of ``args``.

    Attributes:
        kind: Of its first argument.
        address: Of the machine code, for ``threads.run``.
        compiled: The function that numba has compiled.
        call: The same for three integers: the address of the arguments, slot and chunk.
    """

    def __init__(
        self,
        function: Any,
        kind: Any,
        what: str,
        *,
        name: str = "",
        content: str = "",
        parts: Sequence[Part] = (),
    ) -> None:
        """Compiles the function, or loads it from the cache.

        Args:
            function: Decorated with ``njit(**KERNEL)``.
            kind: Of its first argument, see ``Struct``.
            what: Description for users, for a message.
            name: Of what it belongs to, for the name of the file.
            content: Text that differs if other functions that it calls differ.
            parts: See ``cache_on_disk``.
        """
        read = reader(kind)

        def entry(args, slot, chunk):
            function(read(args), slot, chunk)

        content = f"{kind}{content}"
        # machine code from the cache finds functions by name: no two jobs may share one
        digest = hashlib.blake2b(f"{name}{content}".encode(), digest_size=8).hexdigest()
        entry.__name__ = function.__name__
        entry.__qualname__ = f"{function.__name__}_{digest}"
        compiled = njit(**ENTRY | {"_nrt": function.targetoptions["_nrt"]})(entry)
        source = Path(function.py_func.__code__.co_filename)
        cache_on_disk(compiled, what, name=name, content=content, source=source, parts=parts)
        compiled.compile((types.int64, types.int64, types.int64))
        (result,) = compiled.overloads.values()
        self.address = int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))
        self.kind, self.compiled, self.call = kind, compiled, result.entry_point

    def __call__(self, args: Struct, slot: int, chunk: int) -> None:
        """Calls the function on this thread; unlike a call by address, it passes on errors."""
        self.call(args.address, slot, chunk)


@cache
def job_of(function: Any, kind: Any, what: str, name: str = "", content: str = "", parts: tuple[Part, ...] = ()) -> Job:
    """A job that all callers share, since numba never frees machine code; for arguments see ``Job``."""
    return Job(function, kind, what, name=name, content=content, parts=parts)
