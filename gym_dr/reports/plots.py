"""Pictures of training in a run folder: its metrics, and how an adaptive sampler changed the draws."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.played import TERM
from gym_dr.errors import RunFolderError, printable, raised_as
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import PICTURE_MARK, RunFolder, write_atomically
from gym_dr.runs.metrics import read_csv, read_metrics
from gym_dr.wrappers.disturbed_space import split

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOVING_AVERAGE = 20  # updates
STEPS = "Environment steps"  # label of an axis
TITLE_WIDTH = 44  # characters above each column of panels

_DEFAULTS = "default"  # style without the settings of a matplotlibrc in the current folder, which may have LaTeX run

_PANELS = (
    ("return_mean", "Episode return", "mean of the last 100 episodes"),
    ("entropy", "Entropy", "nats"),
    ("critic_loss", "Critic loss", "loss"),
    ("actor_loss", "Actor loss", "loss"),
)
_STATISTICS = {  # columns of sampler.csv to plot, if present
    "success_rate": "Success rate",
    "entropy": "Entropy of draws, nats (box: 0)",
    "effective_sample_size": "Effective sample size",
}

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # probabilities of the quantiles: two bands and the median, ...
MIDDLE = 2  # ... or the mean of a switch
WINDOWS = 60  # parts of a run with equally many episodes


def plot_training(folders: Sequence[RunFolder], path: Path) -> None:
    """Plots return, entropy and both losses against environment steps, with a moving average over 20 updates.

    Another panel has the terms of the reward, if there are any.

    A single run's raw values are faint behind the average; several runs show only their averages.

    Raises:
        RunFolderError: A run has no metrics, or the picture cannot be written.
    """
    from matplotlib.ticker import EngFormatter  # heavy

    tables = [read_metrics(folder) for folder in folders]
    panels = [([column], *words) for column, *words in _PANELS if any(column in table for table in tables)]
    columns = dict.fromkeys(str(column) for table in tables for column in table)
    terms = [column for column in columns if column.startswith(TERM) and column.endswith("_mean")]
    panels += [(terms, "Terms of the reward", _PANELS[0][2])] if terms else []
    figure, axes = new_figure(len(panels), 2, (4.4, 3.2))
    names = [printable(folder.path.name) for folder in folders]
    heading = ", ".join(names) if len(names) < 4 else f"{len(names)} runs"
    figure.suptitle(textwrap.fill(heading, TITLE_WIDTH * min(len(panels), 2)), parse_math=False)
    average = f"moving average ({MOVING_AVERAGE} updates)"
    for ax, (shown, title, label) in zip(axes, panels, strict=True):
        for (k, column), (index, table) in product(enumerate(shown), enumerate(tables)):
            if column not in table:
                continue
            what = average if len(tables) == 1 else names[index]
            color, dashes = f"C{index}", "-"
            if shown is terms:  # lines tell the runs apart
                named = any(column in before for before in tables[:index])
                what = "_" if named else printable(column[len(TERM) : -len("_mean")]).replace("$", r"\$")
                color, dashes = f"C{k}", ("-", "--", ":", "-.")[index % 4]
            elif len(tables) == 1:
                ax.plot(table["steps"], table[column], color="C0", alpha=0.25, linewidth=0.8, label="each update")
            smooth = table[column].rolling(MOVING_AVERAGE, min_periods=1).mean()
            ax.plot(table["steps"], smooth, dashes, color=color, label=what)
        ax.set(title=title, xlabel=STEPS, ylabel=label)
        ax.xaxis.set_major_formatter(EngFormatter(usetex=False))  # 2 M
    if terms:
        beside = axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        beside.set_in_layout(len(panels) % 2 == 0)  # otherwise the place beside it is free
    # one for all panels; matplotlib's search for the best place within one takes seconds for a long training
    entries = axes[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=2, title=None if len(tables) == 1 else average)
    save_figure(figure, path, dpi=110)


def plot_growth(folder: RunFolder, config: RunConfig) -> None:
    """Plots the sampler's statistics, and for each parameter the median of its draws with bands of 50 and 90 %.

    Writes ``sampler.png``, or nothing for a run whose sampler is not adaptive.

    Raises:
        RunFolderError: The run's files are damaged, or the picture cannot be written.
    """
    if not (growth := read_growth(folder, config)):
        return
    table: Any = read_csv(folder.sampler, ("update",)) if folder.sampler.exists() else ()
    statistics = [key for key in _STATISTICS if key in table]
    figure, axes = new_figure(len(statistics) + len(growth), 3, (3.3, 2.5))
    figure.suptitle(f"{printable(folder.path.name)}: draws by {config.settings.sampler}", parse_math=False)
    for ax, key in zip(axes, statistics, strict=False):
        ax.plot(table["update"], table[key], color="C1", marker="." if len(table) < 30 else None)
        ax.set(title=_STATISTICS[key], xlabel="Update")
    for ax, one in zip(axes[len(statistics) :], growth, strict=False):
        for inner, alpha, label in ((0, 0.2, "nine tenths of the draws"), (1, 0.4, "half of the draws")):
            low, high = one.quantiles[inner], one.quantiles[-1 - inner]
            ax.fill_between(one.updates, low, high, color="C0", alpha=alpha, linewidth=0, label=label)
        ax.plot(one.updates, one.quantiles[MIDDLE], color="C0", label="median (of a switch: mean)")
        for end in one.ends:
            ax.axhline(end, color="0.4", linestyle="--", linewidth=1, label="ends of the box")
        ax.set_title(one.name, parse_math=False)
        ax.set(xlabel="Update", ylabel=one.unit)
    handles, labels = axes[len(statistics)].get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))  # without the second end of the box
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries))
    save_figure(figure, folder.growth, dpi=110)


def new_figure(panels: int, most: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """Makes a figure and its axes, without pyplot, which would need a display and closing.

    Args:
        panels: Number of axes.
        most: Largest number of columns.
        size: Width and height of a panel, inches.
    """
    from matplotlib import style  # heavy, as the next
    from matplotlib.figure import Figure

    columns, rows = min(panels, most), math.ceil(panels / most)
    with style.context([_DEFAULTS, "seaborn-v0_8-whitegrid"]):
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for left_over in axes[panels:]:
        left_over.set_visible(False)
    return figure, axes[:panels]


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Writes a picture whole or not at all.

    Raises:
        RunFolderError: It cannot be written, or its format is unknown.
    """
    from matplotlib import style  # heavy, as the next
    from matplotlib.text import Text

    picture = io.BytesIO()
    # a format may be unknown
    with raised_as(RunFolderError, f"{path}: cannot be written", ValueError), style.context(_DEFAULTS):
        for text in figure.findobj(Text):  # made since, with the settings in force then
            text.set_usetex(False)
        form = path.suffix[1:] or "png"
        about = {"Software": PICTURE_MARK.decode()} if form == "png" else None
        figure.savefig(picture, dpi=dpi, format=form, metadata=about)
    write_atomically(path, picture.getvalue())


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One parameter's draws over a run."""

    name: str
    unit: str
    ends: tuple[float, float]  # of the box
    updates: Array  # (windows,)
    quantiles: Array  # (len(SHARES), windows)


def read_growth(folder: RunFolder, config: RunConfig) -> list[Growth]:
    """Reads how each parameter's draws changed; empty if the sampler is not adaptive or no episode has ended.

    Raises:
        RunFolderError: The draws are damaged.
    """
    space = config.space
    if config.settings.sampler == UNIFORM or config.randomization is None or space is None or not folder.draws.exists():
        return []
    randomized, _ = split(config.randomization)
    table = read_csv(folder.draws, ("update", *randomized))
    windows = np.array_split(np.arange(len(table)), min(WINDOWS, len(table))) if len(table) else []
    growth = []
    for name, rule in randomized.items():
        low, high = rule.support(space[name].nominal)
        if not windows or low == high:
            continue
        draws = [table[name].to_numpy(np.float64)[window] for window in windows]
        quantiles = np.stack([np.quantile(part, SHARES) for part in draws], axis=1)
        if space[name].kind == "bool":  # the median of a switch is not informative
            quantiles[MIDDLE] = [part.mean() for part in draws]
        updates = np.array([table["update"].to_numpy()[window].mean() for window in windows])
        ends = float(low), float(high)
        growth.append(Growth(name=name, unit=space[name].unit, ends=ends, updates=updates, quantiles=quantiles))
    return growth
