"""Speed of evaluations: a run's policy and its exported ONNX file, in 256 environments on one thread.

Run it with: python -m benchmarks.onnx_policies
"""

from __future__ import annotations

import itertools
import tempfile
import time
from functools import partial
from pathlib import Path

import gym_dr
from benchmarks.timing import alternate, report
from gym_dr.policies.frozen import Draws, FrozenPolicy, drive
from gym_dr.policies.open import open_policies
from gym_dr.runs.train import limited_threads

NUM_ENVS = 256
STEPS = 200
ROUNDS = 7


def thousand_steps_per_second(policy: FrozenPolicy) -> float:
    """Environment steps in a second of processor time, the policy's included."""
    envs = policy.make_envs(Draws(episodes=NUM_ENVS))
    steps = drive(policy.make(envs), envs, seed=1)
    next(steps)  # the reset, and what is compiled or loaded first
    start = time.process_time()
    for _ in itertools.islice(steps, STEPS):
        pass
    taken = time.process_time() - start
    envs.close()
    return NUM_ENVS * STEPS / taken / 1e3


if __name__ == "__main__":
    with limited_threads(), tempfile.TemporaryDirectory() as folder:
        for name in ("lander", "lander_memory"):
            run = gym_dr.load_run(gym_dr.pretrained(name))
            file = run.export(Path(folder) / f"{name}.onnx")
            own, exported = open_policies([run, f"file=onnx:{file}"])
            sides = {"run": own, "onnx": exported}
            work = {side: partial(thousand_steps_per_second, policy) for side, policy in sides.items()}
            report(f"{name}, {NUM_ENVS} environments", alternate(work, ROUNDS), "run", "1000/s")
