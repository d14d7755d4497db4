"""Plots of a fit's residuals: if the model is right, they are noise without a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.reports.binning import evenly_spaced
from gym_dr.reports.page import Panel, Section, View
from gym_dr.reports.style import line, new_figure, series, translucent

if TYPE_CHECKING:
    import pandas as pd

BAND = 2.0  # standard deviations
MAX_POINTS = 1000  # of a coordinate
MAX_STEP_BINS, MAX_LAG = 25, 10
FEWEST = 10  # residuals behind a mean or a correlation
TITLES = ("Residuals by step", "Correlation of residuals")


def residual_section(residuals: pd.DataFrame) -> Section:
    """Plots residuals over steps, and their correlation between steps, of each coordinate.

    Args:
        residuals: See ``Fit.residuals``.
    """
    known = residuals[np.isfinite(residuals["residual"])].sort_values(["episode", "step"], kind="stable")
    views = [
        View(name=str(name), panels=[_scatter(table), _correlogram(table)])
        for name, table in known.groupby("coordinate", sort=False)
    ]
    return Section(
        key="residuals",
        title="Residuals",
        lead="What the fitted model leaves unexplained in each step, in units of its own standard deviation. If the "
        "model is right, this is noise.",
        how_to_read="Residuals by step: noise stays around 0, about 95% of it within the gray band of two standard "
        "deviations; the line is the mean of neighboring steps. Correlation of residuals: how much a residual tells of "
        "one some steps later; noise stays within the gray band of two standard errors. A mean away from 0, or a "
        "correlation outside the band, shows that the model lacks something, such as friction or a delay. About one "
        "mean or correlation in twenty is two standard errors away from 0 by chance.",
        views=views,
        choice="Coordinate",
    )


def _correlations(table: pd.DataFrame) -> pd.DataFrame:
    """The correlation between residuals of an episode some steps apart; only those of enough pairs.

    Returns:
        A row for each number of steps: ``correlation`` and ``pairs``.
    """
    import pandas as pd  # heavy

    # numbers of steps over all episodes, with room between them
    place = table["episode"] * (table["step"].max() + MAX_LAG + 1) + table["step"]
    values = pd.Series((table["residual"] - table["residual"].mean()).to_numpy(), index=place.to_numpy())
    found = {}
    for lag in range(1, MAX_LAG + 1):
        later = values.reindex(values.index + lag).to_numpy()  # nan where the log lacks this step
        a, b = values.to_numpy()[np.isfinite(later)], later[np.isfinite(later)]
        if len(a) >= FEWEST and a.any() and b.any():
            found[lag] = {"correlation": float(a @ b / np.sqrt((a @ a) * (b @ b))), "pairs": len(a)}
    return pd.DataFrame.from_dict(found, orient="index", columns=["correlation", "pairs"])


def _scatter(table: pd.DataFrame) -> Panel:
    import plotly.graph_objects as go  # heavy

    ordered = table.sort_values("step", kind="stable")
    shown = ordered.iloc[evenly_spaced(len(ordered), MAX_POINTS)]
    outside = float((table["residual"].abs() > BAND).mean())
    width = int(table["step"].max()) // MAX_STEP_BINS + 1
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
    figure = new_figure([points, mean], **_axes("Step of the episode", "Residual, standard deviations"))
    _band(figure, BAND)
    title = f"{TITLES[0]}: {outside:.1%} outside the band"
    return Panel(title=title, figure=figure, description=f"{title}, {_name(table)}.")


def _correlogram(table: pd.DataFrame) -> Panel:
    import plotly.graph_objects as go  # heavy

    found = _correlations(table)
    bars = go.Bar(
        x=found.index.tolist(),
        y=found["correlation"].tolist(),
        width=0.6,
        marker={"color": series(0)[0]},
        hovertemplate="%{y:.3f} after %{x} steps<extra></extra>",
    )
    figure = new_figure([bars], **_axes("Steps between two residuals", "Correlation"))
    if len(found):
        _band(figure, BAND / float(np.sqrt(found["pairs"].mean())))
        reach = max(0.2, 1.1 * float(found["correlation"].abs().max()))
        figure.update_yaxes(range=[-reach, reach])
    figure.update_xaxes(dtick=1)
    return Panel(title=TITLES[1], figure=figure, description=f"{TITLES[1]} between steps, {_name(table)}.")


def _name(table: pd.DataFrame) -> str:
    return str(table["coordinate"].iloc[0])


def _axes(x: str, y: str) -> dict[str, Any]:
    return {"x": x, "y": y, "height": 340, "showlegend": False, "margin_t": 36}


def _band(figure: Any, reach: float) -> None:
    """Marks what noise does in most cases."""
    color = translucent(series(5)[0], 0.18)
    figure.add_hrect(y0=-reach, y1=reach, fillcolor=color, line_width=0, layer="below")
