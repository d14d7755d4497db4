"""Facts about Gymnasium's models that need MuJoCo."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco  # type: ignore[import-untyped]
from gymnasium.envs.mujoco.mujoco_env import expand_model_path

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.mujoco.space import ModelSpace, model_space
from gym_dr.envs.stock import stock_class

# warnings after which MuJoCo resets a simulation; it continues after others (a full contact buffer, ...)
BAD_STATE = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC")]


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Keeps MuJoCo's messages about Gymnasium's models (deprecations) out of MUJOCO_LOG.TXT."""
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(handler)


def space_of(env_id: str) -> ModelSpace:
    """What may vary in an environment with Gymnasium's model, which is read from its file."""
    stock = ENVIRONMENTS.get(env_id).stock
    keywords = inspect.signature(stock_class(stock)).parameters
    with quiet_compiler():
        model = mujoco.MjModel.from_xml_path(expand_model_path(keywords["xml_file"].default))
    return model_space(stock.rpartition("-v")[0], model)


def pushed_dofs(model: Any) -> list[int]:
    """The degrees of freedom that a push moves: x and y of a model that floats freely, otherwise the first one."""
    return [0, 1] if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else [0]
