"""Writes a study's numbers by policy, and draws its grid, a map of mean returns for each variant.

gymdr study examples/studies/lander.toml --output runs/pay
python docs/draw_study.py runs/pay docs/data/lander.csv examples/lander_grid.png
python docs/draw_study.py runs/machine docs/data/machine.csv
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

STATISTICS = ("mean", "cvar_10", "success_rate", "regret")
COLUMNS = 4


def draw(episodes: pd.DataFrame, axes: list[str], path: str) -> None:
    """Maps over two parameters, means over seeds, in one scale of colors."""
    episodes = episodes.assign(variant=episodes["policy"].str.partition("/")[0])
    maps = {
        name: rows.pivot_table("return", *axes) for name, rows in episodes.groupby("variant", sort=False, observed=True)
    }
    low, high = min(one.to_numpy().min() for one in maps.values()), max(one.to_numpy().max() for one in maps.values())
    rows, columns = math.ceil(len(maps) / COLUMNS), min(len(maps), COLUMNS)
    figure = Figure(figsize=(8.7, 3.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for panel in panels.flat[len(maps) :]:
        panel.set_axis_off()
    for panel, (name, values) in zip(panels.flat, maps.items(), strict=False):
        x, y = values.columns.to_numpy(), values.index.to_numpy()
        shown = panel.pcolormesh(x, y, values.to_numpy(), cmap="cividis", vmin=low, vmax=high)
        panel.set(title=name, xticks=x[:: max(1, len(x) // 2)], yticks=y[:: max(1, len(y) // 2)])
        panel.tick_params(labelbottom=True)
    figure.supxlabel(axes[1])
    figure.supylabel(axes[0])
    figure.colorbar(shown, ax=panels, label="mean return")
    figure.savefig(path, dpi=100)


def by_policy(played: dict[str, Any]) -> pd.DataFrame:
    """The numbers of each policy on each set."""
    rows = []
    for one in played["results"]:
        variant, _, seed = one["policy"].partition("/seed-")
        found = {name: one["statistics"][name]["value"] for name in STATISTICS if name in one["statistics"]}
        if one["worst_cell"]:
            found["worst_cell"] = one["worst_cell"]["mean"]["value"]
        rows += [(variant, seed, one["set"], name, value) for name, value in found.items()]
    return pd.DataFrame(rows, columns=["variant", "seed", "set", "statistic", "value"])


def main(folder: str, table: str, picture: str = "") -> None:
    """Writes the table, and the picture if there is a grid."""
    evaluation = Path(folder) / "evaluation"
    played = json.loads((evaluation / "evaluation.json").read_text())
    by_policy(played).to_csv(table, index=False, float_format="%.8g")
    if picture:
        grid = next(one for one in played["sets"] if one["kind"] == "grid")
        units = {name: played["parameters"][name]["unit"] for name in grid["axes"]}
        labels = {name: f"{name} ({unit})" if unit else name for name, unit in units.items()}
        episodes = pd.read_csv(evaluation / "episodes.csv").rename(columns=labels)
        draw(episodes[episodes["set"] == grid["name"]], list(labels.values()), picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
