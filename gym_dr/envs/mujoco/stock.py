"""Gymnasium's MuJoCo environments: their classes, and what is asked of MuJoCo about their models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
from gymnasium.envs.registration import load_env_creator

from gym_dr.envs.mujoco.presets import PRESETS

# what MuJoCo resets a simulation for; the others (a full contact buffer, ...) leave it running
BAD_STATE = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC")]


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Keeps what MuJoCo says while it compiles Gymnasium's models (deprecations) out of MUJOCO_LOG.TXT."""
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(handler)


def class_of(name: str, suffix: str, module: str, bases: Callable[[str], tuple[type[Any], ...]]) -> Any:
    """The class that a module is asked for, such as ``HopperDR``.

    Args:
        name: Of the class.
        suffix: What follows the environment's name in it.
        module: That is asked.
        bases: Environment's name -> what the class inherits from.

    Raises:
        AttributeError: There is no such environment.
    """
    env = name.removesuffix(suffix)
    if env == name or env not in PRESETS:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    members = {"__doc__": f"{env}-v5 with randomized physics.", "__module__": module, "space_name": env}
    return type(name, bases(env), members)


def stock_class(name: str) -> type[Any]:
    """Gymnasium's class of an environment such as "Hopper"."""
    creator: Any = load_env_creator(str(gym.spec(f"{name}-v5").entry_point))
    return cast(type[Any], creator)


def pushed_dofs(model: Any) -> list[int]:
    """The degrees of freedom that a push moves: x and y of a model that floats freely, else the first one alone."""
    return [0, 1] if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else [0]
