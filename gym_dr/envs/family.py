"""Descriptors of environment families: the one place for ids, presets, keys and cameras."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from gym_dr.envs.interface import Interface
from gym_dr.errors import GymDrError, RandomizationError, located, shortened
from gym_dr.randomization.presets import NONE, PRESETS, add_preset, remove_preset
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry, all_or_nothing, load_object


@dataclass(frozen=True, kw_only=True)
class EnvId:
    """One environment id: the arguments of ``gymnasium.register``, and keys for playing by hand."""

    id: str  # "gym_dr/LunarLanderDR-v3"
    entry_point: str  # "module:Class"; the class accepts a keyword ``randomization``
    max_episode_steps: int | None = None  # steps after which an episode is truncated
    reward_threshold: float | None = None  # return at which the task counts as solved
    vector_entry_point: str | None = None  # "module:Class" of the native vector environment, if there is one
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments of this id
    reference: str = ""  # id of the environment with its nominal physics: "LunarLander-v3"
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
    # module and file of the functions that a user gave, who may register the id again; None if there are none
    origin: tuple[str, str] | None = None


FAMILIES: Registry[EnvFamily] = Registry("family of environments")
ENVIRONMENTS: Registry[EnvId] = Registry("environment")  # by id


def family_of(env_id: str) -> EnvFamily | None:
    """The family of an id, with or without a module prefix; None if the id belongs to no family."""
    name = env_id.rpartition(":")[2]
    return next((family for family in FAMILIES.values() if name in [env.id for env in family.ids]), None)


def reference_class(env_id: str) -> type[Any]:
    """Gymnasium's class of an environment such as "Hopper-v5"."""
    creator: Any = load_env_creator(str(gym.spec(env_id).entry_point))
    return cast(type[Any], creator)


def interface_of(env_id: str) -> Interface | None:
    """What the numbers of an id's observations and actions are; None if its family does not say."""
    family = family_of(env_id)
    if family is None or not family.interface:
        return None
    found: Interface = load_object(family.interface)(env_id.rpartition(":")[2])
    return found


def randomized_id(env_id: str) -> str | None:
    """The id that is registered with the physics of another one, any version of it; None if there is none."""
    name = env_id.rpartition(":")[2].rpartition("-v")[0]
    return next(
        (env.id for env in ENVIRONMENTS.values() if env.reference and name == env.reference.rpartition("-v")[0]), None
    )


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


# ---- environments of a user's functions ------------------------------------------------------------------------------


def read_presets(given: Any) -> dict[str, Randomization]:
    """Presets by name, from a mapping of names to mappings or to ``Randomization``.

    Raises:
        RandomizationError: It is something else, a name is taken, or a rule is impossible.
    """
    if not isinstance(given, Mapping):
        got = shortened(given)
        raise RandomizationError(f"presets: expected names with mappings of parameters to their draws, got {got}.")
    found = {}
    for name, value in given.items():
        if name == NONE or not isinstance(name, str) or not isinstance(value, Mapping):  # a Randomization is one
            raise RandomizationError(
                f"presets: expected names other than {NONE!r}, which is nominal values, with mappings of parameters to "
                f"their draws, got {name!r}: {shortened(value)}."
            )
        with located(f"preset {name!r}"):
            found[name] = value if isinstance(value, Randomization) else Randomization.from_dict(value)
    return found


def origin_of(function: Any) -> tuple[str, str]:
    """Module and file of a function, of what a ``partial`` calls, or of an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return str(getattr(function, "__module__", "")), code.co_filename if code else ""


def takes_arguments(function: Any, count: int) -> bool:
    """Whether a function takes so many arguments by position; True for one in C that does not say what it takes."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def register_own(family: EnvFamily, error: type[GymDrError]) -> None:
    """Registers the family of one id that a program makes, in place of what its module or file registered before.

    Args:
        family: With its ``origin``.
        error: Type of the errors about names.

    Raises:
        GymDrError: The id is malformed, another environment has it, or another family the name. As for other errors,
            all registrations are as before.
        NameClashError: The program has already added a preset with the name of one of the family's.
    """
    env, known = family.ids[0], family_of(family.ids[0].id)
    spec, owner = gym.registry.get(env.id), family.origin[0] if family.origin else ""
    if (known is not None or spec is not None) and not _is_again(family, known):
        raise error("another environment is already registered with this id. Choose another id.")
    other = FAMILIES.get(family.name) if family.name in FAMILIES else None
    if other is not None and other is not known:
        ids = ", ".join(each.id for each in other.ids)
        raise error(f"the name {family.name!r} is already that of the parameters of {ids}. Choose another name.")
    try:
        with all_or_nothing(FAMILIES, ENVIRONMENTS, PRESETS):
            if known is not None:
                remove_family(known)
            add_family(family, owner)
    except BaseException as problem:
        gym.registry.pop(env.id, None)
        if spec is not None:
            gym.registry[env.id] = spec
        if isinstance(problem, gym.error.Error):  # a malformed id, or a version beside an id without one
            raise error(str(problem)) from None
        raise


def _is_again(family: EnvFamily, known: EnvFamily | None) -> bool:
    """Whether a module, a file, or somebody at a prompt, registers again what it has registered."""
    if known is None or known.origin is None or family.origin is None:
        return False
    same_kind = known.ids[0].entry_point == family.ids[0].entry_point
    return same_kind and any(one == other != "" for one, other in zip(known.origin, family.origin, strict=True))
