"""Plots of training: learning curves, returns against draws, and how adaptive samplers changed the draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.growth import DID, MIDDLE, SHARES, WINDOWS, Growth, read_growth, read_updates
from gym_dr.evaluation.plots import read_log, read_metrics
from gym_dr.evaluation.report.binning import evenly_spaced
from gym_dr.evaluation.report.comparison import Group, without_runs
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import line, new_figure, series, translucent, with_unit
from gym_dr.runs.folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MAX_CURVE_POINTS = 250  # of a learning curve
MAX_DRAWS = 1200  # episodes in a plot of draws
MEDIANS = 10  # points of the line through them
FINAL_SHARE = 0.25  # share of training that the line covers


def learning_curves(groups: Sequence[Group]) -> Section:
    """Plots mean training return against steps: thin lines for seeds, a bold one for their mean.

    Raises:
        RunFolderError: A run has no metrics, or they are damaged.
    """
    traces: list[Any] = []
    for index, group in enumerate(groups):
        if not group.runs:
            continue
        name = plain(group.name)
        alone = len(group.runs) == 1
        tables = [read_metrics(run.folder) for run in group.runs]
        for seed, table in zip(group.seeds, tables, strict=True):
            label = name if alone else f"{name}, seed {seed}"
            width, alpha = (2.2, 1.0) if alone else (1.2, 0.45)
            traces.append(_learning_curve(index, table, label, width=width, alpha=alpha, showlegend=alone))
        if not alone:
            label = f"{name} ({len(tables)} seeds)"
            traces.append(_learning_curve(index, _mean_of_seeds(tables), label, width=3, suffix=", mean"))
    figure = new_figure(traces, x="Environment steps", y="Return, mean of 100 episodes")
    several = any(len(group.runs) > 1 for group in groups)
    seeds = "Thin lines are single seeds, bold lines their mean. " if several else ""
    return Section(
        key="training",
        title="Learning curves",
        lead="Return over the course of training.",
        how_to_read=f"{seeds}Each policy trains on its own draws, so a lower curve may only mean harder episodes: "
        f"compare policies by the evaluation above.{without_runs(groups, 'curves')}",
        views=[View(panels=[Panel(title="", figure=figure, description="Return against environment steps.")])]
        if traces
        else [],
    )


def _learning_curve(index: int, table: pd.DataFrame, name: str, *, suffix: str = "", **options: Any) -> go.Scatter:
    rows = table.iloc[evenly_spaced(len(table), MAX_CURVE_POINTS)]
    hover = f"%{{y:.1f}} after %{{x:,}} steps<extra>%{{fullData.name}}{suffix}</extra>"
    x, y = rows["steps"].to_numpy(), rows["return_mean"].to_numpy()
    return line(index, x, y, name=name, legendgroup=str(index), hovertemplate=hover, **options)


def draw_history(groups: Sequence[Group]) -> Section:
    """Plots, for each policy and each parameter that varied, returns against draws.

    Raises:
        RunFolderError: A file of draws is damaged.
    """
    import pandas as pd

    views = []
    for group in groups:
        tables = [read_draws(run.folder) for run in group.runs if run.folder.draws.exists()]
        space = group.policies[0].space
        if space is None or not tables:  # no parameters, or no finished episode
            continue
        # progress of training at each episode, 0 to 1
        tables = [table.assign(progress=(np.arange(len(table)) + 0.5) / len(table)) for table in tables]
        table = pd.concat(tables, ignore_index=True)
        varying = [name for name in space.in_order(table.columns) if table[name].nunique() > 1]
        if varying:
            views.append(View(name=group.name, panels=[_draws_of(table, name, space[name].unit) for name in varying]))
    return Section(
        key="draws",
        title="Training draws",
        lead="Episode return against the parameter values drawn in training.",
        how_to_read=f"Each dot is an episode (at most {MAX_DRAWS:,} are shown); lighter dots are later in training. "
        f"The line is the median return in the last {FINAL_SHARE:.0%} of training: where it falls, draws are still "
        "hard for the policy." + without_runs(groups, "recorded draws"),
        views=views,
        choice="Policy",
    )


def draw_growth(groups: Sequence[Group]) -> Section:
    """Plots how the draws of each parameter changed, and the sampler's statistics, for policies with adaptive samplers.

    Raises:
        RunFolderError: A file of a run is damaged.
    """
    views = []
    for group in groups:
        panels: list[Panel] = []
        for run, seed in zip(group.runs, group.seeds, strict=True):
            suffix = "" if len(group.runs) == 1 else f", seed {seed}"
            panels += [_growth_of(one, suffix) for one in read_growth(run.folder, run.config)]
            rows = read_updates(run.folder) if panels else None
            if rows is not None:
                panels += [_did(rows, key, f"{title}{suffix}") for key, title in DID.items() if key in rows]
        if panels:
            views.append(View(name=f"{group.name} ({group.runs[0].config.settings.sampler})", panels=panels))
    return Section(
        key="growth",
        title="How the sampler adapted the draws",
        lead="Draws over the course of training.",
        how_to_read=f"The line is the median draw (for switches the mean) in up to {WINDOWS} equal parts of the "
        "training's episodes; the bands contain 50% and 90% of the draws. Dashed lines are the ends of the "
        "randomization, which draws never exceed.",
        views=views,
        choice="Policy",
    )


def _growth_of(one: Growth, suffix: str) -> Panel:
    import plotly.graph_objects as go

    color, x = series(0)[0], one.updates.tolist()
    shared: dict[str, Any] = {"x": x, "mode": "lines", "showlegend": False, "hoverinfo": "skip"}
    traces: list[Any] = []
    for inner, alpha in ((0, 0.18), (1, 0.35)):
        for place, fill in ((inner, None), (len(SHARES) - 1 - inner, "tonexty")):
            y = one.quantiles[place].tolist()
            style: dict[str, Any] = {"fill": fill, "fillcolor": translucent(color, alpha)} if fill else {}
            traces.append(go.Scatter(y=y, line={"width": 0, "color": color}, **shared, **style))
    hover = "median %{y:.4g} near update %{x:.0f}<extra></extra>"
    median = {**shared, "hoverinfo": None, "hovertemplate": hover}
    traces.append(go.Scatter(y=one.quantiles[MIDDLE].tolist(), line={"width": 2.5, "color": color}, **median))
    for end in one.ends:
        dashed = {"width": 1.2, "dash": "dash", "color": series(5)[0]}
        traces.append(go.Scatter(y=[end] * len(x), line=dashed, **shared))
    figure = new_figure(traces, x="Update", y=with_unit(one.name, one.unit), showlegend=False, margin_t=36)
    return Panel(title=f"{one.name}{suffix}", figure=figure, description=f"Draws of {one.name} over training.")


def _did(rows: pd.DataFrame, key: str, title: str) -> Panel:
    kept = rows.iloc[evenly_spaced(len(rows), MAX_CURVE_POINTS)]
    hover = "%{y:.4g} after update %{x:,}<extra></extra>"
    trace = line(1, kept["update"].to_numpy(), kept[key].to_numpy(), showlegend=False, hovertemplate=hover)
    figure = new_figure([trace], x="Update", y=title, showlegend=False, margin_t=36)
    return Panel(title=title, figure=figure, description=f"{title} against updates.")


def read_draws(folder: RunFolder) -> pd.DataFrame:
    """Reads a run's episodes with their draws, one row each.

    Raises:
        RunFolderError: The file is missing or damaged.
    """
    return read_log(folder.draws, ("return",))


def _draws_of(table: pd.DataFrame, name: str, unit: str) -> Panel:
    import plotly.graph_objects as go

    late = table[table["progress"] >= 1 - FINAL_SHARE]
    episodes = table.iloc[evenly_spaced(len(table), MAX_DRAWS)]
    # medians of equally large groups of episodes, ordered by the value
    parts = np.array_split(late.sort_values(name)[[name, "return"]].to_numpy(np.float64), MEDIANS)
    x, y = np.transpose([np.median(part, axis=0) for part in parts if len(part)]).tolist()
    traces = [
        go.Scatter(
            x=episodes[name].tolist(),
            y=episodes["return"].tolist(),
            mode="markers",
            marker={
                "size": 4,
                "opacity": 0.75,
                "color": (100 * episodes["progress"]).tolist(),
                "colorscale": "Cividis",
                "cmin": 0,
                "cmax": 100,
                "colorbar": {"title": {"text": "training, %", "side": "right"}, "thickness": 10},
            },
            customdata=episodes["update"].tolist() if "update" in episodes else None,
            hovertemplate="%{x:.3g} returned %{y:.1f}, update %{customdata}<extra></extra>",
            showlegend=False,
        ),
        go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            line={"color": series(1)[0], "width": 3},
            hovertemplate="near %{x:.3g}: median %{y:.1f}<extra></extra>",
            showlegend=False,
        ),
    ]
    figure = new_figure(traces, x=with_unit(name, unit), y="Episode return", showlegend=False, margin_t=36)
    return Panel(title=name, figure=figure, description=f"Episode return against sampled {name}.")


def _mean_of_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Averages metrics over seeds, row by row, for the updates that all seeds have made."""
    import pandas as pd

    updates, columns = min(map(len, tables)), ["steps", "return_mean"]
    return pd.DataFrame(np.mean([table[columns].to_numpy()[:updates] for table in tables], axis=0), columns=columns)
