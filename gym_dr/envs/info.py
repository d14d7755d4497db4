"""``info`` of many sub-environments, in the layout of Gymnasium's vector environments.

Every key ``k`` has an array, 0 where a sub-environment did not report it, and a mask ``_k`` of those that did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Mask

Info = dict[str, npt.NDArray[Any]]


def merge_info(pieces: Sequence[tuple[Info, Mask]]) -> dict[str, Any]:
    """Merges what different sub-environments report.

    Args:
        pieces: Arrays ``(num_envs, ...)`` by key, with the mask of the sub-environments that report them.
    """
    merged: dict[str, Any] = {}
    for arrays, mask in pieces:
        if not arrays or not mask.any():
            continue
        everyone = bool(mask.all())
        for key, array in arrays.items():
            if everyone:
                merged[key], merged[f"_{key}"] = array, mask.copy()
                continue
            if key not in merged:
                merged[key], merged[f"_{key}"] = np.zeros_like(array), np.zeros_like(mask)
            merged[key][mask] = array[mask]
            merged[f"_{key}"] |= mask
    return merged
