"""The plots of ``gymdr bench``, drawn from the content of ``bench.json``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.bench.profile import PARTS
from gym_dr.evaluation.plots import new_figure, save_figure
from gym_dr.wording import counted

if TYPE_CHECKING:
    import pandas as pd

Measurements = dict[str, Any]

# each contender keeps its color and marker
_STYLES: dict[str, dict[str, Any]] = {
    "native": {"color": "#0072B2", "marker": "o", "markersize": 5},
    "sync": {"color": "#E69F00", "marker": "s", "markersize": 5},
    "async": {"color": "#D55E00", "marker": "^", "markersize": 5},
    "EnvPool": {"color": "#009E73", "marker": "D", "markersize": 5},
    "SB3 DummyVecEnv": {"color": "#CC79A7", "marker": "v", "markersize": 5},
    "SB3 SubprocVecEnv": {"color": "#7F7F7F", "marker": "X", "markersize": 5},
}
_PART_COLORS = dict(zip(PARTS, ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), strict=True))
_SIZE = (9.0, 5.4)  # inches
_LABELED_SHARE = 0.06  # smallest share of a bar with room for a label


def draw_throughput(result: Measurements, path: Path) -> None:
    """Plots steps per second against the number of sub-environments, with the range over rounds."""
    figure, (ax,) = _figure()
    for mode, own in _by_mode(result).items():
        ax.plot(own["num_envs"], own["steps_per_second"], **_STYLES[mode], label=mode)
        ax.fill_between(own["num_envs"], own["lowest"], own["highest"], color=_STYLES[mode]["color"], alpha=0.15, lw=0)
    _axis_of_sizes(ax, _sizes(result))
    _log_axis(ax)
    ax.set(title=f"Speed of stepping {result['settings']['env']}", ylabel="Steps per second")
    _legend_beside(ax)
    note = "Random actions; median and range over rounds."
    _save(figure, path, result, note + _left_out(result))


def draw_speedup(result: Measurements, path: Path) -> None:
    """Plots the speed-up over one sub-environment, and the serial fraction."""
    figure, (left, right) = _figure(2)
    sizes = _sizes(result)
    for mode, own in _by_mode(result).items():
        most = own["max_speedup"].iloc[-1]
        label = mode if math.isnan(most) else f"{mode} ({most:,.3g})"
        left.plot(own["num_envs"], own["speedup"], **_STYLES[mode], label=label)
        known = own.dropna(subset="serial_fraction")
        right.plot(known["num_envs"], known["serial_fraction"], **_STYLES[mode])
    left.plot([1, max(sizes)], [1, max(sizes)], color="black", ls="--", lw=1, label="ideal")
    _log_axis(left)
    left.set(title="Speed-up over one environment", ylabel="Speed-up")
    right.axhline(0, color="black", ls="--", lw=1)
    right.set_yscale("symlog", linthresh=0.1, linscale=1.5)
    right.yaxis.set_major_formatter(_thousands)
    right.margins(y=0.1)
    right.set(title="Karp-Flatt serial fraction", ylabel="Fraction e")
    _axis_of_sizes(left, sizes)
    _axis_of_sizes(right, [size for size in sizes if size > 1])
    figure.get_layout_engine().set(wspace=0.06)
    figure.legend(loc="outside right upper", frameon=False, title="contender (1/e at its largest N)", alignment="left")
    note = "e = 0 is perfect scaling, e = 1 none, above 1 slower than N = 1; 1/e is the maximum speed-up."
    _save(figure, path, result, f"{result['settings']['env']}, random actions. {note}{_left_out(result)}")


def draw_learning(result: Measurements, path: Path) -> None:
    """Plots the wall time until the mean training return passes the threshold, for each seed and as median."""
    import pandas as pd  # heavy

    learning = result["learning"]
    limit, rows = learning["limit_seconds"], learning["rows"]
    figure, (ax,) = _figure()
    runs = pd.DataFrame([{**run, "num_envs": row["num_envs"]} for row in rows for run in row["runs"]])
    passed, failed = runs[runs["passed"]], runs[~runs["passed"]]
    medians = pd.DataFrame(rows).dropna(subset="median_seconds")
    if len(passed):
        ax.scatter(
            passed["num_envs"], passed["seconds"], color="#0072B2", alpha=0.4, s=24, linewidths=0, label="a seed"
        )
    if len(medians):
        label = "median of all seeds"
        ax.plot(medians["num_envs"], medians["median_seconds"], color="#0072B2", marker="o", markersize=6, label=label)
    if len(failed):
        label = "a seed that did not pass"
        ax.scatter(failed["num_envs"], [limit] * len(failed), color="#D55E00", marker="x", s=40, label=label)
        for num_envs, missing in failed.groupby("num_envs").size().items():
            text = f"{missing} of {(runs['num_envs'] == num_envs).sum()}"
            ax.annotate(text, (num_envs, limit), (0, 9), textcoords="offset points", ha="center", fontsize=9)
    ax.axhline(limit, color="black", ls="--", lw=1, label=f"limit of {limit:g} s")
    _axis_of_sizes(ax, [row["num_envs"] for row in rows])
    _log_axis(ax)
    ax.set_ylim(min([*passed["seconds"], limit / 4]) / 1.6, limit * 1.6)
    ax.set(title=f"Time until the mean training return passes {learning['threshold']:g}", ylabel="Seconds")
    _legend_beside(ax)
    note = "A seed passes when the mean of the last 100 episodes does. Default hyperparameters, constant rates."
    _save(figure, path, result, f"{result['settings']['algorithm']}, {result['settings']['env']}. {note}")


def draw_profile(result: Measurements, path: Path) -> None:
    """Plots an update's parts as a bar for each mode, with milliseconds and shares."""
    rows = result["profile"]["rows"]
    figure, (ax,) = _figure(height=1.9 + 0.8 * len(rows))
    names = [f"{row['mode']}{', one compiled call' if row['compiled'] else ''}" for row in rows]
    totals = [sum(row[part] for part in PARTS) for row in rows]
    for place, (row, total) in enumerate(zip(rows, totals, strict=True)):
        start = 0.0
        for part in PARTS:
            share = row[part] / total
            label = part if place == 0 else None
            ax.barh(place, share, left=start, color=_PART_COLORS[part], label=label, height=0.55)
            if share >= _LABELED_SHARE:
                text = f"{1e3 * row[part]:,.3g} ms\n{share:.0%}"
                ax.text(start + share / 2, place, text, ha="center", va="center", color="white", fontsize=9)
            start += share
    labels = [f"{name}\n{1e3 * total:,.3g} ms" for name, total in zip(names, totals, strict=True)]
    ax.set_yticks(range(len(rows)), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.grid(visible=False, axis="y")
    steps = f", {counted(rows[0]['num_envs'], 'environment')}, {rows[0]['steps']:,.0f} steps" if rows else ""
    ax.set(title=f"One training update of {result['settings']['algorithm']}{steps}", xlabel="Share of the update")
    _legend_beside(ax)
    _save(figure, path, result, f"{result['settings']['env']}. Medians over updates.")


PICTURES: dict[str, Callable[[Measurements, Path], None]] = {
    "throughput.png": draw_throughput,
    "speedup.png": draw_speedup,
    "learning.png": draw_learning,
    "profile.png": draw_profile,
}
"""File name -> function that draws it."""


def left_out_texts(result: Measurements) -> list[str]:
    """Contenders that could not take part, one text for each reason."""
    by_reason = defaultdict(list)
    for entry in result["throughput"]["left_out"]:
        size = f" with {entry['num_envs']}" if entry["num_envs"] else ""
        by_reason[entry["reason"]].append(entry["mode"] + size)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _by_mode(result: Measurements) -> dict[str, pd.DataFrame]:
    """The rows of each contender, sorted by number of sub-environments."""
    import pandas as pd  # heavy

    rows = pd.DataFrame(result["throughput"]["rows"]).sort_values("num_envs", kind="stable")
    rows[["serial_fraction", "max_speedup"]] = rows[["serial_fraction", "max_speedup"]].astype(float)  # None is NaN
    return {str(mode): own for mode, own in rows.groupby("mode", sort=False)}


def _sizes(result: Measurements) -> list[int]:
    return sorted({row["num_envs"] for row in result["throughput"]["rows"]})


def _left_out(result: Measurements) -> str:
    """Lines on contenders that could not take part."""
    return "".join(f"\nLeft out: {text}." for text in left_out_texts(result))


def _thousands(value: float, _: object) -> str:
    return f"{value:,.12g}"


def _log_axis(ax: Any) -> None:
    """Makes a logarithmic y axis with plain numbers, and lines at 2 and 5 if there is room."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 3000 else (1.0,), numticks=20))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(_thousands)


def _axis_of_sizes(ax: Any, sizes: list[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_xlabel("Environments N")


def _legend_beside(ax: Any) -> None:
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)


def _figure(columns: int = 1, height: float = _SIZE[1]) -> tuple[Any, list[Any]]:
    return new_figure(1, columns, (_SIZE[0] * (1.4 if columns > 1 else 1.0), height))


def _save(figure: Any, path: Path, result: Measurements, note: str) -> None:
    machine = result["machine"]
    versions = machine["versions"]
    load = "" if machine["load_average"] is None else f", load {machine['load_average']:g} at the start"
    where = (
        f"{machine['cpu']}, {counted(machine['usable_cores'], 'core')}{load}; "
        f"gym-dr {versions.get('gym-dr', '')}, gymnasium {versions.get('gymnasium', '')}, Python {versions['python']}"
    )
    figure.supxlabel(f"{note}\n{where}", fontsize=8, color="#444444", x=0.01, ha="left")
    save_figure(figure, path, dpi=130)
