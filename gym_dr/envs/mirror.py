"""The mirror image of a task: which entries of observations and actions change places and signs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Floats, Indices
from gym_dr.envs.stack import stack_of
from gym_dr.errors import ConfigError


class MirrorMap(NamedTuple):
    """A reflection of observations and actions: ``mirrored = x[..., places] * signs``."""

    observation_places: Indices  # (size,) int64
    observation_signs: Floats  # (size,) float32
    action_places: Indices  # (actions,) int64
    action_signs: Floats  # (actions,) float32


def mirror_of(envs: VectorEnv[Any, Any, Any]) -> MirrorMap | None:
    """The mirror image that the environment inside all wrappers declares, extended to what wrappers add; None if none.

    Each frame of a frame stack changes like an observation; a reward and a draw at the end stay as they are.

    Raises:
        ConfigError: The observations are shorter than those of the environment itself.
    """
    mirror = attribute_of(envs, "mirror")
    if not isinstance(mirror, MirrorMap):
        return None
    frames = max(getattr(vars(layer).get("frames"), "stack_observations", 1) for layer in stack_of(envs))
    size, (length,) = len(mirror.observation_places), envs.single_observation_space.shape or (0,)
    if length < frames * size:
        raise ConfigError(
            f"Expected observations of at least {frames * size} numbers, {size} in each of {frames} frames, since the "
            f"environment declares its mirror image, got {length}. Use no wrappers that leave observations out."
        )
    places = np.arange(length)
    places[: frames * size] = (np.arange(frames)[:, None] * size + mirror.observation_places).reshape(-1)
    signs = np.ones(length, np.float32)
    signs[: frames * size] = np.tile(mirror.observation_signs, frames)
    return mirror._replace(observation_places=places, observation_signs=signs)


def attribute_of(envs: VectorEnv[Any, Any, Any], name: str) -> Any:
    """An attribute of the environment inside all wrappers; None without it."""
    base: Any = envs.unwrapped
    # asked first, since a worker that is asked for a missing attribute would exit
    if hasattr(base, "call") and all(base.call("has_wrapper_attr", name)):
        return base.get_attr(name)[0]
    return getattr(base, name, None)
