"""Plots of training: learning curves, and how adaptive samplers changed the draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.reports.binning import evenly_spaced
from gym_dr.reports.comparison import Group, without_runs
from gym_dr.reports.growth import DID, MIDDLE, SHARES, WINDOWS, Growth, read_growth, read_updates
from gym_dr.reports.page import Panel, Section, View, plain
from gym_dr.reports.style import line, new_figure, series, translucent, with_unit
from gym_dr.runs.metrics import read_metrics

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MAX_CURVE_POINTS = 250  # of a learning curve


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


def _mean_of_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Averages metrics over seeds, row by row, for the updates that all seeds have made."""
    import pandas as pd

    updates, columns = min(map(len, tables)), ["steps", "return_mean"]
    return pd.DataFrame(np.mean([table[columns].to_numpy()[:updates] for table in tables], axis=0), columns=columns)
