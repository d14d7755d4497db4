"""The mirror image of a task: which entries of observations and actions change places and signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Floats, Indices
from gym_dr.envs.stack import stack_of
from gym_dr.errors import ConfigError, RobotError


@dataclass(frozen=True)
class Mirror:
    """How one quantity changes when left and right change places: ``mirrored = x[..., places] * signs``."""

    places: Sequence[int] | None = None  # of the number that each gets; None to keep their places
    signs: Sequence[float] | None = None  # 1 or -1 each; None to keep their signs


class MirrorMap(NamedTuple):
    """A reflection of observations and actions: ``mirrored = x[..., places] * signs``."""

    observation_places: Indices  # (size,) int64
    observation_signs: Floats  # (size,) float32
    action_places: Indices  # (actions,) int64
    action_signs: Floats  # (actions,) float32


def mirror_map(mirrors: Mapping[str, Mirror], parts: Mapping[str, int], action_size: int) -> MirrorMap:
    """Joins the mirrors of the parts of an observation and of the action.

    Args:
        mirrors: Name of a part, or "action" -> its mirror; parts without one stay as they are.
        parts: Name -> numbers of each part of an observation, in order.
        action_size: Numbers of an action.

    Raises:
        RobotError: There is no such part, a mirror has another size, or its mirror image is not the original.
    """
    sizes = {**parts, "action": action_size}
    if unknown := mirrors.keys() - sizes.keys():
        raise RobotError(f"mirror: expected parts of observation and action, {', '.join(sizes)}, got {min(unknown)!r}.")
    places, signs, first = [], [], 0
    for name, size in sizes.items():
        own, sign = _arrays(name, mirrors.get(name, Mirror()), size)
        places.append(own if name == "action" else own + first)
        signs.append(sign)
        first += size
    return MirrorMap(np.concatenate(places[:-1]), np.concatenate(signs[:-1]), places[-1], signs[-1])


def _arrays(name: str, mirror: Mirror, size: int) -> tuple[Indices, Floats]:
    """Places and signs of a part of ``size`` numbers, checked."""
    places = np.arange(size) if mirror.places is None else np.asarray(mirror.places, np.int64)
    signs = np.ones(size, np.float32) if mirror.signs is None else np.asarray(mirror.signs, np.float32)
    fits = places.shape == signs.shape == (size,) and np.isin(places, range(size)).all()
    # the mirror image of the mirror image is the original
    if not fits or (places[places] != range(size)).any() or (signs[places] * signs != 1).any():
        raise RobotError(
            f"mirror: expected {size} places and signs for {name!r} that undo themselves when applied twice, "
            f"got places {places.tolist()} and signs {signs.tolist()}."
        )
    return places, signs


def mirror_of(envs: VectorEnv[Any, Any, Any]) -> MirrorMap | None:
    """The mirror image that the environment inside all wrappers declares, extended to what wrappers add; None if none.

    Each frame of a frame stack changes like an observation; a reward and a draw at the end stay as they are.

    Raises:
        ConfigError: Observations or actions are not those of the environment itself.
    """
    mirror = attribute_of(envs, "mirror")
    if not isinstance(mirror, MirrorMap):
        return None
    own, signs, places, action_signs = mirror
    frames = max(getattr(vars(layer).get("frames"), "stack_observations", 1) for layer in stack_of(envs))
    whole, (length,) = frames * len(own), envs.single_observation_space.shape or (0,)
    space = envs.single_action_space
    ends = np.array([space.low, space.high]) if isinstance(space, gym.spaces.Box) else np.zeros((2, 0))
    alike = ends.shape == (2, len(places)) and np.allclose(np.sort(ends[:, places] * action_signs, 0), ends)
    if length < whole or not alike:
        raise ConfigError(
            f"Expected observations of at least {whole} numbers and actions whose bounds are those of their mirror "
            f"image, which the environment declares, got {length} and {space}. Use no wrappers that leave "
            "observations out or change actions, and give both sides the same bounds."
        )
    return mirror._replace(
        observation_places=np.append((np.arange(frames)[:, None] * len(own) + own).ravel(), np.arange(whole, length)),
        observation_signs=np.append(np.tile(signs, frames), np.ones(length - whole, np.float32)),
    )


def attribute_of(envs: VectorEnv[Any, Any, Any], name: str) -> Any:
    """An attribute of the environment inside all wrappers; None without it."""
    base: Any = envs.unwrapped
    # asked first, since a worker that is asked for a missing attribute would exit
    if hasattr(base, "call") and all(base.call("has_wrapper_attr", name)):
        return base.get_attr(name)[0]
    return getattr(base, name, None)
