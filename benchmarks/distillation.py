"""Is imitating a teacher enough, and what does PPO add to it?

Run it with:  python -m benchmarks.distillation [folder] [--seeds 1 2 3 4 5] [--csv FILE]

On landers with the preset "wide", each seed trains with critics that see the draw

- ``memoryless``: PPO for six million steps; ``memory``: the same with a memory of 64;
- ``teacher``: the same without memory, but observing the draw, which a machine does not have;
- ``imitation``: a student with memory that imitates the teacher for three million steps;
- ``imitation, then PPO``: the student, improved by PPO for three million steps.

Plays 500 episodes of each policy on the training draws, the same ones for all. Appends a row to the CSV file for each
policy, and skips what the file has, so the same command continues after an interruption; then prints the table.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import gym_dr
from gym_dr.runs.train import limited_threads

CSV = Path(__file__).parents[1] / "docs" / "data" / "distillation.csv"
SEEDS = (1, 2, 3, 4, 5)
WHOLE, HALF = 6_000_000, 3_000_000  # steps
MEMORY = {"memory": "gru", "critic_context": True}
AS_PPO = {"num_envs": 32, "gamma": 0.996, "gae_lambda": 0.98}  # so that PPO can go on with the critic
# policy -> algorithm, options, and the option that names another policy of the same seed
POLICIES: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "memoryless": ("ppo", {"critic_context": True, "total_steps": WHOLE}, {}),
    "memory": ("ppo", {**MEMORY, "total_steps": WHOLE}, {}),
    "teacher": ("ppo", {"context": "observation", "critic_context": True, "total_steps": WHOLE}, {}),
    "imitation": ("distill", {**MEMORY, **AS_PPO, "total_steps": HALF}, {"teacher": "teacher"}),
    "imitation, then PPO": ("ppo", {**MEMORY, "total_steps": HALF}, {"init": "imitation"}),
}
PLAYED, SOLVED = 500, 200.0  # episodes, and the return from which one is solved
COLUMNS = ("policy", "seed", "mean", "worst_tenth", "solved")


def read_rows(path: Path) -> pd.DataFrame:
    """What has been measured."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(COLUMNS))


def folder_of(root: Path, policy: str, seed: int) -> Path:
    """Where a policy is trained."""
    return root / f"{policy.replace(', ', '-').replace(' ', '-')}-{seed}"


def train(root: Path, policy: str, seed: int) -> Any:
    """Trains a policy, or opens it if it has been trained, or goes on with it."""
    algorithm, options, others = POLICIES[policy]
    path = folder_of(root, policy, seed)
    if (path / "config.json").exists():
        run = gym_dr.load_run(path)
        run.resume()
        return run
    named: dict[str, Any] = {option: str(train(root, other, seed).path) for option, other in others.items()}
    return gym_dr.train(
        algorithm,
        env="gym_dr/LunarLanderDR-v3",
        randomization="wide",
        seed=seed,
        run_dir=path,
        eval_episodes=0,
        progress=False,
        **options,
        **named,
    )


def fill(path: Path, root: Path, policy: str, seed: int) -> None:
    """Trains and plays a policy and appends its row, unless it is there."""
    done = read_rows(path)
    if ((done["policy"] == policy) & (done["seed"] == seed)).any():
        return
    run = train(root, policy, seed)
    found = gym_dr.evaluate(run, episodes=PLAYED, output=run.path / "evaluation", progress=False)
    returns = np.sort(found.returns("training").ravel())
    statistics = returns.mean(), returns[: PLAYED // 10].mean(), (returns >= SOLVED).mean()
    row = (policy, seed, *(round(float(each), 3) for each in statistics))
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([COLUMNS, row] if new else [row])
    print(*row, flush=True)


def show(rows: pd.DataFrame) -> None:
    """Prints the table: means over seeds with 95 % intervals (Student's t)."""
    for policy in POLICIES:
        chosen = rows[rows["policy"] == policy]
        cells = [interval(chosen[column].to_numpy()) for column in ("mean", "worst_tenth", "solved")]
        print(policy, f"{len(chosen)} seeds", *cells, sep=" | ")


def interval(values: np.ndarray) -> str:
    """A mean over seeds with its interval; without one for a single seed."""
    if len(values) < 2:
        return ", ".join(f"{value:.3g}" for value in values)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3g} ({values.mean() - half:.3g} to {values.mean() + half:.3g})"


@limited_threads(1)
def main() -> None:
    """Reads the options, measures what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs/distillation"))
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--csv", type=Path, default=CSV)
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for policy in POLICIES:
            fill(arguments.csv, arguments.folder, policy, seed)
    show(read_rows(arguments.csv))


if __name__ == "__main__":
    main()
