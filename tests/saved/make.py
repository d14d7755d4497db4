"""Writes the files of this version that later ones must read, into a folder of its name:

python -m tests.saved.make
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr
from gym_dr.arrays import Array
from gym_dr.cli.main import main
from gym_dr.randomization.files import load_randomization
from tests.fitting.logged import CART, logged
from tests.studies.study_sample import TINY

SAVED = Path(__file__).parent
RUNS = ("a2c", "ppo_memory")
DRAWS, DRAW_SEED = 20, 3
OBSERVATIONS = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)  # of CartPole, in turn
_TRAINED = ("--env", CART, "--updates", "3", "--num-envs", "2", "--hidden-sizes", "4", "--eval-episodes", "2")


def opened(path: Path) -> gym_dr.Run:
    """The run in a folder."""
    run = gym_dr.load_run(path)
    assert isinstance(run, gym_dr.Run)
    return run


def actions(run: gym_dr.Run) -> Array:
    """What a saved policy does, observation by observation; that of PPO has a memory."""
    act = run.policy(deterministic=True)
    starts = [(np.array([t == 0]),) if run.algorithm == "ppo" else () for t in range(len(OBSERVATIONS))]
    return np.concatenate([act(row[None], *start) for row, start in zip(OBSERVATIONS, starts, strict=True)])


def drawn(path: Path) -> Array:
    """Draws of a saved randomization, ``(DRAWS, parameters)``."""
    envs: Any = gym.make_vec(CART, num_envs=1)
    table = gym_dr.sample(load_randomization(path), envs.unwrapped.param_space, DRAWS, DRAW_SEED)
    envs.close()
    return table.to_numpy()


def make(folder: Path) -> None:
    """Writes everything anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    often = ("--checkpoint-every", "1")
    main(["train", "a2c", *_TRAINED, *often, "--rollout-steps", "8", "--run-dir", str(folder / "a2c")])
    memory = ("--memory", "gru", "--memory-size", "4", "--sequence-length", "8")
    batches = ("--rollout-steps", "8", "--minibatches", "1")
    main(["train", "ppo", *_TRAINED, *often, *memory, *batches, "--run-dir", str(folder / "ppo_memory")])
    gym_dr.study(TINY, output=folder / "study", progress=False)
    log = logged(params={"length": 0.7, "force_mag": 12.0}, episodes=6, steps=12)
    (folder / "log").mkdir()
    for number, episode in enumerate(log):
        np.savez(folder / "log" / f"{number}.npz", **episode)
    wanted = {"length": (0.25, 1.0), "force_mag": (9.0, 15.0)}
    gym_dr.fit(folder / "log", env=CART, randomize=wanted, output=folder / "fitted.toml", progress=False)
    for picture in (*folder.rglob("*.png"), *folder.rglob("*.html")):
        picture.unlink()  # nothing reads them
    found: dict[str, Any] = {name: actions(opened(folder / name)) for name in RUNS}
    lengths = [len(episode["actions"]) for episode in log]
    np.savez(folder / "expected.npz", draws=drawn(folder / "fitted.toml"), lengths=lengths, **found)


if __name__ == "__main__":
    make(SAVED / gym_dr.__version__.partition(".dev")[0])
