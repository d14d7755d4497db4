"""Descriptors of environment families: the one place for ids, presets, keys and cameras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from gym_dr.randomization.presets import add_preset, remove_preset
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, load_object


@dataclass(frozen=True, kw_only=True)
class EnvId:
    """One environment id: the arguments of ``gymnasium.register``, and keys for playing by hand."""

    id: str  # "gym_dr/LunarLanderDR-v3"
    entry_point: str  # "module:Class"; the class accepts a keyword ``randomization``
    max_episode_steps: int | None = None  # steps after which an episode is truncated
    reward_threshold: float | None = None  # return at which the task counts as solved
    vector_entry_point: str | None = None  # "module:Class" of the native vector environment, if there is one
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments of this id
    stock: str = ""  # id of the environment with its nominal physics: "LunarLander-v3"
    discrete: bool | None = None  # whether actions are choices rather than numbers; None to ask an environment
    pushed: bool = True  # whether it takes pushes, if its family says what may vary
    # arrow keys ("left", "up") -> action; () -> the action without a key, if not 0
    keys: Mapping[tuple[str, ...], Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EnvFamily:
    """Environments with the same parameters."""

    name: str  # of their parameter space, under which presets are registered
    ids: tuple[EnvId, ...]  # of its environments
    # what may vary in them, or "module:function", an id -> what may vary; None to ask an environment, which is made for
    # that. If given, observations are a Box of floats
    space: ParamSpace | str | None = None
    presets: Mapping[str, Randomization] = field(default_factory=dict)  # by name
    camera: str = ""  # "module:function", called with any environment before rendering; ignores those of other families
    # settings and options that replace an algorithm's own defaults: algorithm -> name -> value
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    interface: str = ""  # "module:function", an id -> its ``Interface``, which its page shows
    bench_threshold: float | None = None  # mean training return at which ``gymdr bench`` stops training


FAMILIES: Registry[EnvFamily] = Registry("family of environments")
ENVIRONMENTS: Registry[EnvId] = Registry("environment")  # by id


def family_of(env_id: str) -> EnvFamily | None:
    """The family of an id, with or without a module prefix; None if the id belongs to no family."""
    name = env_id.rpartition(":")[2]
    return next((family for family in FAMILIES.values() if name in [env.id for env in family.ids]), None)


def randomized_id(env_id: str) -> str | None:
    """The id that is registered with the physics of another one, any version of it; None if there is none."""
    name = env_id.rpartition(":")[2].rpartition("-v")[0]
    return next((env.id for env in ENVIRONMENTS.values() if env.stock and name == env.stock.rpartition("-v")[0]), None)


def described_space(env_id: str) -> tuple[ParamSpace, EnvId] | None:
    """What may vary in an environment according to its family, and what else that says about the id.

    None if no family says what may vary and how actions are, or if the id has been registered again since.
    """
    family, name = family_of(env_id), env_id.rpartition(":")[2]
    if family is None or family.space is None:
        return None
    env = ENVIRONMENTS.get(name)
    if env.discrete is None or not _is_described(gym.spec(name), env):
        return None
    if isinstance(family.space, str):
        return load_object(family.space)(name), env
    return family.space.with_constants(env.kwargs), env


def _is_described(known: EnvSpec, env: EnvId) -> bool:
    same = (known.entry_point, known.kwargs) == (env.entry_point, dict(env.kwargs))
    return same and not known.additional_wrappers


def point_camera(env: gym.Env[Any, Any]) -> None:
    """Points the camera of any environment at what matters, before rendering."""
    for camera in {family.camera for family in FAMILIES.values() if family.camera}:
        load_object(camera)(env)


def add_family(family: EnvFamily, owner: str) -> None:
    """Registers a family, its presets, and its ids with Gymnasium; repeating it for the same owner has no effect.

    Raises:
        NameClashError: Another package has added the same name.
        ValueError: Gymnasium already has another environment with one of the ids.
    """
    FAMILIES.add(family.name, family, owner)
    for name, randomization in family.presets.items():
        add_preset(family.name, name, randomization, owner)
    for env in family.ids:
        ENVIRONMENTS.add(env.id, env, owner)
        known = gym.registry.get(env.id)
        if known is not None and not _is_described(known, env):
            raise ValueError(f"environment {env.id!r} is already registered with Gymnasium")
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
    """Removes what ``add_family`` registered."""
    FAMILIES.remove(family.name)
    for name in family.presets:
        remove_preset(family.name, name)
    for env in family.ids:
        ENVIRONMENTS.remove(env.id)
        gym.registry.pop(env.id, None)
