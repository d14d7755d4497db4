"""Speed of the native MuJoCo environments against EnvPool, a bare batch, SyncVectorEnv and no randomization.

Sides alternate; each counts steps of sub-environments per second, including resets.
Run it with: python -m benchmarks.mujoco [rounds]     (EnvPool is optional: pip install "gym-dr[bench]")
With every kind of draw, against a batch that varies the same fields: python -m benchmarks.mujoco draws [rounds]
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr  # noqa: F401  registers the ids
from benchmarks import quadruped
from benchmarks.timing import alternate, report, seconds
from gym_dr import Add, Scale

NAMES = ("InvertedPendulum", "Hopper", "HalfCheetah", "Ant", "Humanoid")
MANY, THREADS = 256, 2
# every sub-environment has different masses and friction
DIFFERENT = {"body_mass:*": Scale((0.8, 1.2)), "geom_friction": Scale((0.8, 1.2))}
# every kind of draw that moves, turns, loads or drives a part of a robot
SLIGHTLY, SHIFT, TURN = Scale((0.9, 1.1)), Add((-0.005, 0.005)), (-0.02, 0.02)
SCALED = ("gravity.z", "timestep", "body_mass:*", "geom_friction:*", "geom_solref:*", "geom_size:*")
EVERY_KIND: dict[str, Any] = {
    **dict.fromkeys((*SCALED, "dof_damping:*", "dof_armature:*", "jnt_range:*"), SLIGHTLY),
    **dict.fromkeys(("body_ipos:*", "geom_pos:*", "qpos0:*"), SHIFT),
    "geom_rotation:*": TURN,
}
DRAWS = {
    quadruped.ID: {
        **EVERY_KIND,
        **dict.fromkeys(("dof_frictionloss:*", "actuator_strength:*", "actuator_kp:*", "actuator_kd:*"), SLIGHTLY),
        **dict.fromkeys(("body_pos:*_*", "site_pos:*"), SHIFT),
        **dict.fromkeys(("body_rotation:*_*", "site_rotation:*", "pseudo_inertia:trunk.*"), TURN),
        "actuator_delay:*": (0.0, 0.02),
    },
    "gym_dr/HopperDR-v5": {**EVERY_KIND, "actuator_gear:*": SLIGHTLY, "pseudo_inertia:*.alpha": TURN},
}
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


class DrawingBatch:
    """A loop that steps a batch and begins episodes with other values of the fields that an environment varies.

    The values are those of the environment's first draws, so that the physics are as much work; drawing them and
    turning them into fields costs this loop nothing.
    """

    def __init__(self, envs: Any, fallen: Callable[[Any, Any], Any], limit: int) -> None:
        from mujoco.batch import Batch

        backend = envs.unwrapped._backend
        self.single_action_space, self.num_envs = envs.single_action_space, envs.num_envs
        self._task, self._fallen, self._limit = backend.task, fallen, limit
        self._batch, self._substeps = Batch(backend.nominal, self.num_envs, THREADS), backend.env.frame_skip
        self._qpos, self._qvel, self._ctrl = (self._batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        self._fields = [
            (self._batch.expand(f"opt.{name}" if hasattr(backend.nominal.opt, name) else name), values)
            for name, values in backend.model_fields(backend.table.current.T).items()
        ]
        self._steps, self._rng, self.resets = np.zeros(self.num_envs, np.int64), np.random.default_rng(0), 0
        self._reset(np.arange(self.num_envs))

    def _reset(self, rows: Any) -> None:
        chosen = self._rng.integers(self.num_envs, size=len(rows))
        for array, values in self._fields:
            array[rows] = values[chosen].reshape(-1, *array.shape[1:])
        self._batch.set_const(rows)
        self._batch.reset(rows, stage=0)
        self._qpos[rows], self._qvel[rows] = self._task.first_states([self._rng] * len(rows))
        self._batch.forward(rows)
        self._steps[rows] = 0
        self.resets += len(rows)

    def step(self, actions: Any) -> None:
        self._ctrl[:] = actions
        self._batch.step(nstep=self._substeps)
        self._steps += 1
        ended = np.flatnonzero(self._fallen(self._qpos, self._qvel) | (self._steps >= self._limit))
        if len(ended):
            self._reset(ended)


def every_kind(env_id: str, fallen: Callable[[Any, Any], Any], limit: int, num_envs: int, rounds: int) -> None:
    """Times an environment with every kind of draw beside a batch that varies the same fields as often."""
    envs = gym.make_vec(env_id, num_envs, num_threads=THREADS, randomization=DRAWS[env_id])
    envs.reset(seed=0)
    sides = {"bare mujoco.batch": DrawingBatch(envs, fallen, limit), "native": envs}
    steps, used = max(8, 12_000 // num_envs), dict.fromkeys(sides, 0.0)

    def timed(side: str) -> float:
        start = time.process_time()
        try:
            return speed(sides[side], actions_for(sides[side]), steps)
        finally:
            used[side] += time.process_time() - start

    found = alternate({side: partial(timed, side) for side in sides}, rounds)
    report(f"{env_id}, {num_envs} envs, every kind of draw", found, "bare mujoco.batch", "steps/s")
    print(f"  processor time of the batch / native: {used['bare mujoco.batch'] / used['native']:.2f}")


def fallen_hoppers(qpos: Any, qvel: Any) -> Any:
    state = np.concatenate([qpos[:, 2:], qvel], axis=1)
    return (qpos[:, 1] < 0.7) | (np.abs(qpos[:, 2]) > 0.2) | (np.abs(state) > 100).any(axis=1)


def draws(rounds: int) -> None:
    """Prints the tables with every kind of draw."""
    for num_envs in (MANY, 4 * MANY):
        every_kind("gym_dr/HopperDR-v5", fallen_hoppers, 1000, num_envs, rounds)
        every_kind(quadruped.ID, lambda qpos, _: qpos[:, 2] < quadruped.FALLEN, quadruped.MAX_STEPS, num_envs, rounds)


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
    rounds = int(sys.argv[-1]) if sys.argv[-1].isdecimal() else 9
    if "draws" in sys.argv:
        draws(rounds)
        return
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
