"""Steps per second of vector environments, by the number of sub-environments."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from gym_dr.compiled.processors import usable_threads, using_threads
from gym_dr.errors import ConfigError, GymDrError
from gym_dr.randomization.presets import resolve
from gym_dr.runs.environments import make_vector_env, param_space_of

# names -> mode, and number of threads if not all
Sides = Mapping[Any, tuple[str, int | None]]
MODES: Sides = {mode: (mode, None) for mode in ("native", "sync", "async")}
_ACTION_BATCHES = 64  # drawn beforehand and reused
_MOST_PROCESSES = 32  # of async environments on machines with few cores: more fill the memory and are no faster

Name = TypeVar("Name", bound=Hashable)


class Stepper:
    """Steps a vector environment with random actions; episodes continue between calls."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        """Resets the environments (NEXT_STEP autoreset)."""
        self._envs = envs
        envs.action_space.seed(0)
        self._actions = itertools.cycle([envs.action_space.sample() for _ in range(_ACTION_BATCHES)])
        self._done = np.zeros(envs.num_envs, np.bool_)
        envs.reset()

    def rate(self, seconds: float) -> float:
        """Steps of sub-environments per second, without steps that only reset.

        Args:
            seconds: How long to step; makes at least one step that counts.
        """
        spent, counted = 0.0, 0
        while spent < seconds or not counted:
            actions = next(self._actions)
            begin = time.perf_counter()
            _, _, terminated, truncated, _ = self._envs.step(actions)
            spent += time.perf_counter() - begin
            counted += int((~self._done).sum())
            self._done = terminated | truncated
        return counted / spent


def measure_throughput(
    env_id: str, num_envs: int, rounds: int, seconds: float, which: Sides = MODES
) -> tuple[dict[Any, list[float]], dict[Any, str]]:
    """Steps vector environments in turn, with nominal physics.

    Args:
        env_id: Id of the environment.
        num_envs: Number of sub-environments.
        rounds: Each mode steps once a round; one more round warms up.
        seconds: Of stepping in a round.
        which: The environments to step.

    Returns:
        Name -> steps per second of each round, and name -> why it could not take part.
    """
    sides: dict[Any, Callable[[], float]] = {}
    left_out = {}
    with contextlib.ExitStack() as closing:
        for name, (mode, num_threads) in which.items():
            try:
                with using_threads(num_threads):
                    stepper = closing.enter_context(_opened(mode, env_id, num_envs))
                sides[name] = partial(stepper.rate, seconds)
            except GymDrError as error:  # not for this environment
                left_out[name] = str(error)
        return alternate(sides, rounds), left_out


@contextlib.contextmanager
def _opened(mode: str, env_id: str, num_envs: int) -> Iterator[Stepper]:
    """A vector environment, ready to step.

    Raises:
        GymDrError: It cannot take part.
    """
    most = max(_MOST_PROCESSES, 2 * usable_threads())
    if mode == "async" and num_envs > most:
        raise ConfigError(f"a process for each environment, of at most {most} here.")
    space = param_space_of(env_id)
    envs: Any = make_vector_env(env_id, num_envs, mode, None if space is None else resolve("none", space))
    try:
        yield Stepper(envs)
    finally:  # a process that Ctrl-C has interrupted in a step would never answer a request to close
        envs.close(**({"terminate": True} if mode == "async" else {}))


def alternate(sides: Mapping[Name, Callable[[], float]], rounds: int) -> dict[Name, list[float]]:
    """Runs every side once per round, in turn, so that slow moments of the machine affect all of them.

    Args:
        sides: name -> function that does the work and returns a measurement, for example steps per second.
        rounds: Number of rounds, after one to warm up.

    Returns:
        name -> measurements, one per round.
    """
    measured: dict[Name, list[float]] = {name: [] for name in sides}
    for round_number in range(rounds + 1):
        for name, side in sides.items():
            value = side()
            if round_number:
                measured[name].append(value)
    return measured
