"""The vector environments to compare, from gym_dr, Gymnasium and peers, behind one interface."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from gym_dr.arrays import Mask
from gym_dr.compiled.threads import usable_threads
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import GymDrError
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import make_env, make_vector_env, param_space_of
from gym_dr.runs.stopping import children_end_with_us

_ACTION_BATCHES = 64  # drawn beforehand and reused


class LeftOutError(Exception):
    """A contender cannot take part; the message says why."""


@dataclass(kw_only=True)
class Contender:
    """Steps a vector environment, already reset, with random actions; episodes continue between calls."""

    num_envs: int
    action_space: gym.Space[Any]  # of one sub-environment
    step: Callable[[Any], Mask]  # actions (N, ...) -> which episodes ended (N,)
    resets_at_next_step: bool  # whether the step after an episode's end only resets
    close: Callable[[], None]

    def __post_init__(self) -> None:
        space = gym.vector.utils.batch_space(self.action_space, self.num_envs)
        space.seed(0)
        self._actions = itertools.cycle([space.sample() for _ in range(_ACTION_BATCHES)])
        self._done = np.zeros(self.num_envs, np.bool_)

    def rate(self, seconds: float) -> float:
        """Steps of sub-environments per second, without steps that only reset.

        Args:
            seconds: How long to step; makes at least one step that counts.
        """
        step, spent, counted = self.step, 0.0, 0
        while spent < seconds or not counted:
            actions = next(self._actions)
            begin = time.perf_counter()
            done = step(actions)
            spent += time.perf_counter() - begin
            counted += len(done) - int(self._done.sum())
            if self.resets_at_next_step:
                self._done = done
        return counted / spent


def nominal_of(env_id: str) -> Randomization | None:
    """The randomization for nominal parameters, so that all contenders have the same physics."""
    space = param_space_of(env_id)
    return None if space is None else resolve("none", space)


def _gymnasium(vectorization: str, env_id: str, num_envs: int) -> Contender:
    """A vector environment that ``gym.make_vec`` makes."""
    try:
        envs = make_vector_env(env_id, num_envs, vectorization, nominal_of(env_id))
    except GymDrError as error:  # no native environment, or not enough memory
        raise LeftOutError(str(error)) from None
    envs.reset(seed=0)
    return Contender(
        num_envs=num_envs,
        action_space=envs.single_action_space,
        step=lambda actions: _ended(*envs.step(actions)),
        resets_at_next_step=envs.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP,
        # a worker that was interrupted in a step would never answer a request to close
        close=partial(envs.close, **({"terminate": True} if vectorization == "async" else {})),
    )


def _ended(_: Any, __: Any, terminated: Mask, truncated: Mask, ___: Any) -> Mask:
    return terminated | truncated


def _envpool(env_id: str, num_envs: int) -> Contender:
    """EnvPool's environment of the same name, which resets at the next step as Gymnasium does."""
    try:
        import envpool
    except ImportError:
        raise LeftOutError("EnvPool is not installed (extra gym-dr[bench])") from None
    name = stock_id(env_id)
    if name not in envpool.list_all_envs():
        raise LeftOutError(f"EnvPool has no {name}")
    threads = min(num_envs, usable_threads())
    pool = envpool.make(name, env_type="gymnasium", num_envs=num_envs, num_threads=threads, seed=0)
    pool.reset()
    dtype = pool.action_space.dtype
    return Contender(
        num_envs=num_envs,
        action_space=pool.action_space,
        step=lambda actions: _ended(*pool.step(actions.astype(dtype))),
        resets_at_next_step=True,
        close=pool.close,
    )


def _stable_baselines(kind: str, env_id: str, num_envs: int) -> Contender:
    """A vector environment of Stable-Baselines3 with the same single environments; it resets in the same step."""
    try:
        from stable_baselines3.common import vec_env
    except ImportError:
        raise LeftOutError("Stable-Baselines3 is not installed (extra gym-dr[bench])") from None
    make: Any = partial(make_env, env_id, nominal_of(env_id), disable_env_checker=True)
    kwargs = {}
    if kind == "SubprocVecEnv":  # started as Gymnasium starts its own; SB3's default imports torch in each
        kwargs["start_method"] = multiprocessing.get_start_method()
    with children_end_with_us():
        envs = getattr(vec_env, kind)([make] * num_envs, **kwargs)
    envs.seed(0)
    envs.reset()
    return Contender(
        num_envs=num_envs,
        action_space=envs.action_space,
        step=lambda actions: envs.step(actions)[2],
        resets_at_next_step=False,
        close=envs.close,
    )


MAKERS: dict[str, Callable[[str, int], Contender]] = {
    "native": partial(_gymnasium, "native"),
    "sync": partial(_gymnasium, "sync"),
    "async": partial(_gymnasium, "async"),
    "EnvPool": _envpool,
    "SB3 DummyVecEnv": partial(_stable_baselines, "DummyVecEnv"),
    "SB3 SubprocVecEnv": partial(_stable_baselines, "SubprocVecEnv"),
}
"""Name -> function of an environment's id and the number of sub-environments."""

PROCESSES = ("async", "SB3 SubprocVecEnv")
"""Contenders with a process for each sub-environment."""


def make_contender(mode: str, env_id: str, num_envs: int) -> Contender:
    """Makes a contender, ready to step.

    Raises:
        LeftOutError: It is not available here; any processes it started have ended.
    """
    before = set(multiprocessing.active_children())
    try:
        return MAKERS[mode](env_id, num_envs)
    except (OSError, MemoryError, EOFError) as error:  # no room for more processes
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise LeftOutError(f"could not be started: {type(error).__name__} {error}".rstrip()) from None


def stock_id(env_id: str) -> str:
    """The id of the environment that a randomized one is based on, or the id itself."""
    name = env_id.rpartition(":")[2]
    return (ENVIRONMENTS.get(name).stock if name in ENVIRONMENTS else "") or env_id
