"""Plays walkers on the hardcore terrain and on the test courses of the literature, each of one kind of obstacle.

Run it with:  python -m benchmarks.hardcore FOLDER [FOLDER ...]

Each FOLDER holds runs on BipedalWalkerHardcore, one or several seeds of the same training. Prints a row for each
folder: mean returns over seeds with their 95 % interval, and the percentage of episodes that each seed solves.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import numpy as np

import gym_dr
from gym_dr.evaluation.statistics import mean_over_seeds

STUDY = Path(__file__).parents[1] / "examples" / "studies" / "terrain.toml"  # has the courses and who solves them
EPISODES = 100


def row_of(folder: Path) -> list[str]:
    """A row of the table: the folder's name, then for each course return and episodes solved."""
    evaluation = tomllib.loads(STUDY.read_text())["evaluation"]
    courses = [gym_dr.draws(draws, name=name) for name, draws in evaluation["sets"].items()]
    found = gym_dr.evaluate(folder, courses, success=evaluation["success"], episodes=EPISODES, progress=False)
    cells = [folder.name]
    for course in [each for each in found.sets if each.name in ("nominal", *evaluation["sets"])]:
        returns = found.returns(course.name).reshape(len(found.policies), -1)
        interval, _ = mean_over_seeds(returns.mean(axis=1))
        solved = ", ".join(f"{100 * share:.0f}" for share in (returns >= evaluation["success"]).mean(axis=1))
        ends = "" if interval["low"] is None else f" ({interval['low']:.0f} to {interval['high']:.0f})"
        cells.append(f"{course.name}: {np.mean(returns):.0f}{ends}, {solved} %")
    return cells


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    for folder in parser.parse_args().folders:
        print("| " + " | ".join(row_of(folder)) + " |")


if __name__ == "__main__":
    main()
