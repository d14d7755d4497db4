"""``info`` of many sub-environments, laid out as Gymnasium's vector environments collect it from single ones.

Every key ``k`` has an array with 0 where a sub-environment did not tell it, and a mask ``_k`` of those that did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Info = dict[str, npt.NDArray[Any]]


def merge_info(pieces: Sequence[tuple[Info, Mask]]) -> dict[str, Any]:
    """Merges what different sub-environments tell.

    Args:
        pieces: Arrays ``(num_envs, ...)`` by key, with the mask of the sub-environments that they hold for.
    """
    merged: dict[str, Any] = {}
    for arrays, mask in pieces:
        if not mask.any():
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


def spread_params(
    names: Sequence[str], values: npt.NDArray[np.float64], draw_index: npt.NDArray[np.int64], mask: Mask
) -> dict[str, Any]:
    """The values in force and draw indices, as the sub-environments in ``mask`` tell them.

    Args:
        names: Parameters.
        values: Shape ``(num_envs, len(names))``, nan where a sub-environment does not report one.
        draw_index: Shape ``(num_envs,)``.
        mask: Shape ``(num_envs,)``.
    """
    told = ~np.isnan(values) & mask[:, None]
    columns = np.ascontiguousarray(np.where(told, values, 0.0).T)
    masks = np.ascontiguousarray(told.T)
    params: dict[str, Any] = {}
    for name, column, who in zip(names, columns, masks, strict=True):
        if who.any():
            params[name], params[f"_{name}"] = column, who
    index = np.where(mask, draw_index, 0)
    return {"params": params, "_params": mask.copy(), "draw_index": index, "_draw_index": mask.copy()}
