"""Compares settings of PPO for robots: candidates x robots x seeds that no published figure uses.

Run it with:  python -m benchmarks.search_ppo FOLDER [--robots Hopper,Ant] [--candidates defaults,relu] [--seeds 1001]
It resumes where it was stopped. A candidate's score is the mean return of its policies on nominal physics as a share
of PPO's target, averaged over robots.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gym_dr

TARGETS = {"Hopper": 2200.0, "HalfCheetah": 2500.0, "Walker2d": 2300.0, "Ant": 1500.0, "InvertedPendulum": 1000.0}

# name -> options that differ from the defaults
CANDIDATES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "std-1": {"initial_std": 1.0},
    "std-0.25": {"initial_std": 0.25},
    "relu": {"activation": "relu"},
    "gae-0.9": {"gae_lambda": 0.9},
    "constant-lr": {"schedule": "constant"},
    "no-kl-limit": {"target_kl": 0.0},
    "kl-0.03": {"target_kl": 0.03},
}


def main() -> None:
    """Trains missing runs and prints a row per candidate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the runs")
    parser.add_argument("--robots", default=",".join(TARGETS))
    parser.add_argument("--candidates", default=",".join(CANDIDATES))
    parser.add_argument("--seeds", default="1001,1002")
    parser.add_argument("--updates", type=int, default=488, help="of 2,048 steps")
    arguments = parser.parse_args()
    robots, candidates = arguments.robots.split(","), arguments.candidates.split(",")
    found = {robot: search(robot, candidates, arguments) for robot in robots}
    print("| candidate | " + " | ".join(robots) + " | mean share |\n|" + " --- |" * (len(robots) + 2))
    for name in candidates:
        shares = [found[robot][name] / TARGETS[robot] for robot in robots]
        returns = " | ".join(f"{found[robot][name]:.0f}" for robot in robots)
        print(f"| {name} | {returns} | {sum(shares) / len(shares):.2f} |")


def search(robot: str, candidates: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    """Candidate -> mean return on nominal physics of one robot."""
    study = {
        "env": f"gym_dr/{robot}DR-v5",
        "algorithm": "ppo",
        "randomization": "none",
        "seeds": [int(seed) for seed in arguments.seeds.split(",")],
        "ppo": {"updates": arguments.updates},
        "variants": {name: CANDIDATES[name] for name in candidates},
        "evaluation": {"episodes": 20},
    }
    results = gym_dr.study(study, output=arguments.folder / robot).results
    nominal = results[(results.set == "nominal") & (results.statistic == "mean")]
    return {str(row.variant): float(row.value) for row in nominal.itertuples()}


if __name__ == "__main__":
    main()
