"""Gymnasium's MuJoCo environments whose model is edited at each reset.

Physics, observations and rewards come from Gymnasium's own classes (MIT license). With ``randomization="none"`` nothing
is edited. ``info`` and ``params`` report only randomized parameters and those set by hand, since a model has hundreds.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv

from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.episode import RandomizedModel
from gym_dr.envs.mujoco.presets import PRESETS
from gym_dr.envs.mujoco.stock import pushed_dofs, quiet_compiler
from gym_dr.envs.stock import Parts, class_of, stock_class
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.envs.vector_arguments import check_numbers
from gym_dr.errors import ConfigError
from gym_dr.randomization.episode import BuiltEnv, RandomizedEnv
from gym_dr.randomization.space import ParamSpace

_CLOSED_FORM = frozenset({"InvertedPendulum"})  # environments with known equations of motion, ...
_OTHER_PHYSICS = frozenset({"xml_file", "frame_skip"})  # ... unless one of these keywords changes them


class RandomizedMujoco(RandomizedModel, BuiltEnv, MujocoEnv):
    """A mixin that precedes Gymnasium's class."""

    space_name: str  # name under which presets are registered

    def _build(self, **kwargs: Any) -> ParamSpace:
        with quiet_compiler():
            cast(Any, super(RandomizedEnv, self)).__init__(**kwargs)  # Gymnasium's class follows this one
        return self._take_model(self.space_name)

    def render(self) -> Any:
        """Renders the robot; without a render mode, warns and returns None.

        Raises:
            ConfigError: There is no display.
        """
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        try:
            return super().render()  # type: ignore[no-untyped-call]  # Gymnasium's
        except Exception as error:  # without a display, graphics libraries raise all kinds of errors
            raise ConfigError(f"{error}: MuJoCo needs a display, or MUJOCO_GL=egl and libEGL.") from error

    @property
    def push_size(self) -> int:
        """Size of a push: 2 (x and y) if the robot floats freely, otherwise 1."""
        return len(pushed_dofs(self.model))

    def push(self, velocity: npt.NDArray[np.float64]) -> None:
        """Changes the velocity of the root instantly, like an impact (of the first joint if there is no free root).

        Args:
            velocity: Added to the velocity, m/s or rad/s, shape ``(push_size,)``.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The velocity has the wrong shape or type, or is not finite; nothing has changed.
        """
        self._check_begun("push")
        self.data.qvel[pushed_dofs(self.model)] += check_numbers(velocity, (self.push_size,), "velocities")


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
    """The class of an environment, such as ``HopperDR`` or ``HopperVectorEnv``, made on demand."""
    return class_of(name, __name__, PRESETS, _KINDS)


_KINDS: dict[str, Parts] = {
    "DR": lambda env: ((RandomizedMujoco, stock_class(f"{env}-v5")), {"space_name": env}),
    "VectorEnv": lambda env: ((MujocoVectorEnv,), {"space_name": env}),
}
