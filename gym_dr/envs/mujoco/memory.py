"""Reads and writes one field of many ``MjData`` in one call.

A copy for each field of each simulation in Python costs more than the forces that it is for. ``MjData`` keeps its
fields where they are for as long as it lives, so that their addresses can be collected once and followed by one numpy
call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class ScatteredField:
    """The same array of many objects, as one array of shape ``(len(arrays), *shape)``."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Collects addresses.

        Args:
            arrays: Alike in shape, strides and dtype; live views, which must stay alive (they are kept).
        """
        first = arrays[0]
        if not all((a.shape, a.strides, a.dtype) == (first.shape, first.strides, first.dtype) for a in arrays):
            raise ValueError("Expected arrays of one shape, layout and dtype.")
        self._kept = list(arrays)
        self.shape = (len(arrays), *first.shape)
        addresses = np.array([a.ctypes.data for a in arrays], dtype=np.int64)
        start = int(addresses.min())
        inner = np.zeros(first.shape, dtype=np.int64)  # bytes from an array's start to each of its elements
        for axis, (length, stride) in enumerate(zip(first.shape, first.strides, strict=True)):
            inner += (np.arange(length) * stride).reshape([-1 if k == axis else 1 for k in range(first.ndim)])
        self._places, rest = np.divmod((addresses - start)[:, None] + inner.reshape(1, -1), first.itemsize)
        if rest.any() or (inner < 0).any():
            raise ValueError("Expected aligned arrays with positive strides.")
        size = int(self._places.max(initial=0)) + 1
        # spans memory that is not ours too; only the places of the arrays are ever touched
        span = (ctypes.c_char * (size * first.itemsize)).from_address(start)
        self._span: npt.NDArray[Any] = np.ndarray((size,), first.dtype, buffer=memoryview(span))

    def read(self, out: npt.NDArray[Any]) -> None:
        """Copies all arrays into ``out``, of shape ``self.shape``."""
        if self._places.size:
            np.take(self._span, self._places, out=out.reshape(self._places.shape), mode="clip")

    def read_rows(self, out: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> None:
        """Copies some arrays into the same rows of ``out``."""
        out[rows] = self._span[self._places[rows]].reshape(len(rows), *self.shape[1:])

    def write(self, values: npt.ArrayLike) -> None:
        """Gives all arrays new values, which broadcast to ``self.shape``."""
        if self._places.size:
            self._span[self._places] = np.broadcast_to(np.asarray(values), self.shape).reshape(self._places.shape)
