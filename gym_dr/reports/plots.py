"""Plots of training; reads logs and writes pictures."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import RunFolderError
from gym_dr.runs.durable import write_atomically
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import read_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOVING_AVERAGE = 20  # updates
STEPS = "Environment steps"  # label of an axis
TITLE_WIDTH = 60  # characters above each column of panels

_DEFAULTS = "default"  # style without the settings of a matplotlibrc in the current folder, which may have LaTeX run

_PANELS = (
    ("return_mean", "Episode return", "mean of the last 100 episodes"),
    ("entropy", "Entropy", "nats"),
    ("critic_loss", "Critic loss", "loss"),
    ("actor_loss", "Actor loss", "loss"),
)


def plot_training(folders: Sequence[RunFolder], path: Path) -> None:
    """Plots return, entropy and both losses against environment steps, with a moving average over 20 updates.

    A single run's raw values are faint behind the average; of several runs, there is the average of each.

    Raises:
        RunFolderError: A run has no metrics, or the picture cannot be written.
    """
    from matplotlib.ticker import EngFormatter  # heavy

    tables = [read_metrics(folder) for folder in folders]
    panels = [panel for panel in _PANELS if any(panel[0] in table for table in tables)]
    rows, columns = -(-len(panels) // 2), min(len(panels), 2)
    figure, axes = new_figure(rows, columns, (6 * columns, 4 * rows))
    names = [folder.path.name for folder in folders]
    heading = ", ".join(names) if len(names) < 4 else f"{len(names)} runs"
    figure.suptitle(textwrap.fill(heading, TITLE_WIDTH * columns), parse_math=False)
    average = f"moving average ({MOVING_AVERAGE} updates)"
    for ax, (column, title, label) in zip(axes, panels, strict=False):
        for index, (name, table) in enumerate(zip(names, tables, strict=True)):
            if column not in table:
                continue
            if len(tables) == 1:
                ax.plot(table["steps"], table[column], color="C0", alpha=0.25, linewidth=0.8, label="each update")
            smooth = table[column].rolling(MOVING_AVERAGE, min_periods=1).mean()
            what = average if len(tables) == 1 else f"{name}, {average}"
            ax.plot(table["steps"], smooth, color=f"C{index}", label=what)
        ax.set(title=title, xlabel=STEPS, ylabel=label)
        ax.xaxis.set_major_formatter(EngFormatter(usetex=False))  # 2 M
    # one for all panels; matplotlib's search for the best place within one takes seconds for a long training
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    for ax in axes[len(panels) :]:  # an odd number leaves one over
        ax.set_visible(False)
    save_figure(figure, path, dpi=110)


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
