"""PPO of Stable-Baselines3 and gym_dr on one core: steps per second with the same settings, and the time to solve.

Run it with:  python -m benchmarks.ppo [--rounds 3] [--clock processor]     steps per second, side by side
              python -m benchmarks.ppo --solve 10                           seconds until LunarLander is solved

LunarLander has the settings of RL Baselines3 Zoo, Hopper Stable-Baselines3's defaults: 2,048 transitions per rollout,
from one environment in Stable-Baselines3 and from eight in gym_dr. Parameters are nominal. Both sides are whole
training runs, without compilation. Needs stable-baselines3.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from benchmarks.timing import NO_RENDERING, alternate, report
from gym_dr.bench import temporary_session, time_to_threshold
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.session import WINDOW
from gym_dr.runs.train import limited_threads
from gym_dr.training.registry import find_algorithm

SOLVED = 200.0  # mean of the last 100 training returns
Solved: TypeAlias = tuple[float, float]  # seconds and steps until solved
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}

# stock id, environments in gym_dr and Stable-Baselines3, the latter's keywords other than defaults, target speed-up
JOBS: dict[str, tuple[str, int, int, dict[str, Any], float]] = {
    "gym_dr/LunarLanderDR-v3": (
        "LunarLander-v3",
        16,
        16,
        {"n_steps": 1024, "n_epochs": 4, "gamma": 0.999, "gae_lambda": 0.98, "ent_coef": 0.01},
        3.0,
    ),
    "gym_dr/HopperDR-v5": ("Hopper-v5", 8, 1, {}, 2.5),
}


def their_model(env_id: str, seed: int) -> PPO:
    stock, _, num_envs, keywords, _ = JOBS[env_id]
    return PPO(
        "MlpPolicy",
        make_vec_env(stock, num_envs, seed=seed, env_kwargs=NO_RENDERING),
        seed=seed,
        device="cpu",
        **keywords,
    )


def our_config(env_id: str, updates: int) -> RunConfig:
    """The settings of ``their_model``."""
    model = their_model(env_id, seed=1)
    num_envs, transitions = JOBS[env_id][1], model.n_steps * model.n_envs
    given = {
        "env": env_id,
        "num_envs": num_envs,
        "seed": 1,
        "updates": updates,
        "rollout_steps": transitions // num_envs,
        "minibatches": transitions // model.batch_size,
        "epochs": model.n_epochs,
        "target_kl": 0.0,
        "gamma": model.gamma,
        "gae_lambda": model.gae_lambda,
        "entropy_coef": model.ent_coef,
        "lr": model.learning_rate,
        "schedule": "constant",
        "hidden_sizes": (64, 64),
        "activation": "tanh",
        "normalize_observations": False,
        "normalize_rewards": False,
    }
    return build_config(find_algorithm("ppo"), given, randomization="none")


def compare_speed(env_id: str, rollouts: int, rounds: int, clock: Callable[[], float]) -> None:
    """Prints one table. gym_dr makes three times the rollouts, to be measurable."""
    model, config = their_model(env_id, seed=1), our_config(env_id, 3 * rollouts)
    transitions = model.n_steps * model.n_envs

    def theirs() -> float:
        begin = clock()
        model.learn(rollouts * transitions, reset_num_timesteps=False)
        return rollouts * transitions / (clock() - begin)

    def ours() -> float:
        begin = clock()
        with temporary_session(config) as session:
            find_algorithm("ppo").train_function()(session, config.options)
        return 3 * rollouts * transitions / (clock() - begin)

    ours()  # compiles
    target = JOBS[env_id][-1]
    title = f"PPO on {env_id}, batch {model.batch_size}, {model.n_epochs} epochs (target: {target:g}x)"
    measured = alternate({"Stable-Baselines3": theirs, "gym_dr": ours}, rounds)
    report(title, measured, "Stable-Baselines3", "steps/s")


class _UntilSolved(BaseCallback):
    """Ends Stable-Baselines3's training when it passes the threshold or its time is up."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.found: Solved | None = None
        self._limit, self._begun = limit, time.perf_counter()
        self._returns: deque[float] = deque(maxlen=WINDOW)

    def _on_step(self) -> bool:
        self._returns.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
        spent = time.perf_counter() - self._begun
        if len(self._returns) == WINDOW and np.mean(self._returns) > SOLVED:
            self.found = spent, self.num_timesteps
        return self.found is None and spent < self._limit


def solve_with_theirs(seed: int, limit: float) -> Solved | None:
    model, watch = their_model("gym_dr/LunarLanderDR-v3", seed), _UntilSolved(limit)
    with contextlib.closing(model.get_env()):
        model.learn(10**9, callback=watch)
    return watch.found


def solve_with(name: str, seed: int, limit: float) -> Solved | None:
    """Solves with an algorithm of gym_dr and its defaults."""
    algorithm = find_algorithm(name)
    config = build_config(algorithm, {"seed": seed, "eval_episodes": 0}, randomization="none")
    found = time_to_threshold(config, algorithm, SOLVED, limit)
    return (found["seconds"], found["steps"]) if found["passed"] else None


SOLVERS: dict[str, Callable[[int, float], Solved | None]] = {
    "a2c": lambda seed, limit: solve_with("a2c", seed, limit),
    "ppo": lambda seed, limit: solve_with("ppo", seed, limit),
    "Stable-Baselines3": solve_with_theirs,
}


def compare_time_to_solve(names: list[str], seeds: int, limit: float) -> None:
    """Prints seconds and steps of every seed as it finishes, then medians; infinity means not solved."""
    found: dict[str, list[Solved]] = {name: [] for name in names}
    for name in names:
        SOLVERS[name](1, 0.0)  # compiles
    for seed in range(1, seeds + 1):
        for name in names:
            solved = SOLVERS[name](seed, limit) or (math.inf, math.inf)
            found[name].append(solved)
            print(f"{name}, seed {seed}: {solved[0]:.1f} s, {solved[1]:,} steps", flush=True)
    for name, runs in found.items():
        seconds, steps = [run[0] for run in runs], [run[1] for run in runs]
        spread = f"({min(seconds):.1f} to {max(seconds):.1f})"
        print(f"  {name:20} {statistics.median(seconds):8.1f} s {spread}, {statistics.median(steps):,.0f} steps")


@limited_threads(1)
def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=4, help="rollouts of Stable-Baselines3 per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall", help="processor: for a busy machine")
    parser.add_argument("--solve", type=int, metavar="SEEDS", help="time to solve instead of speed")
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="contenders of --solve")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds per run of --solve")
    arguments = parser.parse_args()
    load_plugins()
    if arguments.solve:
        compare_time_to_solve(arguments.solvers.split(","), arguments.solve, arguments.limit)
        return
    for env_id in JOBS:
        compare_speed(env_id, arguments.rollouts, arguments.rounds, CLOCKS[arguments.clock])


if __name__ == "__main__":
    main()
