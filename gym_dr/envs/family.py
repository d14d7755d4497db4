"""Descriptors of environment families: the one place for ids, presets, keys and cameras."""

from __future__ import annotations

import functools
import inspect
import math
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

UNLIMITED = (-math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class EnvId:
    """One environment id: the arguments of ``gymnasium.register``, and keys for playing by hand."""

    id: str  # "gym_dr/LunarLanderDR-v3"
    entry_point: str  # "module:Class"; the class accepts a keyword ``randomization``
    max_episode_steps: int | None = None  # steps after which an episode is truncated
    reward_threshold: float | None = None  # return at which the task counts as solved
    returns: tuple[float, float] = UNLIMITED  # the lowest and highest possible return
    vector_entry_point: str | None = None  # "module:Class" of the native vector environment, if there is one
    kwargs: Mapping[str, Any] = field(default_factory=dict)  # fixed arguments of this id
    reference: str = ""  # id of the environment with its nominal physics: "LunarLander-v3"
    discrete: bool | None = None  # whether actions are discrete; None to ask an environment
    pushed: bool = True  # whether it can be pushed; read only if its family gives a ``space``
    # arrow keys ("left", "up") -> action; () -> the action without a key, if not 0
    keys: Mapping[tuple[str, ...], Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EnvFamily:
    """Environments with the same parameters."""

    name: str  # of their parameter space, under which presets are registered
    ids: tuple[EnvId, ...]  # of its environments
    # parameters that may vary, or "module:function", an id -> these parameters; None to make an environment and ask it.
    # If given, observations are a Box of floats
    space: ParamSpace | str | None = None
    presets: Mapping[str, Randomization] = field(default_factory=dict)  # by name
    camera: str = ""  # "module:function", called with any environment before rendering; ignores those of other families
    # settings and options that replace an algorithm's own defaults: algorithm -> name -> value
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    interface: str = ""  # "module:function", an id -> its ``Interface``, which its page shows
    bench_threshold: float | None = None  # mean training return at which ``gymdr bench`` stops training
    # module and file of a user's functions, which may register the id again; None for other families
    origin: tuple[str, str] | None = None


FAMILIES: Registry[EnvFamily] = Registry("family of environments")
ENVIRONMENTS: Registry[EnvId] = Registry("environment")  # by id


def family_of(env_id: str) -> EnvFamily | None:
    """The family of an id, with or without a module prefix; None if the id belongs to no family."""
    name = env_id.rpartition(":")[2]
    return next((family for family in FAMILIES.values() if name in [env.id for env in family.ids]), None)


def return_limits(env_id: str) -> tuple[float, float]:
    """The lowest and highest possible return of an environment, as far as its family tells."""
    name = env_id.rpartition(":")[2]
    return ENVIRONMENTS.get(name).returns if name in ENVIRONMENTS else UNLIMITED


def difference_limits(env_id: str) -> tuple[float, float]:
    """The lowest and highest possible difference of two returns."""
    low, high = return_limits(env_id)
    return low - high, high - low


def reference_class(env_id: str) -> type[Any]:
    """Gymnasium's class of an environment such as "Hopper-v5"."""
    return cast(type[Any], load_env_creator(str(gym.spec(env_id).entry_point)))


def interface_of(env_id: str) -> Interface | None:
    """The meaning of an id's observations and actions; None if its family does not describe them."""
    family = family_of(env_id)
    if family is None or not family.interface:
        return None
    return cast(Interface, load_object(family.interface)(env_id.rpartition(":")[2]))


def randomized_id(env_id: str) -> str | None:
    """The id whose reference is a given environment, in any version; None if there is none."""
    name = env_id.rpartition(":")[2].rpartition("-v")[0]
    return next(
        (env.id for env in ENVIRONMENTS.values() if env.reference and name == env.reference.rpartition("-v")[0]), None
    )


def described_space(env_id: str) -> tuple[ParamSpace, EnvId] | None:
    """The parameter space and ``EnvId`` of an environment, from its family alone.

    None if no family describes its space and actions, or if the id has been registered again since.
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
    """Points an environment's camera at what matters, before rendering."""
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
        raise RandomizationError(f"presets: expected names with mappings of parameters to distributions, got {got}.")
    found = {}
    for name, value in given.items():
        if name == NONE or not isinstance(name, str) or not isinstance(value, Mapping):  # a Randomization is one
            raise RandomizationError(
                f"presets: expected names other than {NONE!r} (nominal values), each with a mapping of parameters to "
                f"distributions, got {name!r}: {shortened(value)}."
            )
        with located(f"preset {name!r}"):
            found[name] = value if isinstance(value, Randomization) else Randomization.from_dict(value)
    return found


def origin_of(function: Any) -> tuple[str, str]:
    """Module and file of a function, a ``partial`` or another callable."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return str(getattr(function, "__module__", "")), code.co_filename if code else ""


def takes_arguments(function: Any, count: int) -> bool:
    """Whether a function takes ``count`` positional arguments; True for functions in C without a signature."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def register_own(family: EnvFamily, error: type[GymDrError]) -> None:
    """Registers a program's own family of one id, in place of one that its module or file registered before.

    Args:
        family: With its ``origin``.
        error: Type of the errors about names.

    Raises:
        GymDrError: The id is malformed, another environment has it, or another family the name. After any error, all
            registrations are as before.
        NameClashError: The program has already added a preset of the same name.
    """
    env, known = family.ids[0], family_of(family.ids[0].id)
    spec, owner = gym.registry.get(env.id), family.origin[0] if family.origin else ""
    if (known is not None or spec is not None) and not _is_again(family, known):
        raise error("another environment is already registered with this id. Choose another id.")
    other = FAMILIES.get(family.name) if family.name in FAMILIES else None
    if other is not None and other is not known:
        ids = ", ".join(each.id for each in other.ids)
        raise error(f"the name {family.name!r} already belongs to the parameters of {ids}. Choose another name.")
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
    """Whether a family replaces one from the same module, file or interactive session."""
    if known is None or known.origin is None or family.origin is None:
        return False
    same_kind = known.ids[0].entry_point == family.ids[0].entry_point
    return same_kind and any(one == other != "" for one, other in zip(known.origin, family.origin, strict=True))
