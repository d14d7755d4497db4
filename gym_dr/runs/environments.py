"""Makes the environments of a run from their id."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError, unknown_name
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

VECTORIZATIONS = ("auto", "sync", "async", "native")


def check_env_id(env_id: str) -> None:
    """Checks that an environment is registered; ``module:id`` imports the module first, as Gymnasium does.

    Raises:
        UnknownNameError: There is no such environment.
        ConfigError: The module cannot be imported.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ConfigError(f"Environment {env_id!r}: module {module!r} cannot be imported: {error}.") from None
    if name not in gym.registry:
        # Gymnasium knows over a hundred ids: the nearest may be any, but they are not all listed
        raise unknown_name("environment", name, gym.registry, listing="gymdr list envs")


def param_space_of(env_id: str) -> ParamSpace | None:
    """What may vary in an environment; None where nothing can."""
    check_env_id(env_id)
    env = gym.make(env_id)
    try:
        if not env.has_wrapper_attr("param_space"):
            return None
        space: ParamSpace = env.get_wrapper_attr("param_space")
        return space
    finally:
        env.close()


def make_env(env_id: str, randomization: Randomization | None, **kwargs: Any) -> gym.Env[Any, Any]:
    """One environment; without randomization as the id says."""
    check_env_id(env_id)
    if randomization is not None:
        kwargs["randomization"] = randomization
    return gym.make(env_id, **kwargs)


def make_vector_env(
    env_id: str, num_envs: int, vectorization: str, randomization: Randomization | None
) -> VectorEnv[Any, Any, Any]:
    """A vector environment.

    Args:
        env_id: A registered id.
        num_envs: Sub-environments.
        vectorization: "auto" (native where there is one, else sync), "sync", "async" or "native".
        randomization: None for environments without parameters.

    Raises:
        UnknownNameError: There is no such environment or vectorization.
        ConfigError: The environment has no native vector environment.
    """
    check_env_id(env_id)
    if vectorization not in VECTORIZATIONS:
        raise unknown_name("vectorization", vectorization, VECTORIZATIONS)
    kwargs: dict[str, Any] = {} if randomization is None else {"randomization": randomization}
    mode = {"auto": None, "native": "vector_entry_point"}.get(vectorization, vectorization)
    native = gym.spec(env_id.rpartition(":")[2]).vector_entry_point
    if vectorization == "native" and native is None:
        raise ConfigError(f"{env_id} has no native vector environment; use --vectorization sync or async.")
    if randomization is None and mode is None:
        mode = "sync"  # Gymnasium's own native ones give no NEXT_STEP autoreset with info that trainers rely on
    return gym.make_vec(env_id, num_envs, vectorization_mode=mode, **kwargs)
