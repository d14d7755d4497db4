"""Measures how long the first update of a training takes with nothing compiled, and how much of it the compiler takes.

The bar: A2C, as typed, in 25 s on two cores.

python -m benchmarks.compiling
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

BAR = 25.0  # s, of the first training
TRAININGS = (
    "a2c",  # LunarLander
    "ppo --env gym_dr/BipedalWalkerDR-v3",
    "ppo --env gym_dr/CartPoleDR-v1",
    "ppo --env gym_dr/HopperDR-v5",
)


def seconds(command: list[str], cache: str) -> tuple[float, float]:
    """Wall time of a command in a process of its own, and its processor time, which other programs disturb less."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache}, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter() - began
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    for training in TRAININGS:
        with tempfile.TemporaryDirectory() as work:
            small = ["--updates", "1", "--eval-episodes", "0", "--overwrite", "--run-dir", f"{work}/run"]
            command = [
                sys.executable,
                "-c",
                "from gym_dr.cli.main import main; main()",
                "train",
                *training.split(),
                *small,
            ]
            (wall, first), (again, second) = (seconds(command, f"{work}/cache") for _ in range(2))
        bar = f", bar {BAR:.0f} s" if training == TRAININGS[0] else ""
        print(
            f"gymdr train {training}: {wall:.1f} s{bar} ({again:.1f} s the second time); "
            f"{first - second:.1f} s of processor time for the compiler",
            flush=True,
        )


if __name__ == "__main__":
    main()
