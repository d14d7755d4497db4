"""Collects what studies of memory found: each policy on the draws of its own training.

Run it with:  python -m benchmarks.memory_answers FOLDER

FOLDER holds the outputs of ``gymdr study examples/studies/memory_NAME.toml --output FOLDER/NAME``. A policy that never
saw velocities is not asked how it does with them, so each one counts on the set with its own randomization, and one
without randomization on nominal values. Replaces the rows of these studies in the CSV file and prints their means.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

CSV = Path(__file__).parents[1] / "docs" / "data" / "memory.csv"
STUDIES = ("cue", "cart_pole", "hopper", "pendulum", "lander")


def rows_of(folder: Path, study: str) -> Iterator[dict[str, Any]]:
    """A row for each policy of a study that is complete."""
    document = json.loads((folder / "evaluation.json").read_text())
    if not document["complete"]:
        raise SystemExit(f"{folder}: the study is not complete.")
    episodes = pd.read_csv(folder / "episodes.csv")
    sets = [(each["name"], each.get("randomization") or {}) for each in document["sets"] if each["name"] != "nominal"]
    for policy in document["policies"]:
        own = [name for name, drawn in sets if drawn == policy["randomization"]] if policy["randomization"] else []
        if policy["randomization"] and not own:
            raise SystemExit(f"{folder}: no set has the draws on which {policy['name']} was trained.")
        chosen = own[0] if own else "nominal"
        played = episodes[(episodes["policy"] == policy["name"]) & (episodes["set"] == chosen)]
        returns = played["return"].sort_values()
        yield {
            "study": study,
            "variant": policy["name"].partition("/")[0],
            "seed": policy["seed"],
            "set": chosen,
            "mean": round(returns.mean(), 2),
            "worst_tenth": round(returns[: max(1, len(returns) // 10)].mean(), 2),
        }


def main() -> None:
    """Reads the folders that are there and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path, default=CSV)
    arguments = parser.parse_args()
    known = pd.read_csv(arguments.csv)
    parts = [known[~known["study"].isin([f"memory_{name}" for name in STUDIES])]]
    for name in STUDIES:
        study, folder = f"memory_{name}", arguments.folder / name / "evaluation"
        there = (folder / "evaluation.json").exists()
        parts.append(pd.DataFrame(rows_of(folder, study)) if there else known[known["study"] == study])
    table = pd.concat(parts, ignore_index=True)
    table.to_csv(arguments.csv, index=False)
    print(table.groupby(["study", "variant"], sort=False)[["mean", "worst_tenth"]].mean().round(2).to_string())


if __name__ == "__main__":
    main()
