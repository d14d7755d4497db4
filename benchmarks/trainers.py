"""PPO of TorchRL, RLlib and in the style of CleanRL (examples/) on native and on sync landers.

Run it in an environment that has the trainer:  python -m benchmarks.trainers torchrl|rllib|cleanrl [--rounds 3]

Both sides run the same example with the same settings, on one core, including gradients. For Stable-Baselines3 see
sb3.py.
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym

from benchmarks.timing import alternate, report, seconds
from gym_dr.runs.train import limited_threads

EXAMPLES = Path(__file__).parents[1] / "examples"
STEPS = 32_768  # of one run
SETTINGS: dict[str, dict[str, Any]] = {
    "torchrl": {"total_steps": STEPS},
    "cleanrl": {"total_steps": STEPS},
    "rllib": {"iterations": STEPS // 8192, "num_env_runners": 0},
}


def sync_make_vec(env_id: str, num_envs: int, *, autoreset_mode: Any = None, **kwargs: Any) -> Any:
    """``gym.make_vec`` with sync environments instead of native ones."""
    kwargs["vectorization_mode"] = "sync"
    if autoreset_mode is not None:
        kwargs["vector_kwargs"] = {"autoreset_mode": gym.vector.AutoresetMode(autoreset_mode)}
    return MAKE_VEC(env_id, num_envs, **kwargs)


MAKE_VEC = gym.make_vec


@limited_threads(1)
def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", choices=sorted(SETTINGS))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    train = runpy.run_path(str(EXAMPLES / f"{arguments.trainer}_ppo.py"))["main"]

    def side(make_vec: Callable[..., Any]) -> Callable[[], float]:
        def learn() -> float:
            with mock.patch.object(gym, "make_vec", make_vec):
                return STEPS / seconds(lambda: train(**SETTINGS[arguments.trainer]))

        return learn

    sides = {"sync": side(sync_make_vec), "native": side(MAKE_VEC)}
    for learn in sides.values():  # imports and compiles
        learn()
    report(f"PPO of {arguments.trainer}", alternate(sides, arguments.rounds), "sync", "steps/s")


if __name__ == "__main__":
    main()
