"""What gym_dr knows of a family of environments: the one place where its ids, presets, keys and camera stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from gym_dr.randomization.presets import add_preset, remove_preset
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, load_object


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
    # arrow keys ("left", "up") -> action; () -> that without a key, where it is not 0
    keys: Mapping[tuple[str, ...], Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EnvFamily:
    """Environments with the same parameters."""

    name: str  # of their parameter space, which presets are filed under
    ids: tuple[EnvId, ...]
    presets: Mapping[str, Randomization] = field(default_factory=dict)  # by name
    camera: str = ""  # "module:function", called with an environment that is to be drawn; leaves strangers alone
    # settings and options that an algorithm begins with here, instead of its own defaults: algorithm -> name -> value
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bench_threshold: float | None = None  # mean training return that ``gymdr bench`` trains to


FAMILIES: Registry[EnvFamily] = Registry("family of environments")
ENVIRONMENTS: Registry[EnvId] = Registry("environment")  # by id


def family_of(env_id: str) -> EnvFamily | None:
    """The family of an id, which may have a module before it; None for environments that are not of ours."""
    name = env_id.rpartition(":")[2]
    return next((family for family in FAMILIES.values() if name in [env.id for env in family.ids]), None)


def point_camera(env: gym.Env[Any, Any]) -> None:
    """Prepares an environment, of ours or not, for pictures that show what matters."""
    for camera in {family.camera for family in FAMILIES.values() if family.camera}:
        load_object(camera)(env)


def add_family(family: EnvFamily, owner: str) -> None:
    """Registers a family, its presets, and its ids with Gymnasium; the same one of the same owner again does nothing.

    Raises:
        NameClashError: Another package has added something of the same name.
        ValueError: Gymnasium knows another environment of an id.
    """
    FAMILIES.add(family.name, family, owner)
    for name, randomization in family.presets.items():
        add_preset(family.name, name, randomization, owner)
    for env in family.ids:
        ENVIRONMENTS.add(env.id, env, owner)
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


def remove_family(family: EnvFamily) -> None:
    """Takes back what ``add_family`` has registered."""
    FAMILIES.remove(family.name)
    for name in family.presets:
        remove_preset(family.name, name)
    for env in family.ids:
        ENVIRONMENTS.remove(env.id)
        gym.registry.pop(env.id, None)
