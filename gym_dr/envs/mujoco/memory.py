"""Reads and writes one field of many ``MjData`` in one call.

Copying each field of each simulation in Python costs more than computing contact forces. The fields of an ``MjData``
never move: their addresses are collected once, and numpy reads or writes all of them in one call.
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
            arrays: Live views, aligned, with equal shape, positive strides and dtype; references to them are kept.
        """
        first = arrays[0]
        self._kept = list(arrays)
        addresses = np.array([a.ctypes.data for a in arrays], dtype=np.int64)
        start = int(addresses.min())
        self._places = (addresses - start) // first.itemsize
        reach = sum((length - 1) * stride for length, stride in zip(first.shape, first.strides, strict=True))
        count = int(self._places.max()) + 1
        # also spans memory of others; only the arrays themselves are accessed
        span = (ctypes.c_char * (count * first.itemsize + reach)).from_address(start)
        # row k is the array that would begin k elements after the first address
        self._windows = np.ndarray(
            (count, *first.shape), first.dtype, buffer=memoryview(span), strides=(first.itemsize, *first.strides)
        )

    def read(self, out: npt.NDArray[Any], rows: slice | npt.NDArray[np.int64] = slice(None)) -> None:
        """Copies all arrays, or some, into the same rows of ``out``."""
        if out.size:
            out[rows] = self._windows[self._places[rows]]

    def write(self, values: npt.ArrayLike) -> None:
        """Sets all arrays to values that broadcast to ``(len(arrays), *shape)``."""
        if self._kept[0].size:
            self._windows[self._places] = np.asarray(values)
