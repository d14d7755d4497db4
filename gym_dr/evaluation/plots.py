"""Plots of training: one run, or several as mean and spread."""

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
    """Reads a CSV file of a run.

    Args:
        path: The file.
        columns: Columns that it must have.

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

    Args:
        folders: Runs to draw together.
        path: PNG to write.

    Raises:
        RunFolderError: A run has no metrics, or the picture cannot be written.
    """
    import pandas as pd  # heavy, as those below: only when something is plotted
    import seaborn as sns
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tables = [read_metrics(folder) for folder in folders]
    known = {name: (title, label) for name, title, label in _PANELS}
    columns = [name for name in known if any(name in table for table in tables)]
    with sns.axes_style("whitegrid"):
        figure = Figure(figsize=(12, 8), layout="constrained")  # no pyplot: nothing is left open, no display needed
        FigureCanvasAgg(figure)
        axes = list(figure.subplots(2, 2).flat)
    names = ", ".join(folder.path.name for folder in folders)
    several = f"{len(folders)} runs, mean and standard deviation of their moving averages ({MOVING_AVERAGE} updates)"
    figure.suptitle(
        names if len(folders) == 1 else f"{names}: {several}" if len(folders) < 4 else several, parse_math=False
    )
    for ax, column in zip(axes, columns, strict=False):
        title, label = known[column]
        with_column = [table for table in tables if column in table]
        smooth = [_smoothed(table, column) for table in with_column]
        if len(smooth) == 1:
            raw = with_column[0]
            ax.plot(raw["update"], raw[column], color="C0", alpha=0.25, linewidth=0.8, label="each update")
            ax.plot(smooth[0]["update"], smooth[0]["value"], color="C0", label=f"moving average ({MOVING_AVERAGE})")
        else:
            sns.lineplot(
                pd.concat(smooth, ignore_index=True), x="update", y="value", errorbar="sd", ax=ax, label="mean"
            )
        ax.set(title=title, xlabel="Update", ylabel=label)
        ax.legend()
    for ax in axes[len(columns) :]:
        ax.set_visible(False)
    picture = io.BytesIO()
    try:
        figure.savefig(picture, dpi=110, format=path.suffix[1:] or "png")
    except ValueError as error:  # an unknown format
        raise RunFolderError(f"{path}: the picture cannot be written: {error}.") from None
    write_atomically(path, picture.getvalue())


def _smoothed(table: Any, column: str) -> Any:
    import pandas as pd

    average = table[column].rolling(MOVING_AVERAGE, min_periods=1).mean()
    return pd.DataFrame({"update": table["update"], "value": average})
