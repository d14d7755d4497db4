"""Samples of a randomization as a table, and pictures of its distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.errors import RandomizationError, shortened
from gym_dr.options import is_whole
from gym_dr.randomization.draws import draw, seed_word
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import Param, ParamSpace, nominal_may_be_outside
from gym_dr.randomization.spec import Randomization

if TYPE_CHECKING:
    import pandas as pd

PANELS = 3  # side by side
BINS = 40  # of a histogram
FEW = 20  # distinct values, which get a bar each
PATTERN = set("*?[")  # signs in names that stand for several parameters


def sample(randomization: Randomization, n: int, seed: int, space: ParamSpace | None) -> pd.DataFrame:
    """See ``Randomization.sample``."""
    import pandas as pd  # heavy

    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise RandomizationError(f"Expected a number of draws of at least 1, got {n!r}.")
    if not is_whole(seed) or seed < 0:
        raise RandomizationError(f"Expected a seed that is a whole number of at least 0, got {seed!r}.")
    found, known = _with_space(randomization, space)
    words = np.full(int(n), seed_word(seed), np.uint64)
    return pd.DataFrame(draw(found, known, words, np.arange(n)), index=pd.RangeIndex(int(n), name="draw_index"))


def plot(randomization: Randomization, n: int, seed: int, space: ParamSpace | None) -> Any:
    """See ``Randomization.plot``."""
    from matplotlib import pyplot  # heavy

    table = sample(randomization, n, seed, space)
    if table.shape[1] == 0:
        raise RandomizationError("Expected a randomization with parameters to plot, got none.")
    rows = math.ceil(table.shape[1] / PANELS)
    size = (4 * min(PANELS, table.shape[1]), 2.6 * rows)
    _, grid = pyplot.subplots(rows, min(PANELS, table.shape[1]), squeeze=False, figsize=size, layout="constrained")
    panels = grid.ravel()
    for panel, (name, values) in zip(panels, table.items(), strict=False):
        distinct, counts = np.unique(values, return_counts=True)
        if len(distinct) <= FEW:
            width = 0.8 * float(np.diff(distinct).min(initial=1.0))
            panel.bar(distinct, counts / n, width=width)
            panel.set_ylabel("share of draws")
        else:
            panel.hist(values, bins=BINS, density=True)
            panel.set_ylabel("density")
        unit = "" if space is None or space[str(name)].kind != "float" else space[str(name)].unit
        panel.set_xlabel(f"{name} [{unit}]" if unit else str(name))
        if space is not None:
            panel.axvline(space[str(name)].nominal, color="black", linestyle="--", linewidth=1, label="nominal")
            panel.legend()
    for panel in panels[table.shape[1] :]:
        panel.remove()
    return panels[: table.shape[1]]


def _with_space(randomization: Randomization, space: ParamSpace | None) -> tuple[Randomization, ParamSpace]:
    """The randomization and the space to draw in, which is unbounded if none is given.

    Raises:
        RandomizationError: A rule needs the environment's parameters, or ``space`` is something else.
    """
    if space is not None:
        if not isinstance(space, ParamSpace):
            expected = "the environment's parameters, such as envs.unwrapped.param_space"
            raise RandomizationError(f"space: expected {expected}, got {shortened(space)}.")
        with nominal_may_be_outside():
            return resolve(randomization, space), space
    for name, rule in randomization.items():
        needs = (
            f"{rule!r} starts from the nominal value"
            if rule.operation != "absolute"
            else "the name stands for several parameters"
            if PATTERN & set(name)
            else ""
        )
        if needs:
            raise RandomizationError(
                f"Parameter {name!r}: {needs}. Pass the environment's parameters: space=envs.param_space"
            )
    return randomization, ParamSpace(
        "", [Param(name=n, nominal=0.0, low=-math.inf, high=math.inf) for n in randomization]
    )
