"""What ``gymnasium.make`` and ``make_vec`` call for Gymnasium's MuJoCo environments with randomized models.

Physics, observations and rewards of the single environment come from Gymnasium's own classes (MIT license).
"""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv

from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.engine import BatchEngine, engine_class
from gym_dr.envs.mujoco.reference import make_reference
from gym_dr.envs.mujoco.tasks import TASKS
from gym_dr.envs.mujoco.wrapper import RandomizeMujoco
from gym_dr.envs.vector import NativeVectorEnv

RENDERED = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]}
_CLOSED_FORM = frozenset({"InvertedPendulum-v5"})  # environments with known equations of motion, ...
_OTHER_PHYSICS = frozenset({"xml_file", "frame_skip"})  # ... unless one of these keywords changes them


def make(
    reference: str, *, randomization: Any = "default", context: str = "info", context_params: Any = None, **kwargs: Any
) -> RandomizeMujoco:
    """Makes one of Gymnasium's environments and randomizes its model.

    Args:
        reference: Gymnasium's id, such as "Hopper-v5".
        randomization: See ``RandomizeMujoco``, as for ``context`` and ``context_params``.
        context: Who may see the draw.
        context_params: Which parameters the observation shows.
        **kwargs: Keywords of Gymnasium's class.
    """
    return RandomizeMujoco(make_reference(reference, **kwargs), randomization, context, context_params)


make.metadata = RENDERED  # type: ignore[attr-defined]  # gymnasium.make reads it to collect the frames of "rgb_array_list"


class MujocoVectorEnv(NativeVectorEnv, VectorEnv[Any, Any, Any]):
    """Many MuJoCo environments with randomized models; also takes the keywords of Gymnasium's class.

    ``params`` and ``info["params"]`` report the randomized parameters and those set by hand.
    """

    def _make_backend(self, render_mode: str | None, reference: str = "", **kwargs: Any) -> MujocoBackend:
        env = make_reference(reference, render_mode=render_mode, **kwargs)
        task = TASKS[reference](env)
        if reference in _CLOSED_FORM and _OTHER_PHYSICS.isdisjoint(kwargs) and engine_class(False) is BatchEngine:
            from gym_dr.envs.mujoco.closed_form import ClosedFormBackend  # heavy: numba

            return ClosedFormBackend(env, task)
        return MujocoBackend(env, task)
