"""Plots of training, of one run or of several as mean and spread; reads logs and writes pictures."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import whole_rows
from gym_dr.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


MOVING_AVERAGE = 20  # updates
CURVE_POINTS = 300  # of a mean over runs
NUM_COLORS, DASHES = 10, ("-", "--", ":")  # Matplotlib's colors repeat, with another dash
STEPS = "Environment steps"  # label of an axis
TITLE_WIDTH = 60  # characters above each column of panels

_DEFAULTS = "default"  # style without the settings of a matplotlibrc in the current folder, which may have LaTeX run

_PANELS = (
    ("return_mean", "Episode return", "mean of the last 100 episodes"),
    ("entropy", "Entropy", "nats"),
    ("critic_loss", "Critic loss", "loss"),
    ("actor_loss", "Actor loss", "loss"),
)


def read_metrics(folder: RunFolder) -> pd.DataFrame:
    """Reads a run's metrics, one row per update.

    Raises:
        RunFolderError: There are none, or the file is damaged.
    """
    if not folder.metrics.exists():
        raise RunFolderError(f"{folder.metrics}: this run has no metrics yet.")
    table = read_log(folder.metrics, ("update", "steps", "return_mean"))
    if table.empty:
        raise RunFolderError(f"{folder.metrics}: expected at least one row.")
    return table


def read_log(path: Path, columns: Collection[str]) -> pd.DataFrame:
    """Reads a CSV file of a run, which must have ``columns``.

    Raises:
        RunFolderError: The file is missing or damaged.
    """
    import pandas as pd  # heavy: only when something is plotted

    try:
        table = pd.read_csv(io.StringIO(whole_rows(path)))
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        reason = getattr(error, "strerror", None) or error
        raise RunFolderError(f"{path}: cannot be read as CSV: {reason}.") from None
    if not set(columns) <= set(table.columns):
        raise RunFolderError(f"{path}: expected columns {', '.join(columns)}, got {', '.join(table.columns)}.")
    return table


def plot_training(folders: Sequence[RunFolder], path: Path) -> None:
    """Plots return, entropy and both losses against environment steps, with a moving average over 20 updates.

    A single run's raw values are faint behind the average; several runs are plotted as the mean of their averages with
    a band of one standard deviation. If they share no steps, there is no mean, and their averages are plotted.

    Raises:
        RunFolderError: A run has no metrics, or the picture cannot be written.
    """
    from matplotlib.ticker import EngFormatter  # heavy

    tables = [read_metrics(folder) for folder in folders]
    panels = [panel for panel in _PANELS if any(panel[0] in table for table in tables)]
    rows, columns = -(-len(panels) // 2), min(len(panels), 2)
    figure, axes = new_figure(rows, columns, (6 * columns, 4 * rows))
    names = ", ".join(folder.path.name for folder in folders)
    shared = _share_steps(tables)
    what = "mean and standard deviation of their" if shared else "which share no steps and so have no mean:"
    several = f"{len(folders)} runs, {what} moving averages ({MOVING_AVERAGE} updates)"
    heading = names if len(folders) == 1 else f"{names}: {several}" if len(folders) < 4 else several
    figure.suptitle(textwrap.fill(heading, TITLE_WIDTH * columns), parse_math=False)
    for ax, (column, title, label) in zip(axes, panels, strict=False):
        smooth = [
            table.assign(value=table[column].rolling(MOVING_AVERAGE, min_periods=1).mean())
            for table in tables
            if column in table
        ]
        if len(smooth) == 1:
            steps = smooth[0]["steps"]
            ax.plot(steps, smooth[0][column], color="C0", alpha=0.25, linewidth=0.8, label="each update")
            ax.plot(steps, smooth[0]["value"], color="C0", label=f"moving average ({MOVING_AVERAGE} updates)")
        else:
            _draw_runs(ax, smooth, label="mean" if shared else "each run", band="standard deviation over runs")
        ax.set(title=title, xlabel=STEPS, ylabel=label)
        ax.xaxis.set_major_formatter(EngFormatter(usetex=False))  # 2 M
    # one for all panels; matplotlib's search for the best place within one takes seconds for a long training
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    for ax in axes[len(panels) :]:  # an odd number leaves one over
        ax.set_visible(False)
    save_figure(figure, path, dpi=110)


def plot_learning_curves(groups: Mapping[str, Sequence[RunFolder]], path: Path) -> None:
    """Plots training returns against environment steps: each group's mean, with a band of one standard deviation.

    Raises:
        RunFolderError: A run has no metrics, or the picture cannot be written.
    """
    figure, (ax,) = new_figure(1, 1, (9, 5.5))
    for index, (name, folders) in enumerate(groups.items()):
        tables = [read_metrics(folder) for folder in folders]
        smooth = [
            table.assign(value=table["return_mean"].rolling(MOVING_AVERAGE, min_periods=1).mean()) for table in tables
        ]
        label = f"{name} ({counted(len(smooth), 'seed')}{'' if _share_steps(smooth) else ', which share no steps'})"
        dash = DASHES[index // NUM_COLORS % len(DASHES)]
        _draw_runs(ax, smooth, label=label, linestyle=dash)
    ax.set(
        title="Training return, each variant on its own draws: mean and standard deviation over seeds",
        xlabel=STEPS,
        ylabel=f"Mean of the last 100 episodes, over {MOVING_AVERAGE} updates",
    )
    ax.legend(fontsize="small", loc="lower right")
    save_figure(figure, path, dpi=110)


def _share_steps(tables: Sequence[pd.DataFrame]) -> bool:
    """Whether there is a number of environment steps that all runs have made."""
    return bool(max(table["steps"].iloc[0] for table in tables) <= min(table["steps"].iloc[-1] for table in tables))


def _mean_and_spread(tables: Sequence[pd.DataFrame]) -> tuple[Array, Array, Array]:
    """Environment steps that all runs have made; mean and standard deviation over runs of the column ``value``.

    Values are interpolated, since the same update of two runs may end after different numbers of steps.
    """
    curves = [(table["steps"].to_numpy(np.float64), table["value"].to_numpy(np.float64)) for table in tables]
    steps = np.linspace(max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves), CURVE_POINTS)
    values = np.stack([np.interp(steps, x, y) for x, y in curves])
    return steps, values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(CURVE_POINTS)


def _draw_runs(ax: Any, tables: Sequence[pd.DataFrame], *, label: str, band: str = "", **options: Any) -> None:
    """The mean over runs with a band around it, which ``band`` names; each run, in one color, if they share no steps.

    ``options`` are those of ``Axes.plot``.
    """
    if not _share_steps(tables):
        for k, table in enumerate(tables):
            (line,) = ax.plot(table["steps"], table["value"], label=None if k else label, **options)
            options["color"] = line.get_color()
        return
    x, mean, spread = _mean_and_spread(tables)
    (line,) = ax.plot(x, mean, label=label, **options)
    shared: Any = {"color": line.get_color(), "alpha": 0.18, "linewidth": 0}
    ax.fill_between(x, mean - spread, mean + spread, label=band or None, **shared)


def plot_grids(maps: Mapping[str, Array], axes: Mapping[str, Sequence[float]], path: Path) -> None:
    """Plots mean returns over the first two axes of a grid, a heat map for each group, all on one color scale.

    Args:
        maps: Name of a group -> means, one dimension for each axis.
        axes: Label of an axis -> its values; axes after the second are averaged.
        path: Path of the picture.

    Raises:
        RunFolderError: The picture cannot be written.
    """
    (y, rows), (x, columns) = list(axes.items())[:2]
    flat = {name: values.reshape(*values.shape[:2], -1).mean(axis=2) for name, values in maps.items()}
    low, high = min(values.min() for values in flat.values()), max(values.max() for values in flat.values())
    figure, places = new_figure(1, len(flat), (2.2 * len(flat) + 1.2, 3.0))
    for place, (name, values) in zip(places, flat.items(), strict=True):
        image = place.pcolormesh(columns, rows, values, vmin=low, vmax=high, cmap="cividis", shading="nearest")
        place.set_title(name)
        place.label_outer()
    places[0].set_ylabel(y)
    figure.supxlabel(x, fontsize="medium")  # once: longer labels would run into each other
    figure.colorbar(image, ax=places, label="mean return")
    save_figure(figure, path, dpi=80)


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """Makes a figure and its axes; ``size`` is in inches. It avoids pyplot, so it needs no display and no closing."""
    from matplotlib import style  # heavy, as the next
    from matplotlib.figure import Figure

    with style.context([_DEFAULTS, "seaborn-v0_8-whitegrid"]):
        figure = Figure(figsize=size, layout="constrained")
        return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Writes a picture whole or not at all.

    Raises:
        RunFolderError: It cannot be written, or its format is unknown.
    """
    from matplotlib import style  # heavy, as the next
    from matplotlib.text import Text

    picture = io.BytesIO()
    try:
        with style.context(_DEFAULTS):
            for text in figure.findobj(Text):  # made since, with the settings in force then
                text.set_usetex(False)
            figure.savefig(picture, dpi=dpi, format=path.suffix[1:] or "png")
    except ValueError as error:  # an unknown format
        raise RunFolderError(f"{path}: the picture cannot be written: {error}.") from None
    write_atomically(path, picture.getvalue())
