"""Speed of the native MuJoCo environments against EnvPool, a bare batch, SyncVectorEnv and no randomization.

Sides alternate; each counts steps of sub-environments per second, including resets.
Run it with: python -m benchmarks.mujoco [rounds]     (EnvPool is optional: pip install "gym-dr[bench]")
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr  # noqa: F401  registers the ids
from benchmarks.timing import alternate, report, seconds
from gym_dr import Scale

NAMES = ("InvertedPendulum", "Hopper", "HalfCheetah", "Ant", "Humanoid")
MANY, THREADS = 256, 2
# every sub-environment has different masses and friction
DIFFERENT = {"body_mass:*": Scale((0.8, 1.2)), "geom_friction": Scale((0.8, 1.2))}
STEPS = {"InvertedPendulum": 300, "Hopper": 80, "HalfCheetah": 120, "Ant": 30, "Humanoid": 30}


def actions_for(envs: Any, count: int = 16) -> list[Any]:
    """Precomputed actions, so only the environments are timed."""
    rng = np.random.default_rng(0)
    space = envs.single_action_space if hasattr(envs, "single_action_space") else envs.action_space
    shape = (count, envs.num_envs, *space.shape)
    return list(rng.uniform(space.low, space.high, shape).astype(np.float32))


def speed(envs: Any, actions: list[Any], steps: int) -> float:
    """Steps of sub-environments per second; episodes continue between calls."""

    def play() -> None:
        for t in range(steps):
            envs.step(actions[t % len(actions)])

    return float(envs.num_envs * steps / seconds(play))


def native(name: str, num_envs: int = MANY, **kwargs: Any) -> Any:
    envs = gym.make_vec(f"gym_dr/{name}DR-v5", num_envs, num_threads=THREADS, **kwargs)
    envs.reset(seed=0)
    return envs


class EnvPool:
    """EnvPool's environment of the same name, with the attributes that ``speed`` needs."""

    def __init__(self, name: str) -> None:
        import envpool

        self._pool = envpool.make(f"{name}-v5", env_type="gymnasium", num_envs=MANY, num_threads=THREADS, seed=0)
        self.action_space, self.num_envs = self._pool.action_space, MANY
        self._pool.reset()

    def step(self, actions: Any) -> None:
        self._pool.step(actions)


class BareBatch:
    """A loop that only steps a batch and resets fallen hoppers."""

    def __init__(self) -> None:
        from mujoco.batch import Batch

        env: Any = gym.make("Hopper-v5").unwrapped
        self.single_action_space, self.num_envs = env.action_space, MANY
        self._batch = Batch(env.model, MANY, THREADS)
        self._qpos, self._ctrl = self._batch.bind("qpos"), self._batch.bind("ctrl")
        self._noise = np.random.default_rng(0)
        self._batch.reset()

    def step(self, actions: Any) -> None:
        self._ctrl[:] = actions
        self._batch.step(nstep=4)
        fallen = np.flatnonzero((self._qpos[:, 1] < 0.7) | (np.abs(self._qpos[:, 2]) > 0.2))
        if len(fallen):
            self._batch.reset(fallen)
            self._qpos[fallen] += self._noise.uniform(-5e-3, 5e-3, (len(fallen), self._qpos.shape[1]))


def shares(name: str, steps: int) -> None:
    """Prints how the native environment spends its time; only the last number could still be improved."""
    envs = native(name, randomization=DIFFERENT)
    engine, spent = envs.unwrapped._backend.engine, {"step": 0.0, "write": 0.0, "start": 0.0}

    def timed(part: str) -> Callable[..., None]:
        work = getattr(engine, part)

        def call(*args: Any) -> None:
            spent[part] += seconds(lambda: work(*args))

        return call

    for part in spent:
        setattr(engine, part, timed(part))
    total = envs.num_envs * steps / speed(envs, actions_for(envs), steps)
    simulated, edited, begun = (spent[part] / total for part in ("step", "write", "start"))
    print(
        f"  {name:18} simulation {simulated:6.1%}   new draws into models {edited:6.1%}   first states {begun:6.1%}"
        f"   all else {1 - simulated - edited - begun:6.1%}"
    )
    envs.close()


def compare(title: str, sides: dict[str, Any], reference: str, steps: int, rounds: int) -> None:
    """Times environments in turn and prints the table."""
    timers: dict[str, Callable[[], float]] = {
        side: partial(speed, envs, actions_for(envs), steps) for side, envs in sides.items()
    }
    report(title, alternate(timers, rounds), reference, "steps/s")
    for envs in sides.values():
        if hasattr(envs, "close"):
            envs.close()


def main() -> None:
    """Prints all tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    if importlib.util.find_spec("envpool"):
        for name in NAMES:
            sides = {
                "EnvPool, all the same": EnvPool(name),
                "native, all different": native(name, randomization=DIFFERENT),
            }
            compare(f"{name}, {MANY} envs, {THREADS} threads", sides, "EnvPool, all the same", STEPS[name], rounds)
    else:
        print("EnvPool is not installed; its figures are left out.")
    sides = {"bare mujoco.batch": BareBatch(), "native, nominal": native("Hopper", randomization="none")}
    compare(f"Hopper, {MANY} envs, against a bare batch", sides, "bare mujoco.batch", 80, rounds)
    sides = {"native, nominal": native("Hopper", randomization="none"), "native, default": native("Hopper")}
    compare(f"Hopper, {MANY} envs, new draws every episode", sides, "native, nominal", 80, rounds)
    print(f"\nWhere the time goes, {MANY} envs, {THREADS} threads, new draws every episode")
    for name in NAMES[1:]:  # MuJoCo does not step the first one
        shares(name, STEPS[name])
    sync = gym.make_vec("Hopper-v5", 10, vectorization_mode="sync")
    sync.reset(seed=0)
    sides = {"Gymnasium SyncVectorEnv": sync, "native, default": native("Hopper", 10)}
    compare("Hopper, 10 envs", sides, "Gymnasium SyncVectorEnv", 300, rounds)


if __name__ == "__main__":
    main()
