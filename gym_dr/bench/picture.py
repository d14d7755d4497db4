"""The picture of ``gymdr bench``, drawn from the content of ``bench.json``."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from gym_dr.bench.learning import median_time
from gym_dr.reports.plots import new_figure, save_figure

_COLORS = {"native": "#0072B2", "sync": "#E69F00", "async": "#D55E00", "EnvPool": "#009E73"}


def draw(result: dict[str, Any], path: Path) -> None:
    """Plots steps per second, the serial fraction, and the time until training passes the threshold, against N."""
    figure, (speed, scaling, learning) = new_figure(1, 3, (15.0, 4.8))
    _draw_throughput(speed, scaling, result["throughput"])
    speed.set(title=f"Stepping {result['env']}", ylabel="Steps per second")
    scaling.set(title="Karp-Flatt serial fraction", ylabel="0: perfect scaling, 1: none")
    _draw_learning(learning, result)
    title = f"Training {result['algorithm']} to a mean return of {result['threshold']:g}"
    learning.set(title=title, ylabel="Seconds")
    for ax in (speed, scaling, learning):
        ax.set_xscale("log", base=2)
        ax.set_xlabel("Environments N")
        ax.set_xticks(result["sizes"], [str(size) for size in result["sizes"]])
        ax.minorticks_off()
    for ax in (speed, scaling):
        ax.yaxis.set_major_formatter("{x:,.12g}")
    figure.supxlabel(result["machine"], fontsize=8, color="#444444", x=0.01, ha="left")
    save_figure(figure, path, dpi=110)


def _draw_throughput(speed: Any, scaling: Any, rows: list[dict[str, Any]]) -> None:
    for mode, color in _COLORS.items():
        own = [row for row in rows if row["mode"] == mode]
        if not own:
            continue
        sizes, rates = [row["num_envs"] for row in own], [row["steps_per_second"] for row in own]
        speed.plot(sizes, [statistics.median(each) for each in rates], color=color, marker="o", label=mode)
        speed.fill_between(sizes, [min(each) for each in rates], [max(each) for each in rates], color=color, alpha=0.15)
        fractions = [math.nan if row["serial_fraction"] is None else row["serial_fraction"] for row in own]
        scaling.plot(sizes, fractions, color=color, marker="o")
    speed.set_yscale("log")
    speed.legend(frameon=False)
    scaling.axhline(0, color="black", ls="--", lw=1)
    scaling.set_yscale("symlog", linthresh=0.1, linscale=1.5)


def _draw_learning(ax: Any, result: dict[str, Any]) -> None:
    limit = result["limit_seconds"]
    for run in result["learning"]:
        style = {"color": "#0072B2", "marker": "o", "alpha": 0.4} if run["passed"] else {"color": "red", "marker": "x"}
        ax.scatter(run["num_envs"], run["seconds"] if run["passed"] else limit, **style)
    medians = learning_medians(result)
    ax.plot(list(medians), list(medians.values()), color="#0072B2", marker="o", label="median over seeds")
    ax.axhline(limit, color="black", ls="--", lw=1, label="limit (x: a seed that did not pass)")
    ax.set_ylim(0, 1.08 * limit)
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.94))


def learning_medians(result: dict[str, Any]) -> dict[int, float]:
    """Number of environments -> median seconds to the threshold; infinite if half of the seeds did not pass."""
    runs = result["learning"]
    return {
        size: median_time([run for run in runs if run["num_envs"] == size])
        for size in sorted({run["num_envs"] for run in runs})
    }
