"""The terrain, for callers outside compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY
from gym_dr.envs.box2d.bipedal_walker import ground
from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER_HARDCORE


@njit(**ENTRY)  # type: ignore[untyped-decorator]  # numba has no types
def _generate(streams: Any, roughness: Any, hardcore: Any, obstacles: Any, heights: Any, boxes: Any) -> Any:
    return ground.generate(streams, 0, roughness, hardcore, obstacles, heights, boxes)


cache_on_disk(_generate, "the terrain of BipedalWalker")


def terrain(
    streams: npt.NDArray[np.uint64], params: Mapping[str, float], hardcore: bool
) -> tuple[Array, npt.NDArray[np.float64]]:
    """The terrain of one episode.

    Args:
        streams: Shape ``(1, STREAM)``, the random stream, which is advanced.
        params: Current values by name; those of obstacles matter only if ``hardcore`` is set.
        hardcore: Whether there are obstacles.

    Returns:
        Heights of the corner points (m), shape ``(TERRAIN_LENGTH,)``, and left, right, top and bottom of boxes (m),
        shape ``(B, 4)``.
    """
    values = {**BIPEDAL_WALKER_HARDCORE.nominal, **params}
    obstacles = ground.Obstacles(*(float(values[name]) for name in ground.Obstacles._fields))
    heights, boxes = np.zeros(ground.LENGTH), np.zeros((ground.MAX_BOXES, 4))
    count = cast(Any, _generate)(streams, float(params["roughness"]), bool(hardcore), obstacles, heights, boxes)
    return heights, boxes[:count]
