"""PPO with its networks on the CPU and on a GPU: steps per second by the size of the networks.

Run it with:  python -m benchmarks.gpu [--rounds 3] [--updates 6] [--device cuda]

Both sides are whole trainings on native landers, with all files that a run writes, 256 environments x 32 steps, batches
of 2,048 and 4 epochs. On the CPU, networks of up to 50,000 weights learn in compiled code, on all cores, larger ones in
torch, on one. Needs a torch with CUDA.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.timing import alternate, ppo_side, report

ENV, NUM_ENVS, ROLLOUT_STEPS = "gym_dr/LunarLanderDR-v3", 256, 32
NETWORKS: dict[str, dict[str, Any]] = {
    "64-64": {"hidden_sizes": (64, 64)},
    "256-256": {"hidden_sizes": (256, 256)},
    "512-512": {"hidden_sizes": (512, 512)},
    "1024-1024": {"hidden_sizes": (1024, 1024)},
    "64-64 and a memory of 64": {"hidden_sizes": (64, 64), "memory": "gru", "memory_size": 64},
}


def main() -> None:
    """Reads the options and prints a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=6, help="of each training")
    parser.add_argument("--device", default="cuda", help="to compare with the CPU")
    arguments = parser.parse_args()
    for name, options in NETWORKS.items():
        with tempfile.TemporaryDirectory() as folder:
            sides = {
                place: ppo_side(
                    Path(folder) / place.replace(":", "_"),
                    env=ENV,
                    updates=arguments.updates,
                    num_envs=NUM_ENVS,
                    rollout_steps=ROLLOUT_STEPS,
                    epochs=4,
                    minibatches=4,
                    device=place,
                    **options,
                )
                for place in ("cpu", arguments.device)
            }
            measured = alternate(sides, arguments.rounds)
        report(name, measured, "cpu", "steps/s")


if __name__ == "__main__":
    main()
