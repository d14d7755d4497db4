"""What threads gain: native steps and whole trainings on one thread, on two, and on more.

    python -m benchmarks.threads                                    # all but the time to solve, with 1 and 2 threads
    python -m benchmarks.threads --only steps-lander --only ppo-hopper --threads 1,4,16
    python -m benchmarks.threads --only solve --seeds 10            # seconds until PPO lands, median over seeds

Numbers of threads take turns, in one process, so that slow moments of the machine affect all of them. Steps have random
actions and count without those that only reset. Trainings have default options and end after some updates, without
evaluation and pictures; their rate leaves out the first update, which may compile. The best of the rounds is what the
machine can do, the median what it did; ratios are to the first number of threads. Nothing else should run.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks.timing import alternate
from gym_dr.bench import measure_throughput, temporary_session, time_to_threshold
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.config import RunConfig
from gym_dr.runs.configure import build_config
from gym_dr.runs.train import limited_threads
from gym_dr.training.registry import find_algorithm

LANDER, WALKER, HOPPER = "gym_dr/LunarLanderDR-v3", "gym_dr/BipedalWalkerDR-v3", "gym_dr/HopperDR-v5"
SOLVED = 200.0  # mean of the last 100 training returns
STEPS = {  # name -> id and number of environments
    "steps-lander": (LANDER, 1024),
    "steps-walker": (WALKER, 1024),
    "steps-cartpole": ("gym_dr/CartPoleDR-v1", 16384),
    "steps-hopper": (HOPPER, 256),
    "steps-ant": ("gym_dr/AntDR-v5", 64),
}
TRAININGS: dict[str, tuple[str, dict[str, Any], int]] = {  # name -> algorithm, options, updates in a round
    "ppo-lander": ("ppo", {"env": LANDER}, 12),
    "ppo-memory": ("ppo", {"env": LANDER, "memory": "gru"}, 8),
    "a2c-lander": ("a2c", {"env": LANDER}, 200),
    "ppo-walker": ("ppo", {"env": WALKER}, 6),
    "ppo-hopper": ("ppo", {"env": HOPPER}, 8),
}


def report(title: str, measured: Mapping[int, list[float]], unit: str, best: Callable[[list[float]], float]) -> None:
    """Prints best and median for each number of threads, and how many times as fast as the first each of them is."""
    print(f"\n{title}\n  threads {'best':>12} {'median':>12} {unit:8} best  median")
    first: tuple[float, ...] = ()
    for threads, values in measured.items():
        found = best(values), statistics.median(values)
        first = first or found
        gains = [new / old if best is max else old / new for new, old in zip(found, first, strict=True)]
        shown = " ".join(f"{value:12,.{0 if best is max else 2}f}" for value in found)
        print(f"  {threads:7} {shown} {unit:8} {gains[0]:4.2f}  {gains[1]:6.2f}", flush=True)


class _Enough(Exception):  # noqa: N818  not an error: it ends a training
    """A training has made the updates of a round."""


def training_rate(config: RunConfig, updates: int, num_threads: int) -> float:
    """Environment steps per second of the updates after the first, of a new training."""
    seconds, steps = [0.0], [0.0]

    def watch(made: int, row: Mapping[str, float]) -> None:
        seconds.append(time.perf_counter())
        steps.append(row["steps"])
        if made > updates:
            raise _Enough

    with limited_threads(num_threads), temporary_session(config, watch) as session, contextlib.suppress(_Enough):
        find_algorithm(config.algorithm).train_function()(session, config.options)
    return (steps[-1] - steps[1]) / (seconds[-1] - seconds[1])


def compare_steps(name: str, threads: list[int], rounds: int, seconds: float) -> None:
    env_id, num_envs = STEPS[name]
    rates, _ = measure_throughput(env_id, num_envs, rounds, seconds, {count: ("native", count) for count in threads})
    report(f"{name}: {env_id}, {num_envs:,} environments", rates, "steps/s", max)


def compare_training(name: str, threads: list[int], rounds: int, updates: int | None) -> None:
    algorithm, options, default = TRAININGS[name]
    config, updates = (
        build_config(find_algorithm(algorithm), {**options, "seed": 1, "eval_episodes": 0}),
        updates or default,
    )
    sides = {count: partial(training_rate, config, updates, count) for count in threads}
    size = f"{config.settings.num_envs} environments x {config.options.rollout_steps} steps"
    report(f"{name}: {size}, {updates} updates", alternate(sides, rounds), "steps/s", max)


def compare_time_to_solve(threads: list[int], seeds: int, limit: float) -> None:
    """Prints seconds of every seed as it finishes; infinity means not solved within the limit."""
    algorithm, found = find_algorithm("ppo"), {count: list[float]() for count in threads}
    for seed, count in itertools.product(range(seeds + 1), threads):  # the first compiles and does not count
        config = build_config(algorithm, {"seed": seed, "eval_episodes": 0}, randomization="none")
        with limited_threads(count):
            run = time_to_threshold(config, algorithm, SOLVED, limit if seed else 0.0)
        if seed:
            found[count].append(run["seconds"] if run["passed"] else math.inf)
            print(f"seed {seed}, {count} threads: {found[count][-1]:.2f} s, {run['steps']:,} steps", flush=True)
    report(f"solve: PPO until {SOLVED:g} on the nominal lander, {seeds} seeds", found, "s", min)


def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*STEPS, *TRAININGS, "solve"], action="append", help="run only these")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, such as 1,2,4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of steps in a round")
    parser.add_argument("--updates", type=int, help="of a training in a round")
    parser.add_argument("--seeds", type=int, default=10, help="of the time to solve")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds per run of the time to solve")
    arguments = parser.parse_args()
    load_plugins()
    threads = [int(count) for count in arguments.threads.split(",")]
    for name in arguments.only or [*STEPS, *TRAININGS]:
        if name in STEPS:
            compare_steps(name, threads, arguments.rounds, arguments.seconds)
        elif name in TRAININGS:
            compare_training(name, threads, arguments.rounds, arguments.updates)
        else:
            compare_time_to_solve(threads, arguments.seeds, arguments.limit)


if __name__ == "__main__":
    main()
