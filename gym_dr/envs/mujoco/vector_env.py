"""The native MuJoCo environments, made on demand: ``HopperVectorEnv`` and so on."""

from __future__ import annotations

from functools import cache
from typing import Any

from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.presets import PRESETS
from gym_dr.envs.native import NativeVectorEnv
from gym_dr.envs.stock import class_of

_CLOSED_FORM = frozenset({"InvertedPendulum"})  # environments with known equations of motion, ...
_OTHER_PHYSICS = frozenset({"xml_file", "frame_skip"})  # ... unless one of these keywords changes them


class MujocoVectorEnv(NativeVectorEnv):
    """Many MuJoCo environments with randomized models; also takes the keywords of Gymnasium's class.

    ``params`` and ``info["params"]`` report the randomized parameters and those set by hand.
    """

    space_name: str  # name under which presets are registered

    def _make_backend(self, render_mode: str | None, **kwargs: Any) -> MujocoBackend:
        if self.space_name in _CLOSED_FORM and _OTHER_PHYSICS.isdisjoint(kwargs):
            from gym_dr.envs.mujoco.closed_form import ClosedFormBackend  # heavy: numba

            return ClosedFormBackend(self.space_name, render_mode=render_mode, **kwargs)
        return MujocoBackend(self.space_name, render_mode=render_mode, **kwargs)


@cache
def __getattr__(name: str) -> Any:
    """The class of a vector environment, such as ``HopperVectorEnv``, made on demand."""
    return class_of(name, "VectorEnv", __name__, PRESETS, lambda env: ((MujocoVectorEnv,), {"space_name": env}))
