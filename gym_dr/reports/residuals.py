"""Plots of a fit's residuals: if the model is right, they are noise without a pattern."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from gym_dr.reports.binning import evenly_spaced
from gym_dr.reports.page import Panel, Section, View
from gym_dr.reports.style import line, new_figure, series, translucent

BAND = 2.0  # standard deviations
MAX_POINTS = 1000  # of a coordinate
MAX_BINS = 25  # of steps
FEWEST = 10  # residuals behind a mean


def residual_section(residuals: pd.DataFrame) -> Section:
    """Plots the residuals of each coordinate over steps.

    Args:
        residuals: See ``Fit.residuals``.
    """
    known = residuals[np.isfinite(residuals["residual"])].sort_values(["episode", "step"], kind="stable")
    views = [
        View(name=str(name), panels=[_scatter(str(name), table)])
        for name, table in known.groupby("coordinate", sort=False)
    ]
    return Section(
        key="residuals",
        title="Residuals",
        lead="What the fitted model leaves unexplained in each step, in units of its own standard deviation. If the "
        "model is right, this is noise.",
        how_to_read="Noise stays around 0, about 95% of it within the gray band of two standard deviations; the line "
        "is the mean of neighboring steps. A mean away from 0 shows that the model lacks something, such as friction "
        "or a delay. About one mean in twenty is two standard errors away from 0 by chance.",
        views=views,
        choice="Coordinate",
    )


def _scatter(coordinate: str, table: pd.DataFrame) -> Panel:
    ordered = table.sort_values("step", kind="stable")
    shown = ordered.iloc[evenly_spaced(len(ordered), MAX_POINTS)]
    outside = float((table["residual"].abs() > BAND).mean())
    width = int(table["step"].max()) // MAX_BINS + 1
    bins = table.groupby(table["step"] // width)["residual"].agg(["mean", "count"])
    bins = bins[bins["count"] >= FEWEST]
    points = go.Scatter(
        x=shown["step"].tolist(),
        y=shown["residual"].tolist(),
        mode="markers",
        marker={"size": 4, "color": series(0)[0], "opacity": 0.55},
        customdata=shown["episode"].tolist(),
        hovertemplate="step %{x} of episode %{customdata}: %{y:.2f} standard deviations<extra></extra>",
    )
    hover = "mean near step %{x:.0f}: %{y:.2f} standard deviations<extra></extra>"
    middle = bins.index.to_numpy(np.float64) * width + (width - 1) / 2
    mean = line(1, middle, bins["mean"].to_numpy(), hovertemplate=hover)
    x, y = "Step of the episode", "Residual, standard deviations"
    figure = new_figure([points, mean], x=x, y=y, showlegend=False, margin_t=36)
    gray = translucent(series(5)[0], 0.18)
    figure.add_hrect(y0=-BAND, y1=BAND, fillcolor=gray, line_width=0, layer="below")
    title = f"{outside:.1%} outside the band"
    return Panel(title=title, figure=figure, description=f"Residuals of {coordinate} by step, {title}.")
