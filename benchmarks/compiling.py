"""Measures how long the first training waits for the compiler: with an empty cache, minus the same with a full one.

python -m benchmarks.compiling
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

TRAININGS = (
    "a2c",  # LunarLander
    "ppo --env gym_dr/BipedalWalkerDR-v3",
    "ppo --env gym_dr/CartPoleDR-v1",
    "ppo --env gym_dr/HopperDR-v5",
)


def seconds(command: list[str], cache: str) -> float:
    """Processor time of a command in a process of its own, which other programs disturb less than wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache}, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    for training in TRAININGS:
        with tempfile.TemporaryDirectory() as work:
            small = ["--updates", "2", "--eval-episodes", "0", "--overwrite", "--run-dir", f"{work}/run"]
            command = [
                sys.executable,
                "-c",
                "from gym_dr.cli.main import main; main()",
                "train",
                *training.split(),
                *small,
            ]
            first, second = seconds(command, f"{work}/cache"), seconds(command, f"{work}/cache")
        print(f"gymdr train {training}: {first - second:.0f} s", flush=True)


if __name__ == "__main__":
    main()
