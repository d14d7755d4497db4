"""What the physics of a family of environments offers to ``NativeVectorEnv``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.envs.info import Info
from gym_dr.envs.vector_arguments import check_actions
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.table import ParamTable

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps


# Many steps with a policy in one compiled call, until an episode ends:
# (policy, noise, steps, elapsed, max_steps, (first row, last row + 1)) -> last row played + 1
Rollout = Callable[["SmallPolicy", Floats, "Steps", Indices, int, tuple[int, int]], int]


class Outcome(NamedTuple):
    """What a step led to; fresh arrays of all sub-environments."""

    rewards: Array  # (N,)
    terminations: Mask  # (N,)
    info: Info  # name -> (N, ...), what those that were stepped report
    diverged: Mask | None = None  # (N,) simulations that broke down, which truncates their episodes; None for none


class Backend(Protocol):
    """N sub-environments of one kind, stepped together.

    A backend knows physics, observations and rewards. Seeds, draws, episode limits, autoreset, info and context are the
    vector environment's. Arguments of its methods have been checked, except for actions.

    A class that inherits from this one may leave out ``num_threads`` (1), ``rollout`` (none), ``begin`` and
    ``rollout_report``, which only a rollout needs, ``check_actions`` (by ``action_space``), ``check_options`` (there
    are none), ``reset_info`` (nothing to report) and ``close`` (nothing to end).
    """

    space: ParamSpace  # what may vary
    observation_space: gym.Space[Any]  # of one sub-environment
    action_space: gym.Space[Any]  # of one sub-environment
    metadata: Mapping[str, Any]
    num_threads: int = 1  # that step the sub-environments
    push_size: int  # numbers that ``push`` takes for each sub-environment
    observations: npt.NDArray[Any]  # (N, size), the latest; overwritten in place or replaced by each call

    @property
    def rollout(self) -> Rollout | None:
        """The compiled rollout; None where there is none, or not with this number of threads."""
        return None

    def allocate(self, num_envs: int, num_threads: int | None) -> Array | None:
        """Makes the sub-environments; comes after all arguments have been checked, since it may take long.

        Returns:
            Memory for ``ParamTable.current`` that the physics read in place, shape ``(parameters, num_envs)``, or None.

        Raises:
            ConfigError: There is not memory enough.
        """
        ...

    def check_actions(self, actions: Any) -> npt.NDArray[Any]:
        """Actions of all sub-environments as an array.

        Raises:
            InvalidActionError: They have the wrong shape or type, are not finite or none of the choices.
        """
        checked: npt.NDArray[Any] = check_actions(actions, batch_space(self.action_space, len(self.observations)))
        return checked

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        """Starts the random streams of some sub-environments anew."""
        ...

    def generators(self) -> tuple[np.random.Generator, ...]:
        """Generators in the state of each sub-environment's random stream."""
        ...

    def check_options(self, options: Mapping[str, Any]) -> Any:
        """Reads what the physics take of the options of ``reset``, before anything is changed.

        Returns:
            What ``reset`` is given; None for nothing.

        Raises:
            RandomizationError: A value is impossible.
        """
        return None

    def reset(self, envs: Indices, table: ParamTable, options: Any = None) -> None:
        """Begins episodes in some sub-environments, each once, with the table's current values.

        Args:
            envs: The sub-environments.
            table: With the values.
            options: What ``check_options`` returned; None for episodes that begin on their own.
        """
        ...

    def begin(self, envs: Indices) -> None:
        """Has the coming rollout's first step begin episodes in some sub-environments, with the table's values."""
        return

    def rollout_report(self) -> tuple[Info, Mask | None]:
        """What the last row of a rollout reports, and who diverged in it: as ``Outcome`` has them."""
        return {}, None

    def step(self, actions: npt.NDArray[Any], begun: Indices | None, table: ParamTable) -> Outcome:
        """Advances every sub-environment, but for those in ``begun``, which it resets.

        Args:
            actions: From ``check_actions``.
            begun: Sub-environments whose episode begins; their rewards and terminations are 0. None for none.
            table: With the current values of those.
        """
        ...

    def reset_info(self) -> Info:
        """What sub-environments report at a reset: name -> ``(N, ...)``, fresh arrays."""
        return {}

    def push(self, velocities: Array, envs: Indices) -> None:
        """Adds velocities ``(len(envs), push_size)`` to those of some sub-environments, as a blow would."""
        ...

    def render(self, env: int) -> Any:
        """One frame of a sub-environment."""
        ...

    def close(self) -> None:
        """Ends threads and gives memory back; also before ``allocate``."""
        ...
