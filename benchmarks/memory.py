"""PPO with memory, ours and sb3-contrib's ``RecurrentPPO``, on native landers and one core.

Run it with:  python -m benchmarks.memory [--rounds 3] [--steps 131072]

Both train as a whole, gradients included, with 32 environments x 256 steps, batches of 1,024 and 4 epochs, networks of
64-64 and a memory of 64: LSTM cells there, gated recurrent units here. Neither critic has a memory: ours observes the
draw instead. Below them are our critic with a memory of its own, and our PPO without memory. Needs
stable-baselines3 and sb3-contrib.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sb3_contrib import RecurrentPPO

from benchmarks.timing import alternate, ppo_side, report, seconds
from gym_dr.integrations.sb3 import make_vec_env
from gym_dr.runs.train import limited_threads

ENV, NUM_ENVS, ROLLOUT_STEPS, EPOCHS, BATCH = "gym_dr/LunarLanderDR-v3", 32, 256, 4, 1024
UPDATE = NUM_ENVS * ROLLOUT_STEPS  # steps
PEER = "RecurrentPPO"
TARGET = "at least 4x RecurrentPPO and 15,000 steps/s (aim 22,000)"
MEMORY = {"memory": "gru", "memory_size": 64}
OURS: dict[str, dict[str, Any]] = {
    "gru, sequences of 32": {**MEMORY, "critic_context": True},
    "gru, sequences of 64": {**MEMORY, "critic_context": True, "sequence_length": 64},
    "gru, critic's own too": MEMORY,
    "no memory": {"critic_context": True},
}


def peer_side(steps: int) -> Callable[[], float]:
    """A function that trains ``RecurrentPPO`` on and returns its steps per second."""
    policy = {"lstm_hidden_size": 64, "enable_critic_lstm": False, "net_arch": [64, 64]}
    model = RecurrentPPO(
        "MlpLstmPolicy",
        make_vec_env(ENV, NUM_ENVS, env_kwargs={"num_threads": 1}),
        n_steps=ROLLOUT_STEPS,
        batch_size=BATCH,
        n_epochs=EPOCHS,
        policy_kwargs=policy,
        seed=1,
        device="cpu",
    )

    def learn() -> float:
        begun = model.num_timesteps
        spent = seconds(lambda: model.learn(steps, reset_num_timesteps=False))
        return float((model.num_timesteps - begun) / spent)

    return learn


def our_side(folder: Path, steps: int, options: dict[str, Any]) -> Callable[[], float]:
    """A function that trains for at least so many steps; returns steps per second."""
    return ppo_side(
        folder,
        env=ENV,
        updates=-(-steps // UPDATE),
        num_envs=NUM_ENVS,
        rollout_steps=ROLLOUT_STEPS,
        epochs=EPOCHS,
        minibatches=UPDATE // BATCH,
        **options,
    )


@limited_threads(1)
def main() -> None:
    """Reads the options and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2**17, help="smallest number of steps of each side per round")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        sides = {PEER: peer_side(arguments.steps)}
        for name, options in OURS.items():
            sides[name] = our_side(Path(folder) / name.replace(" ", "_"), arguments.steps, options)
        measured = alternate(sides, arguments.rounds)
    report(f"a training with memory, {NUM_ENVS} native landers (target: {TARGET})", measured, PEER, "steps/s")


if __name__ == "__main__":
    main()
