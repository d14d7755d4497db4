"""Writes a study's numbers by policy, and draws its grid, a map of mean returns for each variant.

gymdr study examples/studies/lander.toml --output runs/pay
python docs/draw_study.py runs/pay docs/data/lander.csv examples/lander_grid.png
python docs/draw_study.py runs/machine docs/data/machine.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from gym_dr.evaluation.results import Evaluation
from gym_dr.reports.plots import new_figure, save_figure

STATISTICS = ("mean", "cvar_10", "success_rate", "regret")


def by_policy(played: Evaluation) -> pd.DataFrame:
    """The numbers of each policy on each set, and its mean return in its worst cell."""
    worst = [
        {"policy": one["policy"], "set": one["set"], "statistic": "worst_cell", **one["worst_cell"]["mean"]}
        for one in played.document["results"]
        if one["worst_cell"]
    ]
    found = pd.concat([played.summary[played.summary["statistic"].isin(STATISTICS)], pd.DataFrame(worst)])
    found[["variant", "seed"]] = found["policy"].str.split("/seed-", expand=True)
    return found[["variant", "seed", "set", "statistic", "value"]]


def draw(played: Evaluation, path: Path) -> None:
    """Maps over the grid's two parameters, means over seeds, in one scale of colors."""
    grid = next(one for one in played.document["sets"] if one["kind"] == "grid")
    below, left = reversed(list(grid["axes"]))
    episodes = played.episodes_of(grid["name"])
    variants = episodes["policy"].astype(str).str.partition("/")[0]
    maps = {str(name): rows.pivot_table("return", left, below) for name, rows in episodes.groupby(variants, sort=False)}
    low, high = min(one.min(axis=None) for one in maps.values()), max(one.max(axis=None) for one in maps.values())
    figure, panels = new_figure(len(maps), 4, (2.2, 3.0))
    for panel, (name, values) in zip(panels, maps.items(), strict=True):
        x, y = values.columns.to_numpy(), values.index.to_numpy()
        shown = panel.pcolormesh(x, y, values.to_numpy(), cmap="cividis", vmin=low, vmax=high)
        panel.set(title=name, xticks=x[:: max(1, len(x) // 2)], yticks=y[:: max(1, len(y) // 2)])
    units = {name: played.document["parameters"][name]["unit"] for name in (below, left)}
    figure.supxlabel(f"{below} ({units[below]})")
    figure.supylabel(f"{left} ({units[left]})")
    figure.colorbar(shown, ax=panels, label="mean return")
    save_figure(figure, path, dpi=100)


def main(folder: str, table: str, picture: str = "") -> None:
    """Writes the table, and the picture if one is named."""
    played = Evaluation.load(Path(folder) / "evaluation")
    by_policy(played).to_csv(table, index=False, float_format="%.8g")
    if picture:
        draw(played, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:])
