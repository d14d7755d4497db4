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
from gymnasium.utils import EzPickle

from gym_dr.envs.mujoco.episode import RandomizedModel
from gym_dr.envs.mujoco.presets import PRESETS
from gym_dr.envs.mujoco.stock import pushed_dofs, quiet_compiler
from gym_dr.envs.stock import class_of, stock_class
from gym_dr.errors import ConfigError


class RandomizedMujoco(RandomizedModel, MujocoEnv):
    """A mixin that precedes Gymnasium's class."""

    space_name: str  # name under which presets are registered

    def __init__(
        self, *, randomization: Any = "default", context: str = "info", context_params: Any = None, **kwargs: Any
    ) -> None:
        """Builds the environment.

        Args:
            randomization: See ``NativeVectorEnv``, as for ``context`` and ``context_params``.
            context: Who may see the draw.
            context_params: Which parameters the observation shows.
            **kwargs: Keywords of Gymnasium's class: ``xml_file``, ``frame_skip``, ``reset_noise_scale``, ...

        Raises:
            UnknownNameError: A preset, body, geom, context or other name is unknown.
            RandomizationError: A range is impossible.
            ConfigError: ``context_params`` without ``context="observation"``.
        """
        with quiet_compiler():
            super().__init__(**kwargs)
        # replaces what Gymnasium's class recorded for pickling: its positional arguments, without randomization
        kwargs |= {"randomization": randomization, "context": context, "context_params": context_params}
        EzPickle.__init__(cast(EzPickle, self), **kwargs)
        self._randomize_model(self.space_name, randomization, context, context_params)
        self.observation_space = self.context.extend_space(self.observation_space)

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
        """
        self._check_begun("push")
        self.data.qvel[pushed_dofs(self.model)] += velocity


@cache
def __getattr__(name: str) -> Any:
    """The class of an environment, such as ``HopperDR``, derived on demand from Gymnasium's class."""
    return class_of(
        name,
        "DR",
        __name__,
        PRESETS,
        lambda env: ((RandomizedMujoco, stock_class(f"{env}-v5")), {"space_name": env}),
    )
