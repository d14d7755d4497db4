"""DORAEMON on Hopper as its authors ran it: how the entropy of draws and the success rate over the whole box grow.

Run it with:  python -m benchmarks.doraemon_hopper [--updates 1464] [--seeds 1,2,3] [--output doraemon-hopper]

Ranges, start, episode limit, threshold, alpha and the bound on the divergence are those of the authors' repository
(Tiboni et al. 2024, github.com/gabrieletiboni/doraemon): masses of four bodies, damping of three joints and friction of
the foot, eight parameters in all. The authors train SAC, with a history of observations, for 15 million steps. This
trains PPO for 6 million, and its critic sees the draw. Cohorts are small, so that the distribution can
change about as often.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gym_dr
from gym_dr import Uniform
from gym_dr.envs.family import EnvFamily, EnvId, add_family
from gym_dr.plugins.loading import load_plugins
from gym_dr.reports.plots import new_figure, save_figure
from gym_dr.runs.checkpoint import checkpoint_paths
from gym_dr.runs.configure import build_config
from gym_dr.runs.folder import CONFIG, RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.runs.train import limited_threads
from gym_dr.training.registry import find_algorithm

HOPPER = EnvId(
    id="gym_dr/ShortHopperDR-v5",
    entry_point="gym_dr.envs.mujoco.env:make",
    vector_entry_point="gym_dr.envs.mujoco.env:MujocoVectorEnv",
    kwargs={"reference": "Hopper-v5"},
    max_episode_steps=500,
)
SUCCESS = 1600.0  # return
RANGES = {
    **{f"body_mass:{body}": (0.1, 10.0) for body in ("torso", "thigh", "leg", "foot")},  # kg
    **{f"dof_damping:{joint}_joint": (0.1, 3.0) for joint in ("thigh", "leg", "foot")},  # N m s/rad
    "geom_friction:foot_geom.slide": (0.1, 3.0),
}
# a contact has the larger friction of its two geoms, which is to be the foot's
BOX = {**RANGES, "geom_friction:floor.slide": 0.1}
# a Beta distribution with a = b = 100 about the center of the box, by its variance 1 / (4 (2 a + 1))
HALF_WIDTH = float(np.sqrt(3 / 804))
START = {
    name: Uniform((low + high) / 2 - HALF_WIDTH * (high - low), (low + high) / 2 + HALF_WIDTH * (high - low))
    for name, (low, high) in RANGES.items()
}
DORAEMON = {"success": SUCCESS, "alpha": 0.5, "kl_bound": 0.005, "cohort": 56, "start": START}
# Chosen among ten settings on seed 1001. With an initial standard deviation of 0.5, the default, all of them end in a
# gait that is too slow for SUCCESS (gamma of 0.9925 and above) or in falls (0.99).
PPO = {"critic_context": True, "gamma": 0.9925, "lr": 0.001, "initial_std": 1.0, "target_kl": 0.03}
NUM_ENVS = 16
EVERY = 122  # updates between two looks: half a million steps
EPISODES = 200  # of each look, over the whole box


def train(sampler: str, seed: int, updates: int, output: Path) -> list[Path]:
    """Trains a run; returns a folder for each of its checkpoints, which a run would delete but for the last ones."""
    algorithm = find_algorithm("ppo")
    settings = {"env": HOPPER.id, "num_envs": NUM_ENVS, "seed": seed, "sampler": sampler}
    settings |= {"checkpoint_every": EVERY, "eval_episodes": 0}
    options = PPO | {"updates": updates}
    own = DORAEMON if sampler == "doraemon" else {}
    config = build_config(algorithm, {**settings, **options, **own}, randomization=BOX)
    folder = RunFolder.create(output / f"{sampler}-seed{seed}", config.to_json(), overwrite=False)
    kept: list[Path] = []

    def keep(*_: Any) -> None:
        for checkpoint in checkpoint_paths(folder)[-1:]:
            place = folder.path / checkpoint.stem
            if place not in kept:
                (place / "checkpoints").mkdir(parents=True)
                shutil.copy(checkpoint, place / "checkpoints")
                shutil.copy(folder.config, place / CONFIG)
                kept.append(place)

    session = RunSession(folder, config, keep, resume=False)
    try:
        algorithm.train_function()(session, config.options)
    finally:
        session.close()
    keep()
    return kept


def look(place: Path) -> dict[str, Any]:
    """Evaluates the policy of a checkpoint on the whole box, and reads what the sampler had reached."""
    update = int(place.name.partition("-")[2])
    found = gym_dr.evaluate(
        gym_dr.load_run(place), episodes=EPISODES, success=SUCCESS, output=place / "evaluation", progress=False
    )
    return {
        "update": update,
        "steps": _last(place.parent / "metrics.csv", update)["steps"],
        "entropy": _last(place.parent / "sampler.csv", update).get("entropy", 0.0),
        "success_on_box": float((found.returns("training") >= SUCCESS).mean()),
        "return_on_box": float(found.returns("training").mean()),
    }


def _last(path: Path, update: int) -> Mapping[str, Any]:
    """The last row of a log before an update; empty if there is none."""
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        return next((row for row in reversed(list(csv.DictReader(file))) if int(row["update"]) < update), {})


def draw_picture(table: pd.DataFrame, path: Path) -> None:
    """Draws what ``growth.csv`` says over the steps, a line for each training."""
    figure, axes = new_figure(3, 2, (14 / 3, 4.0))
    for column, title, ax in zip(
        ("entropy", "success_on_box", "return_on_box"),
        ("Entropy of draws, nats (whole box: 0)", "Success rate on the whole box", "Return on the whole box"),
        axes,
        strict=True,
    ):
        for (sampler, seed), rows in table.groupby(["sampler", "seed"]):
            color, dash = f"C{seed}", "-" if sampler == "doraemon" else ":"
            ax.plot(rows["steps"] / 1e6, rows[column], dash, color=color, label=f"{sampler}, seed {seed}")
        ax.set(title=title, xlabel="Million steps")
    axes[0].legend(fontsize="small", loc="center left")
    save_figure(figure, path, dpi=110)


@limited_threads(1)
def main() -> None:
    """Reads the options, trains, and writes ``growth.csv`` and ``growth.png``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1464, help="of 4,096 steps")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--samplers", default="doraemon,uniform")
    parser.add_argument("--output", type=Path, default=Path("doraemon-hopper"))
    arguments = parser.parse_args()
    load_plugins()
    add_family(EnvFamily(name="ShortHopper", ids=(HOPPER,)), "benchmarks")
    arguments.output.mkdir(parents=True, exist_ok=True)
    with open(arguments.output / "growth.csv", "a", newline="") as file:
        for seed in map(int, arguments.seeds.split(",")):
            for sampler in arguments.samplers.split(","):
                for place in train(sampler, seed, arguments.updates, arguments.output):
                    row = {"sampler": sampler, "seed": seed, **look(place)}
                    writer = csv.DictWriter(file, row)
                    if file.tell() == 0:
                        writer.writeheader()
                    writer.writerow(row)
                    file.flush()
                    print(row, flush=True)
    draw_picture(pd.read_csv(arguments.output / "growth.csv"), arguments.output / "growth.png")


if __name__ == "__main__":
    main()
