"""What the single environments and the wrapper for any MuJoCo environment share: one model, edited at each reset."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import load_env_creator

from gym_dr.envs.mujoco.editor import ModelEditor
from gym_dr.envs.mujoco.presets import PRESETS
from gym_dr.envs.mujoco.space import model_space
from gym_dr.envs.native import warn_diverged
from gym_dr.envs.vector_arguments import check_numbers
from gym_dr.errors import EnvStateError
from gym_dr.randomization.episode import EpisodeParams
from gym_dr.randomization.presets import resolve

Step = tuple[Any, Any, bool, bool, dict[str, Any]]  # observation, reward, terminated, truncated, info

# what MuJoCo resets a simulation for; the others (a full contact buffer, ...) leave it running
BAD_STATE = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC")]
# MuJoCo writes a warning to MUJOCO_LOG.TXT when its counter is 0; starting from 1 counts all the same, and is quiet
QUIET = 1


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


class ModelEpisode:
    """The randomization of one MuJoCo environment: its draws, its model and whether its simulation still holds."""

    def __init__(self, name: str, env: Any, randomization: Any) -> None:
        """Takes over the environment's model.

        Args:
            name: What presets are filed under.
            env: A ``gymnasium.envs.mujoco.MujocoEnv``, whose model holds nominal values.
            randomization: As users give it.

        Raises:
            UnknownNameError: A preset, body, geom or other name is unknown.
            RandomizationError: A range is impossible.
        """
        space = model_space(name, env.model)
        chosen = resolve(randomization, space)
        self.params = EpisodeParams(space.reporting(chosen), chosen)
        self._controls = int(env.model.nu)
        self._editor = ModelEditor(space, env.model)
        self._warnings: npt.NDArray[np.int32] = env.data.warning.number  # a live view, (number of kinds,)
        self._observation: Any = None

    def edit(self) -> None:
        """Gives the model the current values; the environment's own reset follows."""
        self._editor.apply(self.params.current)

    def observed(self, observation: Any) -> None:
        """Notes the latest observation; a copy, since callers may write into theirs."""
        self._observation = (
            copy.copy(observation) if isinstance(observation, np.ndarray) else copy.deepcopy(observation)
        )

    def check_begun(self, call: str) -> None:
        """Checks that there is an episode.

        Raises:
            EnvStateError: There was no reset yet.
        """
        if self._observation is None:
            raise EnvStateError(f"Expected reset() before {call}(): there is no episode yet.")

    def step(self, env: Any, step: Callable[[Any], Step], action: Any) -> Step:
        """Steps the environment; truncates the episode of a simulation that diverges.

        MuJoCo has put a diverged simulation back to its start. Its last step has the observation before it and no
        reward, and ``info["diverged"]`` is True.

        Args:
            env: The environment, unwrapped. It is not kept: unpickling gives its attributes to another object.
            step: Its own.
            action: Of the user.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The action has another shape, is not numbers or is not finite.
        """
        check_numbers(action, (self._controls,))
        self.check_begun("step")
        self._warnings[:] = QUIET
        with np.errstate(over="ignore"):  # a huge action costs infinitely much; a warning would leave half of a step
            observation, reward, terminated, truncated, info = step(action)
        if (self._warnings[BAD_STATE] != QUIET).any():
            observation, reward, terminated, truncated = self._observation, 0.0, False, True
            info = {**info, "diverged": True}
            warn_diverged(type(env).__name__, env.np_random_seed, self.params.draw_index, self.params.current)
        self.observed(observation)
        return observation, reward, terminated, truncated, info
