"""How an adaptive sampler changed the draws of a run: the quantiles of each parameter over updates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.runs.config import RunConfig
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import read_csv
from gym_dr.wrappers.disturbed_space import split

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # probabilities of the quantiles: two bands and the median, ...
MIDDLE = 2  # ... or the mean of a switch
WINDOWS = 60  # parts of a run with equally many episodes


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
