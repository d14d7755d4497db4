"""Short names for the types of arrays, and what counts as numbers."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]  # 64 bits each, of seeds and keys


def as_numbers(values: Any) -> Array:
    """Real numbers as float64, in an array of the same shape; -0 becomes 0, which generators take for negative.

    Raises:
        TypeError: They are text, dates, complex or masked numbers, or something else.
        ValueError: They are lists of different lengths.
        OverflowError: They have hundreds of digits.
    """
    array = np.asanyarray(values)  # a masked array stays one
    real = array.dtype.kind in "biuf" or (
        array.dtype == object and all(isinstance(v, numbers.Real) for v in array.flat)
    )
    if not real or np.any(getattr(array, "mask", False)):
        raise TypeError(f"expected numbers, got {values!r}")
    return np.asarray(array, np.float64) + 0.0
