"""Environments that a user's functions make, with ids like ours."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from gym_dr.envs.family import (
    ENVIRONMENTS,
    FAMILIES,
    EnvFamily,
    EnvId,
    read_presets,
    register_own,
    takes_arguments,
)
from gym_dr.envs.vector_arguments import check_optional_number, check_whole_number
from gym_dr.errors import ConfigError, RandomizationError, located, shortened
from gym_dr.randomization.episode import RandomizedWrapper
from gym_dr.randomization.presets import DEFAULT, add_preset, presets
from gym_dr.randomization.spec import Randomization


@dataclass(frozen=True, kw_only=True)
class OwnFamily(EnvFamily):
    """An environment that a user's function makes."""

    presets: dict[str, Randomization]  # the user's; those of the environment are added when one is made
    make: Callable[..., gym.Env[Any, Any]]

    @property
    def only(self) -> gym.Env[Any, Any] | None:
        """The environment that it makes each time, an object of its user; None for a new one."""
        return self.make.args[0] if isinstance(self.make, functools.partial) and self.make.func is _Lent else None


class OwnEnv(RandomizedWrapper):
    """Draws the parameters of an environment in place of the randomized layer inside it."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        family: OwnFamily,
        randomization: Any = DEFAULT,
        context: str = "info",
        context_params: Any = None,
    ) -> None:
        """Wraps an environment.

        Args:
            env: A randomized environment.
            family: Its family, which gets its presets unless it has others with their names; "default" is what the
                environment draws by itself, if it draws.
            randomization: See ``NativeVectorEnv``, as for ``context`` and ``context_params``.
            context: Who may see the draw.
            context_params: Which parameters the observation shows.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
            ConfigError: ``context_params`` without ``context="observation"``, or observations are not a flat box.
        """
        gym.Wrapper.__init__(self, env)
        inner, drawn = env.get_wrapper_attr("param_space"), env.get_wrapper_attr("randomization")
        for name, rules in {**presets(inner.name), **({DEFAULT: drawn} if drawn else {})}.items():
            if name not in presets(family.name):
                add_preset(family.name, name, rules, FAMILIES.owner(family.name))
                family.presets[name] = rules
        space = object.__new__(type(inner))  # a copy, under the name of its presets here
        vars(space).update(vars(inner), name=family.name)
        self._undrawn = {param: float(space[param].nominal) for param in drawn}
        self._randomize(space, randomization, context, context_params)
        self.observation_space = self.context.extend_space(env.observation_space)

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]  # an attribute of environments, a property of wrappers
        """That of the id, which makes this wrapper and all inside it."""
        return self.unwrapped.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters; ``options={"params": {...}}`` sets exact values for it."""
        rest, seeded = self._begin_episode(seed, options), self.unwrapped.np_random_seed
        self.env.set_wrapper_attr("exact_params", {**self._undrawn, **self._values})
        # trainers use larger seeds than numpy's RandomState, which dm_control has, accepts
        observation, info = self.env.reset(seed=None if seed is None else seed % 2**32, options=rest)
        self.unwrapped._np_random_seed = seeded
        self._note_attributes()
        return self._visible(observation, info)


