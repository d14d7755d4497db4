"""What a report shows of training: learning curves over seeds, and which draws returned what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.errors import RunFolderError
from gym_dr.evaluation.plots import read_metrics
from gym_dr.evaluation.report.groups import Group
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import new_figure, series, translucent, with_unit
from gym_dr.randomization.space import ParamSpace
from gym_dr.runs.folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd

CURVE_POINTS = 250  # of a learning curve; more than the pixels of a phone are wide
DRAWS = 1200  # episodes that a plot of draws shows
BINS = 10  # of the line through them
LAST = 0.25  # part of the training that the line is of
FEW = 4  # a parameter with no more values than this is shown by boxes


def learning_curves(groups: Sequence[Group]) -> Section:
    """Mean training return against steps: each seed thin, their mean bold.

    Raises:
        RunFolderError: A run has no metrics, or they are damaged.
    """
    import plotly.graph_objects as go

    traces: list[Any] = []
    for index, group in enumerate(groups):
        colour, dash = series(index)
        name = plain(group.name)
        alone = len(group.policies) == 1
        tables = [read_metrics(policy.folder) for policy in group.policies]
        for seed, table in zip(group.seeds, tables, strict=True):
            thin = _thinned(table, CURVE_POINTS)
            traces.append(
                go.Scatter(
                    x=thin["steps"].tolist(),
                    y=thin["return_mean"].tolist(),
                    mode="lines",
                    line={
                        "color": colour if alone else translucent(colour, 0.45),
                        "width": 2.2 if alone else 1.2,
                        "dash": dash,
                    },
                    name=name if alone else f"{name}, seed {seed}",
                    legendgroup=str(index),
                    showlegend=alone,
                    hovertemplate="%{y:.1f} after %{x:,} steps<extra>%{fullData.name}</extra>",
                )
            )
        if not alone:
            mean = _thinned(_mean_of_seeds(tables), CURVE_POINTS)
            traces.append(
                go.Scatter(
                    x=mean["steps"].tolist(),
                    y=mean["return_mean"].tolist(),
                    mode="lines",
                    line={"color": colour, "width": 3, "dash": dash},
                    name=f"{name} ({len(tables)} seeds)",
                    legendgroup=str(index),
                    hovertemplate="%{y:.1f} after %{x:,} steps<extra>%{fullData.name}, mean</extra>",
                )
            )
    figure = new_figure(traces, x="Environment steps", y="Return, mean of 100 episodes")
    several = any(len(group.policies) > 1 for group in groups)
    seeds = "Thin lines are single seeds, bold lines their mean. " if several else ""
    return Section(
        key="training",
        title="Learning curves",
        lead="How the policies came to what they are.",
        how_to_read=f"{seeds}Each policy is trained on its own draws, so a lower curve may only mean harder episodes: "
        "compare policies by the evaluation above.",
        views=[View(panels=[Panel(title="", figure=figure, description="Return against environment steps.")])],
    )


def draw_history(groups: Sequence[Group], space: ParamSpace | None) -> Section | None:
    """For each policy and each of its varying parameters the sampled values against the returns.

    Args:
        groups: Policies.
        space: What may vary in their environment.

    Returns:
        None where nothing was varied.

    Raises:
        RunFolderError: A file of draws is damaged.
    """
    import pandas as pd

    if space is None:
        return None
    views = []
    for group in groups:
        tables = [read_draws(policy.folder) for policy in group.policies if policy.folder.draws.exists()]
        if not tables:  # no episode had ended yet
            continue
        table = pd.concat([table.assign(progress=_progress(len(table))) for table in tables], ignore_index=True)
        varying = [name for name in space if name in table and table[name].nunique() > 1]
        if varying:
            views.append(View(name=group.name, panels=[_draws_of(table, name, space) for name in varying]))
    if not views:
        return None
    return Section(
        key="draws",
        title="Draws of training",
        lead="What was sampled in training against what it returned.",
        how_to_read=f"Each dot is an episode (at most {DRAWS:,} are shown), the later in training the lighter. The "
        f"line is the median return in the last {LAST:.0%} of training: where it falls, draws are still hard for the "
        "policy. Parameters with few values have boxes of that last part instead: the middle half and the median.",
        views=views,
        choice="Policy",
    )


def read_draws(folder: RunFolder) -> pd.DataFrame:
    """A run's episodes with their draws, one row each.

    Raises:
        RunFolderError: The file is missing or damaged.
    """
    import pandas as pd

    try:
        table = pd.read_csv(folder.draws)
    except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
        raise RunFolderError(f"{folder.draws}: cannot be read as CSV: {error}.") from None
    if "return" not in table:
        raise RunFolderError(f"{folder.draws}: expected a column return.")
    return table


def _draws_of(table: pd.DataFrame, name: str, space: ParamSpace) -> Panel:
    import plotly.graph_objects as go

    late = table[table["progress"] >= 1 - LAST]
    title = with_unit(name, space[name].unit)
    layout: dict[str, Any] = {}
    if table[name].nunique() <= FEW:
        traces: list[Any] = [
            go.Box(
                x=late[name].map("{:g}".format).tolist(),
                y=late["return"].tolist(),
                marker={"color": series(0)[0], "size": 3},
                line={"width": 1.5},
                hoverinfo="y",
            )
        ]
        layout["xaxis_type"] = "category"
    else:
        shown = _thinned(table, DRAWS)
        low, middle = _medians(late, name)
        traces = [
            go.Scatter(
                x=shown[name].tolist(),
                y=shown["return"].tolist(),
                mode="markers",
                marker={
                    "size": 4,
                    "opacity": 0.75,
                    "color": (100 * shown["progress"]).tolist(),
                    "colorscale": "Cividis",
                    "cmin": 0,
                    "cmax": 100,
                    "colorbar": {"title": {"text": "training, %", "side": "right"}, "thickness": 10},
                },
                customdata=shown["update"].tolist() if "update" in shown else None,
                hovertemplate="%{x:.3g} returned %{y:.1f}, update %{customdata}<extra></extra>",
                showlegend=False,
            ),
            go.Scatter(
                x=low,
                y=middle,
                mode="lines+markers",
                line={"color": series(1)[0], "width": 3},
                hovertemplate="near %{x:.3g}: median %{y:.1f}<extra></extra>",
                showlegend=False,
            ),
        ]
    figure = new_figure(traces, x=title, y="Episode return", showlegend=False, margin_t=36, **layout)
    return Panel(title=name, figure=figure, description=f"Episode return against sampled {name}.")


def _medians(late: pd.DataFrame, name: str) -> tuple[list[float], list[float]]:
    """Median value and median return of equally large groups of episodes, ordered by the value."""
    ordered = late.sort_values(name)
    parts = [part for part in np.array_split(np.arange(len(ordered)), BINS) if len(part)]
    rows = [ordered.iloc[part] for part in parts]
    return [float(r[name].median()) for r in rows], [float(r["return"].median()) for r in rows]


def _mean_of_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Row by row, of the updates that all seeds have made."""
    import pandas as pd

    updates = min(len(table) for table in tables)
    columns = ("steps", "return_mean")
    return pd.DataFrame({c: np.mean([table[c].to_numpy()[:updates] for table in tables], axis=0) for c in columns})


def _thinned(table: pd.DataFrame, rows: int) -> pd.DataFrame:
    """At most so many rows, evenly spread, the first and the last among them."""
    kept = np.unique(np.linspace(0, len(table) - 1, min(rows, len(table))).round().astype(int))
    return table.iloc[kept]


def _progress(rows: int) -> np.ndarray[Any, Any]:
    """How far training was at each episode, 0 to 1."""
    return (np.arange(rows) + 0.5) / max(rows, 1)
