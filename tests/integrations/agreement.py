"""How an exported file's actions are compared with those of the policy that it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def compared(found: Mapping[str, npt.NDArray[Any]], expected: npt.NDArray[Any]) -> int:
    """Checks actions: choices where the two largest outputs are apart, and numbers; returns how many were checked."""
    if found["action"].dtype == np.int64:
        first, second = np.sort(found["outputs"], 1)[:, ::-1][:, :2].T
        clear = first - second > 1e-4
        np.testing.assert_array_equal(found["action"][clear], expected[clear])
        return int(clear.sum())
    np.testing.assert_allclose(found["action"], expected, atol=1e-5)
    return len(expected)