class _Lent(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that belongs to a user, who gets it back open and with its own spec."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._lent = env.unwrapped.spec

    def close(self) -> None:
        self.unwrapped.spec = self._lent


def make(
    registered: str,
    *,
    randomization: Any = DEFAULT,
    context: str = "info",
    context_params: Any = None,
    **kwargs: Any,
) -> OwnEnv:
    """Makes an environment of an id.

    Args:
        registered: The module that registers the id, a colon, and the id.
        randomization: See ``OwnEnv``, as for ``context`` and ``context_params``.
        context: Who may see the draw.
        context_params: Which parameters the observation shows.
        **kwargs: Passed to the user's function.

    Raises:
        UnknownNameError: The module does not register the id.
        RandomizationError: The function returns something else than a randomized environment.
    """
    module, _, name = registered.rpartition(":")
    if name not in FAMILIES:  # in the process of an async environment
        importlib.import_module(module)
    family = cast(OwnFamily, FAMILIES.get(name))
    with located(f"Environment {name!r}"):
        return OwnEnv(_randomized(family.make(**kwargs)), family, randomization, context, context_params)


def register(
    id: str,  # as in gymnasium.register
    make: Callable[..., gym.Env[Any, Any]],
    *,
    randomization: Any = None,
    presets: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    reward_threshold: float | None = None,
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Registers a function that makes a randomized environment, so that its id works like those of ours.

    The id draws the parameters, in place of the wrappers that the function uses: nominal values and other ranges need
    no other function. Registering an id again in the same module replaces it in environments that are made afterwards.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> def make(**kwargs):
        ...     return gym_dr.RandomizeMujoco(gym.make("Hopper-v5", **kwargs), {"gravity.z": (-12, -8)})
        >>> gym_dr.register("my/Hopper-v0", make)
        >>> _, info = gym.make("my/Hopper-v0", randomization={"body_mass:*": gym_dr.Scale((0.5, 2))}).reset(seed=1)
        >>> "gravity.z" in info["params"]
        False

    Args:
        id: Id of the environment: "Hammer-v0", or "my/Hammer-v0". At the command line and in ``gymnasium.make``,
            ``module:my/Hammer-v0`` imports the module that registers it.
        make: Returns a new environment with ``RandomizeMujoco``, ``RandomizeAttributes`` or one of our ids inside, and
            any other wrappers. It gets the keywords of ``gymnasium.make``, such as ``render_mode``.
        randomization: What varies if nothing else is given, as a mapping or a ``Randomization``; None for what the
            environment varies by itself, or else its preset "default".
        presets: Further presets by name. Those of the environment inside exist, too, unless replaced here.
        max_episode_steps: Steps after which an episode is truncated; None if only the function limits them.
        reward_threshold: Return at which the task counts as solved.
        defaults: Settings and options that replace an algorithm's own: algorithm -> name -> value.

    Raises:
        ConfigError: ``make`` is not a function, or needs arguments; a number is impossible; or the id is malformed or
            belongs to another environment or another module.
        RandomizationError: A preset is impossible.
    """
    origin = (caller := sys._getframe(1)).f_globals.get("__name__", ""), caller.f_code.co_filename
    with located(f"Environment {id!r}"):
        if not (callable(make) and takes_arguments(make, 0)):
            raise ConfigError(
                f"expected a function without arguments that makes a randomized environment, got {shortened(make)}."
            )
        if not isinstance(id, str) or ":" in id:
            raise ConfigError("expected an id such as 'my/Hammer-v0', without the module, which commands put in front.")
        own = read_presets({} if presets is None else presets)
        own |= read_presets({} if randomization is None else {DEFAULT: randomization})
        env = EnvId(
            id=id,
            entry_point=f"{__name__}:make",
            max_episode_steps=None
            if max_episode_steps is None
            else check_whole_number("max_episode_steps", max_episode_steps),
            reward_threshold=check_optional_number("reward_threshold", reward_threshold),
            kwargs={"registered": f"{origin[0]}:{id}"},
        )
        family = OwnFamily(name=id, ids=(env,), presets=own, defaults=defaults or {}, origin=origin, make=make)
        register_own(family, ConfigError)


def id_of(env: Any) -> str:
    """The id of an environment; functions and objects get one, and keep it.

    Raises:
        ConfigError: It is a function that needs arguments.
        RandomizationError: It is something else.
    """
    if isinstance(env, str):
        return env
    if known := next((f.name for f in FAMILIES.values() if isinstance(f, OwnFamily) and env in (f.make, f.only)), None):
        return known
    with located("`env`"):
        is_function = callable(env) and not isinstance(env, gym.Env)
        make: Any = env if is_function else functools.partial(_Lent, _randomized(env))
    kind = type(env.unwrapped) if isinstance(env, gym.Env) else env
    name = f"program/{getattr(kind, '__name__', type(kind).__name__).strip('<>')}"
    env_id = next(one for one in (f"{name}{k or ''}" for k in itertools.count()) if one not in ENVIRONMENTS)
    register(env_id, make, reward_threshold=getattr(getattr(env, "spec", None), "reward_threshold", None))
    return env_id


def _randomized(env: Any) -> gym.Env[Any, Any]:
    """The environment, if it is one and is randomized."""
    if isinstance(env, gym.Env) and env.has_wrapper_attr("pinned_params"):
        return env
    raise RandomizationError(
        "expected an environment with RandomizeMujoco, RandomizeAttributes or one of our ids inside, got "
        f"{shortened(env)}. gym_dr.register gives a function that makes one an id."
    )
