"""One table of the environments that gym_dr registers with Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from gym_dr.registry import Registry


@dataclass(frozen=True, kw_only=True)
class EnvEntry:
    """One environment id and what ``gymnasium.register`` needs for it."""

    id: str  # "gym_dr/LunarLanderDR-v3"
    entry_point: str  # "module:Class"; the class takes a keyword ``randomization``
    max_episode_steps: int | None = None  # steps after which an episode is truncated
    reward_threshold: float | None = None  # return from which the task counts as solved
    vector_entry_point: str | None = None  # "module:Class" of a native vector environment, where there is one
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments of this id


ENVIRONMENTS: Registry[EnvEntry] = Registry("environment")

_LUNAR_LANDER = "gym_dr.envs.lunar_lander"
_MUJOCO = (  # name, episode limit, reward threshold: as Gymnasium registers them
    ("InvertedPendulum", 1000, 950.0),
    ("InvertedDoublePendulum", 1000, 9100.0),
    ("Hopper", 1000, 3800.0),
    ("HalfCheetah", 1000, 4800.0),
    ("Walker2d", 1000, None),
    ("Ant", 1000, 6000.0),
    ("Swimmer", 1000, 360.0),
    ("Humanoid", 1000, None),
    ("HumanoidStandup", 1000, None),
    ("Reacher", 50, -3.75),
    ("Pusher", 100, 0.0),
)

BUILTIN = (
    EnvEntry(
        id="gym_dr/LunarLanderDR-v3",
        entry_point=f"{_LUNAR_LANDER}.env:LunarLanderDR",
        vector_entry_point=f"{_LUNAR_LANDER}.native.vector_env:LunarLanderVectorEnv",
        max_episode_steps=1000,
        reward_threshold=200,
    ),
    EnvEntry(
        id="gym_dr/LunarLanderContinuousDR-v3",
        entry_point=f"{_LUNAR_LANDER}.env:LunarLanderDR",
        vector_entry_point=f"{_LUNAR_LANDER}.native.vector_env:LunarLanderVectorEnv",
        max_episode_steps=1000,
        reward_threshold=200,
        kwargs={"continuous": True},
    ),
    *(
        EnvEntry(
            id=f"gym_dr/{name}DR-v5",
            entry_point=f"gym_dr.envs.mujoco.env:{name}DR",
            vector_entry_point=f"gym_dr.envs.mujoco.vector_env:{name}VectorEnv",
            max_episode_steps=steps,
            reward_threshold=threshold,
        )
        for name, steps, threshold in _MUJOCO
    ),
)


def register(entry: EnvEntry) -> None:
    """Registers an environment with Gymnasium; again with the same entry does nothing."""
    known = gym.registry.get(entry.id)
    if known is not None and (known.entry_point, known.kwargs) == (entry.entry_point, dict(entry.kwargs)):
        return
    gym.register(
        id=entry.id,
        entry_point=entry.entry_point,
        vector_entry_point=entry.vector_entry_point,
        max_episode_steps=entry.max_episode_steps,
        reward_threshold=entry.reward_threshold,
        kwargs=dict(entry.kwargs),
    )
