"""What gym_dr knows of a family of environments: the one place where its ids, presets, keys and camera stand."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from gym_dr.randomization.spec import Randomization


@dataclass(frozen=True, kw_only=True)
class EnvId:
    """One environment id: what ``gymnasium.register`` needs, and how a person plays it."""

    id: str  # "gym_dr/LunarLanderDR-v3"
    entry_point: str  # "module:Class"; the class takes a keyword ``randomization``
    max_episode_steps: int | None = None  # steps after which an episode is truncated
    reward_threshold: float | None = None  # return from which the task counts as solved
    vector_entry_point: str | None = None  # "module:Class" of a native vector environment, where there is one
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments of this id
    stock: str = ""  # id of the environment that its nominal physics equal: "LunarLander-v3"
    keys: Mapping[tuple[str, ...], Any] = field(default_factory=dict)  # arrow keys ("left", "up") -> action


@dataclass(frozen=True, kw_only=True)
class EnvFamily:
    """Environments with the same parameters."""

    name: str  # of their parameter space, which presets are filed under
    ids: tuple[EnvId, ...]
    presets: Mapping[str, Randomization] = field(default_factory=dict)  # by name
    camera: str = ""  # "module:function", called with an environment that is to be drawn; leaves strangers alone
    bench_threshold: float | None = None  # mean training return that ``gymdr bench`` trains to

    def point_camera(self, env: gym.Env[Any, Any]) -> None:
        """Prepares one environment for pictures that show what matters."""
        if self.camera:
            module, _, name = self.camera.partition(":")
            getattr(importlib.import_module(module), name)(env)


def register_ids(family: EnvFamily) -> None:
    """Registers the ids of a family with Gymnasium.

    Raises:
        ValueError: Gymnasium knows another environment of that id.
    """
    for env in family.ids:
        known = gym.registry.get(env.id)
        if known is not None and (known.entry_point, known.kwargs) != (env.entry_point, dict(env.kwargs)):
            raise ValueError(f"environment {env.id!r} is registered with Gymnasium already")
        if known is None:
            gym.register(
                id=env.id,
                entry_point=env.entry_point,
                vector_entry_point=env.vector_entry_point,
                max_episode_steps=env.max_episode_steps,
                reward_threshold=env.reward_threshold,
                kwargs=dict(env.kwargs),
            )
