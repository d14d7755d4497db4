"""The interface between the physics of a family and the environments on it: ``NativeVectorEnv``, ``CompiledEnv``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.envs.info import Info
from gym_dr.envs.replay import LogReplay
from gym_dr.envs.states import EnvState, check_within
from gym_dr.envs.vector_arguments import check_actions
from gym_dr.errors import EnvStateError
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.table import ParamTable

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps


# Many steps with a policy in one compiled call, until an episode ends:
# (policy, noise, steps, elapsed, max_steps, (first row, last row + 1)) -> last row played + 1
PlayRollout = Callable[["SmallPolicy", Floats, "Steps", Indices, int, tuple[int, int]], int]


class Outcome(NamedTuple):
    """Result of a step; new arrays with all sub-environments."""

    rewards: Array  # (N,)
    terminations: Mask  # (N,)
    info: Info  # name -> (N, ...), reported by the sub-environments that were stepped
    diverged: Mask | None = None  # (N,) simulations that diverged, which truncates their episodes; None for none


class Backend(Protocol):
    """N sub-environments of one kind, stepped together.

    A backend handles physics, observations and rewards. The environment on it handles seeds, draws, episode limits,
    autoreset, info and context, and checks all arguments except actions.

    A subclass may omit ``num_threads`` (1), ``rollout`` (none), ``begin`` and ``rollout_report`` (needed only by a
    rollout), ``check_actions`` (checks against ``action_space``), ``check_options`` (no options), ``reset_info``
    (nothing to report), ``get_state``, ``check_state`` and ``set_state`` (states are refused), ``replay`` (logs are
    refused) and ``close`` (nothing to release).
    """

    space: ParamSpace  # parameters that may vary
    observation_space: gym.Space[Any]  # of one sub-environment
    action_space: gym.Space[Any]  # of one sub-environment
    metadata: Mapping[str, Any]
    num_threads: int = 1  # threads that step the sub-environments
    push_size: int  # size of a push of one sub-environment
    observations: npt.NDArray[Any]  # (N, size), the latest; overwritten in place or replaced by each call

    @property
    def rollout(self) -> PlayRollout | None:
        """The compiled rollout; None if there is none, or none for this number of threads."""
        return None

    def allocate(self, num_envs: int, num_threads: int | None) -> Array | None:
        """Makes the sub-environments; called after all arguments have been checked, since it may take long.

        Returns:
            Memory for ``ParamTable.current`` if the physics reads it in place, shape ``(parameters, num_envs)``.

        Raises:
            ConfigError: There is not enough memory.
        """
        ...

    def check_actions(self, actions: Any) -> npt.NDArray[Any]:
        """Actions of all sub-environments as an array.

        Raises:
            InvalidActionError: They have the wrong shape or type, are not finite or not among the choices.
        """
        checked: npt.NDArray[Any] = check_actions(actions, batch_space(self.action_space, len(self.observations)))
        return checked

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        """Restarts the random streams of some sub-environments."""
        ...

    def generators(self) -> tuple[np.random.Generator, ...]:
        """Generators in the state of each sub-environment's random stream."""
        ...

    def check_options(self, options: Mapping[str, Any]) -> Any:
        """Reads the options of ``reset`` that concern the physics, before anything changes.

        Returns:
            Passed to ``reset`` as ``options``; None for nothing.

        Raises:
            RandomizationError: A value is impossible.
        """
        return None

    def reset(self, envs: Indices, table: ParamTable, options: Any = None) -> None:
        """Begins episodes in some sub-environments, each once, with the table's current values.

        Args:
            envs: The sub-environments.
            table: Holds the values.
            options: From ``check_options``; None for episodes begun by autoreset.
        """
        ...

    def begin(self, envs: Indices) -> None:
        """Makes the first step of the next rollout begin episodes in some sub-environments, with the table's values."""
        return

    def rollout_report(self) -> tuple[Info, Mask | None]:
        """``info`` and ``diverged`` of a rollout's last row, as in ``Outcome``."""
        return {}, None

    def step(self, actions: npt.NDArray[Any], begun: Indices | None, table: ParamTable) -> Outcome:
        """Steps every sub-environment except those in ``begun``, which it resets.

        Args:
            actions: From ``check_actions``.
            begun: Sub-environments whose episodes begin; their rewards and terminations are 0. None for none.
            table: Holds the current values of those.
        """
        ...

    def reset_info(self) -> Info:
        """What sub-environments report at a reset: name -> ``(N, ...)``, new arrays."""
        return {}

    def push(self, velocities: Array, envs: Indices) -> None:
        """Adds velocities ``(len(envs), push_size)`` to those of some sub-environments, like an impact."""
        ...

    def get_state(self) -> EnvState:
        """The physics and random streams of all sub-environments, new arrays ``(N, ...)`` by name.

        What follows from the table's current values may be left out.

        Raises:
            EnvStateError: This physics cannot give it exactly.
        """
        raise EnvStateError(f"{type(self).__name__} does not offer its state.")

    def check_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Checks numbers of a state that has the layout of ``get_state``, before anything changes.

        Raises:
            EnvStateError: One is impossible.
        """
        for name in {"streams", "clouds"} & state.keys():  # see ``compiled.pcg64``: an output's half, left over
            check_within(f"physics/{name}", state[name][:, -1], 0, 2**32 - 1)

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices, table: ParamTable) -> None:
        """Restores the rows of some sub-environments; the table has their values already."""
        ...

    def replay(self, table: ParamTable) -> LogReplay:
        """Replays logged motion in all sub-environments, which are of no other use from then on.

        Raises:
            EnvStateError: What observations leave open of this physics is too much.
        """
        raise EnvStateError(f"{type(self).__name__} does not say what of its state an observation determines.")

    def render(self, env: int) -> Any:
        """One frame of a sub-environment."""
        ...

    def close(self) -> None:
        """Ends threads and frees memory; may be called before ``allocate``."""
        ...


class CompiledBackend(Backend):
    """A backend whose random numbers are in memory that compiled code reads.

    Attributes:
        streams: The random stream of each sub-environment, shape ``(N, STREAM)``, see ``compiled.pcg64``.
        random_steps: Whether steps draw random numbers too, not only resets.
    """

    streams: npt.NDArray[np.uint64]
    random_steps: bool = True

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        from gym_dr.compiled.pcg64 import seeded  # heavy: numba

        for i, seed in zip(envs, seeds, strict=True):
            self.streams[i] = seeded(seed)

    def generators(self) -> tuple[np.random.Generator, ...]:
        """See ``Backend.generators``; drawing from them changes nothing."""
        from gym_dr.compiled.pcg64 import generator

        return tuple(map(generator, self.streams))
