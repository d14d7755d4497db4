"""The interface between the physics of a family and the episodes of its environments (``core.py``).

A state is a flat mapping: "physics/rows" -> an array whose first axis is the sub-environment. Rows can be chosen,
repeated and saved with numpy alone: ``{name: values[[0] * 8] for name, values in state.items()}`` is the first
sub-environment, eight times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.replay import LogReplay
from gym_dr.errors import EnvStateError, shortened
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.table import ParamTable

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.envs.stepper import Stepper


Info = dict[str, npt.NDArray[Any]]  # name -> (N, ...)
EnvState = dict[str, npt.NDArray[Any]]  # name -> (N, ...)
Drawn = tuple[Indices, Indices, Array]  # sub-environments (M,) of episodes, their draw indices and values (P, M)
Divergence = tuple[str, int | None, int, dict[str, float]]  # which sub-environment, its seed, draw index and parameters
_VALUES = ("draws/value/", "draws/pin/")  # one for each parameter that was drawn or set, so states differ in them


class Outcome(NamedTuple):
    """Result of a step; new arrays with all sub-environments."""

    rewards: Array  # (N,)
    terminations: Mask  # (N,)
    # name -> (N, ...), reported by the sub-environments that were stepped; "critic" by all, of the latest observations
    info: Info
    diverged: Mask | None = None  # (N,) simulations that diverged, which truncates their episodes; None if none


class Backend(Protocol):
    """N sub-environments of one kind, stepped together.

    A backend computes physics, observations and rewards; ``Episodes`` handles seeds, draws, step limits, autoreset and
    context. All arguments have been checked already.

    A subclass may omit ``num_threads`` (1), ``bytes_each`` (few), ``observe`` (a copy of ``observations``),
    ``check_options`` (no options), ``reset_info`` (nothing to report),
    ``get_state``, ``check_state`` and ``set_state`` (states are refused), ``replay`` (logs are refused) and ``close``
    (nothing to release).
    """

    space: ParamSpace  # parameters that may vary
    observation_space: gym.Space[Any]  # of one sub-environment
    action_space: gym.Space[Any]  # of one sub-environment
    metadata: Mapping[str, Any]
    num_threads: int = 1  # threads that step the sub-environments
    push_size: int  # velocities in a push of one sub-environment
    observations: npt.NDArray[Any]  # (N, size), the latest; overwritten in place or replaced by each call
    table: ParamTable | Any = None  # parameters of the current episodes; set after ``allocate``

    @property
    def bytes_each(self) -> int:
        """About the memory of a sub-environment, without parameters and observations; too many are refused."""
        return 0

    def allocate(self, num_envs: int, num_threads: int | None) -> Array | None:
        """Makes the sub-environments; called after all arguments have been checked, since it may take long.

        Returns:
            An array for ``ParamTable.current`` if the physics reads it in place, shape ``(parameters, num_envs)``.
        """

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        """Restarts the random streams of some sub-environments."""

    def generators(self) -> tuple[np.random.Generator, ...]:
        """Generators in the state of each sub-environment's random stream."""

    def check_options(self, options: Mapping[str, Any]) -> Any:
        """Reads the options of ``reset`` that concern the physics, before anything changes.

        Returns:
            The ``options`` of ``reset``; None if there are none.

        Raises:
            RandomizationError: A value is impossible.
        """
        return None

    def reset(self, envs: Indices, options: Any = None) -> None:
        """Begins episodes in some sub-environments, each once, with the table's current values.

        The next call is ``observe``, or a ``step`` that skips ``envs``; the reset may be deferred to it.

        Args:
            envs: The sub-environments.
            options: From ``check_options``; None for episodes begun by autoreset.
        """

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        """Steps every sub-environment except those in ``skip``.

        Args:
            actions: Shape ``(N,)`` if discrete, otherwise ``(N, size)``.
            skip: Sub-environments that have just been reset; their rewards and terminations are 0. None if none.
        """

    def observe(self) -> npt.NDArray[Any]:
        """The latest observations, a new array ``(N, size)``."""
        return self.observations.copy()

    def reset_info(self) -> Info:
        """What sub-environments report at a reset: name -> ``(N, ...)``, new arrays."""
        return {}

    def push(self, velocities: Array, envs: Indices) -> None:
        """Adds velocities ``(len(envs), push_size)`` to those of some sub-environments, like an impact."""

    def apply_wrench(self, wrenches: Array, envs: Indices) -> None:
        """Sets force and torque on the floating base, ``(len(envs), 6)``, if ``space.floats``; a reset ends them."""

    def get_state(self) -> EnvState:
        """The physics and random streams of all sub-environments, new arrays ``(N, ...)`` by name.

        What follows from the table's current values may be left out.

        Raises:
            EnvStateError: The physics does not support states.
        """
        raise EnvStateError(f"{type(self).__name__} does not support get_state() and set_state().")

    def check_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Checks numbers of a state that has the layout of ``get_state``, before anything changes.

        Raises:
            EnvStateError: A number is impossible.
        """
        if "streams" in state:  # the unused half of an output, see ``compiled.pcg64``
            check_within("physics/streams", state["streams"][:, -1], 0, 2**32 - 1)

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        """Restores the rows of some sub-environments; the table has their values already."""

    def replay(self) -> LogReplay:
        """Replays logged motion in all sub-environments, which can do nothing else afterwards.

        Raises:
            EnvStateError: The physics does not support replay.
        """
        raise EnvStateError(f"{type(self).__name__} does not support the replay of logged motion.")

    def render(self, env: int) -> Any:
        """One frame of a sub-environment."""

    def close(self) -> None:
        """Ends threads and frees memory; may be called before ``allocate``."""


class CompiledBackend(Backend):
    """A backend whose step is compiled code, which draws the random numbers.

    Its ``step`` serves single environments; ``play.py`` steps many, and begins their next episodes.

    Attributes:
        stepper: The compiled step; made by ``allocate``.
        streams: The random stream of each sub-environment, shape ``(N, STREAM)``, see ``compiled.pcg64``.
        random_steps: Whether steps draw random numbers too, not only resets.
        begins: Whether ``reset`` must begin every episode, since the compiled step cannot.
    """

    stepper: Stepper
    streams: npt.NDArray[np.uint64]
    random_steps: bool = True
    begins: bool = False

    def set_actions(self, actions: npt.NDArray[Any]) -> None:
        """Stores the actions of the next step."""
        buffers = self.stepper.buffers
        (buffers.continuous if self.action_space.shape else buffers.discrete)[:] = actions

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        self.set_actions(actions)
        self.stepper.step()
        buffers = self.stepper.buffers
        return Outcome(buffers.rewards.copy(), buffers.terminations.copy(), {})

    def finish(self, envs: Indices) -> Mask | None:
        """Makes the steps that compiled code has left ``UNFINISHED``, or raises the error that has ended them.

        Args:
            envs: The sub-environments.

        Returns:
            Those of all that diverged, ``(N,)``; None if none.
        """
        raise NotImplementedError

    def report(self, rewards: Array) -> Info:
        """``Outcome.info`` of a step, or of many, with these rewards ``(..., N)``."""
        return {}

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        from gym_dr.compiled.pcg64 import seeded  # heavy: numba

        for i, seed in zip(envs, seeds, strict=True):
            self.streams[i] = seeded(seed)

    def generators(self) -> tuple[np.random.Generator, ...]:
        """See ``Backend.generators``; drawing from them changes nothing."""
        from gym_dr.compiled.pcg64 import generator

        return tuple(map(generator, self.streams))


# ---- states ----------------------------------------------------------------------------------------------------------


def check_layout(state: Any, own: EnvState) -> None:
    """Checks the names, shapes and kinds of the arrays of a state.

    Args:
        state: What is checked.
        own: The environment's own state.

    Raises:
        EnvStateError: A name, a shape or a kind differs.
    """
    if not isinstance(state, Mapping):
        raise EnvStateError(f"Expected a state from get_state(), a mapping of names to arrays, got {shortened(state)}.")
    expected = {name: values for name, values in own.items() if not name.startswith(_VALUES)}
    expected |= {name: np.zeros(len(own["seed"])) for name in state if str(name).startswith(_VALUES)}
    for name in dict.fromkeys([*expected, *state]):
        like, got = _form(expected.get(name)), _form(state.get(name))
        if like != got:
            raise EnvStateError(
                f"State {name!r}: expected {like}, got {got}. States fit environments with the same id, keywords, "
                "number of sub-environments and wrappers."
            )


def _form(values: Any) -> str:
    """Shape and kind of an array, which must match."""
    if not isinstance(values, np.ndarray):
        return "nothing" if values is None else shortened(values)
    kinds = {"b": "truth values", "f": "numbers", "i": "whole numbers", "u": "whole numbers from 0", "U": "text"}
    return f"shape {values.shape} of {kinds.get(values.dtype.kind, str(values.dtype))}"


def put_under(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """The state with prefixed names: "rows" -> "physics/rows"."""
    return {f"{prefix}/{name}": values for name, values in state.items()}


def check_within(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> None:
    """Checks the bounds of whole numbers that compiled code uses as indices.

    Raises:
        EnvStateError: A number is out of bounds.
    """
    if ((values < low) | (values > high)).any():
        raise EnvStateError(f"State {name!r}: expected whole numbers from {low} to {high}, got {shortened(values)}.")
