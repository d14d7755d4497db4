"""Plots of training, one run or several as mean and spread; how logs are read and pictures written."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import whole_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOVING_AVERAGE = 20  # updates

_PANELS = (
    ("return_mean", "Episode return", "mean of the last 100 episodes"),
    ("entropy", "Entropy", "nats"),
    ("critic_loss", "Critic loss", "loss"),
    ("actor_loss", "Actor loss", "loss"),
)


def read_metrics(folder: RunFolder) -> pd.DataFrame:
    """A run's metrics, one row per update.

    Raises:
        RunFolderError: There are none, or the file is damaged.
    """
    if not folder.metrics.exists():
        raise RunFolderError(f"{folder.metrics}: there are no metrics of this run yet.")
    table = read_log(folder.metrics, ("update", "return_mean"))
    if table.empty:
        raise RunFolderError(f"{folder.metrics}: expected at least one row.")
    return table


def read_log(path: Path, columns: Collection[str]) -> pd.DataFrame:
    """Reads a CSV file of a run, which must have some columns.

    Raises:
        RunFolderError: The file is missing or damaged.
    """
    import pandas as pd  # heavy: only when something is plotted

    try:
        table = pd.read_csv(io.StringIO(whole_rows(path)))
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise RunFolderError(f"{path}: cannot be read as CSV: {error}.") from None
    if not set(columns) <= set(table.columns):
        raise RunFolderError(f"{path}: expected columns {', '.join(columns)}, got {', '.join(table.columns)}.")
    return table


def plot_training(folders: Sequence[RunFolder], path: Path) -> None:
    """Draws return, entropy and both losses against updates, with a moving average over 20 updates.

    One run shows its raw values faintly behind the average; several are drawn as the mean of their averages, with one
    standard deviation as a band.

    Raises:
        RunFolderError: A run has no metrics, or the picture cannot be written.
    """
    import pandas as pd  # heavy, as the next: only when something is plotted
    import seaborn as sns

    tables = [read_metrics(folder) for folder in folders]
    panels = [panel for panel in _PANELS if any(panel[0] in table for table in tables)]
    figure, axes = new_figure(2, 2, (12, 8))
    names = ", ".join(folder.path.name for folder in folders)
    several = f"{len(folders)} runs, mean and standard deviation of their moving averages ({MOVING_AVERAGE} updates)"
    figure.suptitle(
        names if len(folders) == 1 else f"{names}: {several}" if len(folders) < 4 else several, parse_math=False
    )
    for ax, (column, title, label) in zip(axes, panels, strict=False):
        smooth = [
            table.assign(value=table[column].rolling(MOVING_AVERAGE, min_periods=1).mean())
            for table in tables
            if column in table
        ]
        if len(smooth) == 1:
            updates = smooth[0]["update"]
            ax.plot(updates, smooth[0][column], color="C0", alpha=0.25, linewidth=0.8, label="each update")
            ax.plot(updates, smooth[0]["value"], color="C0", label=f"moving average ({MOVING_AVERAGE})")
        else:
            every = pd.concat(smooth, ignore_index=True)
            sns.lineplot(every, x="update", y="value", errorbar="sd", ax=ax, label="mean")
        ax.set(title=title, xlabel="Update", ylabel=label)
        ax.legend()
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    save_figure(figure, path, dpi=110)


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """A figure and its axes; ``size`` is in inches. Without pyplot nothing is left open, and no display is needed."""
    import seaborn as sns  # heavy, as the next
    from matplotlib.figure import Figure

    with sns.axes_style("whitegrid"):
        figure = Figure(figsize=size, layout="constrained")
        return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Writes a picture whole or not at all.

    Raises:
        RunFolderError: It cannot be written, or its format is unknown.
    """
    picture = io.BytesIO()
    try:
        figure.savefig(picture, dpi=dpi, format=path.suffix[1:] or "png")
    except ValueError as error:  # an unknown format
        raise RunFolderError(f"{path}: the picture cannot be written: {error}.") from None
    write_atomically(path, picture.getvalue())
