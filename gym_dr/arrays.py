"""Short names for the types of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]  # 64 bits each, of seeds and keys
