"""How an adaptive sampler changed the draws of a run: their quantiles over updates, and the sampler's statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gym_dr.arrays import Array
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.reports.plots import new_figure, save_figure
from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import read_csv
from gym_dr.wrappers.disturbed_space import split

if TYPE_CHECKING:
    import pandas as pd

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles to plot: two bands and the median, ...
MIDDLE = 2  # ... or the mean of a switch
WINDOWS = 60  # of the same number of episodes, over the run
DID = {  # columns of sampler.csv to plot, if present
    "success_rate": "Success rate",
    "entropy": "Entropy of draws, nats (whole box: 0)",
    "effective_sample_size": "Effective sample size",
}


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
    if config.settings.sampler == UNIFORM or config.randomization is None or not folder.draws.exists():
        return []
    space = config.space
    assert space is not None  # since there is a randomization
    drawn, _ = split(config.randomization)
    table = read_csv(folder.draws, ("update", *drawn))
    if table.empty:
        return []
    parts = np.array_split(np.arange(len(table)), min(WINDOWS, len(table)))
    updates = np.array([table["update"].to_numpy()[part].mean() for part in parts])
    found = []
    for name, rule in drawn.items():
        low, high = rule.support(space[name].nominal)
        if low < high:
            values = table[name].to_numpy(np.float64)
            quantiles = np.stack([np.quantile(values[part], SHARES) for part in parts], axis=1)
            if space[name].kind == "bool":  # the median of a switch is not informative
                quantiles[MIDDLE] = [values[part].mean() for part in parts]
            ends = float(low), float(high)
            found.append(Growth(name=name, unit=space[name].unit, ends=ends, updates=updates, quantiles=quantiles))
    return found


def read_updates(folder: RunFolder) -> pd.DataFrame | None:
    """Reads the sampler's statistics, one row per update; None before its first update.

    Raises:
        RunFolderError: The file is damaged.
    """
    return read_csv(folder.sampler, ("update",)) if folder.sampler.exists() else None


def plot_growth(folder: RunFolder, config: RunConfig, path: Path) -> None:
    """Plots the sampler's statistics, and for each parameter the median of its draws with bands of 50 and 90 %.

    Writes nothing for a run whose sampler is not adaptive.

    Raises:
        RunFolderError: The run's files are damaged, or the picture cannot be written.
    """
    grown, rows = read_growth(folder, config), read_updates(folder)
    if not grown:
        return
    did: Mapping[str, str] = {} if rows is None else {key: title for key, title in DID.items() if key in rows}
    count = len(did) + len(grown)
    columns = min(3, count)
    figure, axes = new_figure(math.ceil(count / columns), columns, (4.4 * columns, 3.0 * math.ceil(count / columns)))
    figure.suptitle(f"{folder.path.name}: draws by {config.settings.sampler}", parse_math=False)
    for ax, (key, title) in zip(axes, did.items(), strict=False):
        assert rows is not None
        ax.plot(rows["update"], rows[key], color="C1", marker="." if len(rows) < 30 else None)
        ax.set(title=title, xlabel="Update")
    for ax, one in zip(axes[len(did) :], grown, strict=False):
        for inner, alpha, label in ((0, 0.2, "nine tenths of the draws"), (1, 0.4, "half of the draws")):
            low, high = one.quantiles[inner], one.quantiles[-1 - inner]
            ax.fill_between(one.updates, low, high, color="C0", alpha=alpha, linewidth=0, label=label)
        ax.plot(one.updates, one.quantiles[MIDDLE], color="C0", label="median (of a switch: mean)")
        for end in one.ends:
            ax.axhline(end, color="0.4", linestyle="--", linewidth=1, label="ends of the box")
        ax.set_title(one.name, parse_math=False)
        ax.set(xlabel="Update", ylabel=one.unit)
    handles, labels = axes[len(did)].get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))  # without the second end of the box
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries))
    for ax in axes[count:]:
        ax.set_visible(False)
    save_figure(figure, path, dpi=110)
