"""Plots of a fit's residuals: if the model is right, they are noise without a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.evaluation.report.binning import evenly_spaced
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import line, new_figure, series, translucent

if TYPE_CHECKING:
    import pandas as pd

BAND = 2.0  # standard deviations
MAX_POINTS = 1000  # of a coordinate
MAX_STEP_BINS, MAX_LAG = 25, 10
FEWEST = 10  # residuals behind a mean or a correlation
LARGEST_MEAN = 5.0  # of the color scale, standard errors
TITLES = ("Residuals by step", "Correlation of residuals")


def residual_section(residuals: pd.DataFrame) -> Section:
    """Plots residuals over steps, and their correlation between steps: first of all coordinates, then of each.

    Args:
        residuals: See ``Fit.residuals``.
    """
    known = residuals[np.isfinite(residuals["residual"])].sort_values(["episode", "step"], kind="stable")
    edges = _step_edges(known["step"].to_numpy())
    tables = {str(name): table for name, table in known.groupby("coordinate", sort=False)}
    views = [View(name=name, panels=[_scatter(table, edges), _correlogram(table)]) for name, table in tables.items()]
    if len(tables) > 1:
        views.insert(0, View(name="all", panels=[_map_of_means(tables, edges), _map_of_correlations(tables)]))
    return Section(
        key="residuals",
        title="Residuals",
        lead="What the fitted model leaves unexplained in each step, in units of its own standard deviation. If the "
        "model is right, this is noise.",
        how_to_read="Residuals by step: noise stays around 0, about 95% of it within the gray band of two standard "
        "deviations; the line is the mean of neighboring steps. Correlation of residuals: how much a residual tells of "
        "one some steps later; noise stays within the gray band of two standard errors. A mean away from 0, or a "
        "correlation outside the band, shows that the model lacks something, such as friction or a delay. About one "
        "mean or correlation in twenty is two standard errors away from 0 by chance."
        + (" In the maps of all coordinates, a pale row is noise." if len(tables) > 1 else ""),
        views=views,
        choice="Coordinate",
    )


def _step_edges(steps: Array) -> Array:
    """Edges of bins of steps, with whole steps in each."""
    if not len(steps):
        return np.array([0.0, 1.0])
    first, end = int(steps.min()), int(steps.max()) + 1
    return np.unique(np.linspace(first, end, min(MAX_STEP_BINS, end - first) + 1).round())


def _means(table: pd.DataFrame, edges: Array) -> tuple[Array, Array]:
    """Mean residual of each bin of steps, nan for almost empty ones, and how many residuals it has."""
    place = np.searchsorted(edges, table["step"].to_numpy(), side="right") - 1
    count = np.bincount(place, minlength=len(edges) - 1).astype(np.float64)
    total = np.bincount(place, table["residual"].to_numpy(), minlength=len(edges) - 1)
    return np.where(count >= FEWEST, total / np.maximum(count, 1), np.nan), count


def _correlations(table: pd.DataFrame) -> tuple[Array, Array]:
    """Correlation between residuals of an episode some steps apart, and how many pairs there are; nan for few."""
    step, values = table["step"].to_numpy(), table["residual"].to_numpy()
    values = values - values.mean()
    # numbers of steps over all episodes, ascending as the rows are, with room between episodes
    place = np.unique(table["episode"].to_numpy(), return_inverse=True)[1] * (np.ptp(step) + MAX_LAG + 1) + step
    found, counts = np.full(MAX_LAG, np.nan), np.zeros(MAX_LAG)
    for k in range(MAX_LAG):
        after = np.minimum(np.searchsorted(place, place + k + 1), len(place) - 1)
        pair = place[after] == place + k + 1  # the log has this step
        a, b = values[pair], values[after[pair]]
        scale = float(np.sqrt((a @ a) * (b @ b)))
        counts[k] = len(a)
        if len(a) >= FEWEST and scale > 0:
            found[k] = float(a @ b) / scale
    return found, counts


# ---- one coordinate --------------------------------------------------------------------------------------------------


def _scatter(table: pd.DataFrame, edges: Array) -> Panel:
    import plotly.graph_objects as go  # heavy

    ordered = table.sort_values("step", kind="stable")
    shown = ordered.iloc[evenly_spaced(len(ordered), MAX_POINTS)]
    outside = float((table["residual"].abs() > BAND).mean())
    means, _ = _means(table, edges)
    kept = np.isfinite(means)
    middle = 0.5 * (edges[:-1] + edges[1:] - 1)
    points = go.Scatter(
        x=shown["step"].tolist(),
        y=shown["residual"].tolist(),
        mode="markers",
        marker={"size": 4, "color": series(0)[0], "opacity": 0.55},
        customdata=shown["episode"].tolist(),
        hovertemplate="step %{x} of episode %{customdata}: %{y:.2f} standard deviations<extra></extra>",
    )
    hover = "mean near step %{x:.0f}: %{y:.2f} standard deviations<extra></extra>"
    mean = line(1, middle[kept], means[kept], hovertemplate=hover)
    figure = new_figure([points, mean], **_axes("Step of the episode", "Residual, standard deviations"))
    _band(figure, BAND)
    title = f"{TITLES[0]}: {outside:.1%} outside the band"
    return Panel(title=title, figure=figure, description=f"{title}, {_name(table)}.")


def _correlogram(table: pd.DataFrame) -> Panel:
    import plotly.graph_objects as go  # heavy

    found, counts = _correlations(table)
    kept = np.isfinite(found)
    bars = go.Bar(
        x=(np.flatnonzero(kept) + 1).tolist(),
        y=found[kept].tolist(),
        width=0.6,
        marker={"color": series(0)[0]},
        hovertemplate="%{y:.3f} after %{x} steps<extra></extra>",
    )
    figure = new_figure([bars], **_axes("Steps between two residuals", "Correlation"))
    if kept.any():
        _band(figure, BAND / float(np.sqrt(counts[kept].mean())))
        reach = max(0.2, 1.1 * float(np.abs(found[kept]).max()))
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


# ---- all coordinates -------------------------------------------------------------------------------------------------


def _map_of_means(tables: dict[str, pd.DataFrame], edges: Array) -> Panel:
    found = [_means(table, edges) for table in tables.values()]
    z = np.array([mean * np.sqrt(count) for mean, count in found])
    hover = "near step %{x:.0f}: mean residual %{z:.1f} standard errors from 0"
    figure = _map(list(tables), edges, z, LARGEST_MEAN, "standard errors", hover, "Step of the episode")
    description = f"{TITLES[0]} and coordinate: heat map of their mean, in standard errors."
    return Panel(title=f"{TITLES[0]}, mean", figure=figure, description=description)


def _map_of_correlations(tables: dict[str, pd.DataFrame]) -> Panel:
    z = np.array([_correlations(table)[0] for table in tables.values()])
    largest = max(0.2, float(np.nanmax(np.abs(z), initial=0.0)))
    edges: Array = np.arange(0.5, MAX_LAG + 1)
    hover = "correlation %{z:.3f} after %{x:.0f} steps"
    figure = _map(list(tables), edges, z, largest, "correlation", hover, "Steps between two residuals")
    figure.update_xaxes(dtick=1)
    description = f"{TITLES[1]} by coordinate and steps between them: heat map."
    return Panel(title=TITLES[1], figure=figure, description=description)


def _map(names: list[str], x: Array, z: Array, largest: float, scale: str, hover: str, title: str) -> Any:
    """A heat map with a row for each coordinate, the first at the top, from ``-largest`` to ``largest``."""
    import plotly.graph_objects as go  # heavy

    labels = [plain(name) for name in names]
    heat = go.Heatmap(
        x=x.tolist(),
        y=np.arange(len(names) + 1).tolist(),  # edges, as the page's script expects
        z=[[None if np.isnan(value) else value for value in row] for row in z.tolist()],
        text=[[label] * z.shape[1] for label in labels],
        colorscale="RdBu",
        zmin=-largest,
        zmax=largest,
        hoverongaps=False,
        colorbar={"title": {"text": scale, "side": "right"}, "thickness": 12},
        hovertemplate=f"%{{text}}<br>{hover}<extra></extra>",
    )
    height = max(260, 110 + 24 * len(names))
    figure = new_figure([heat], x=title, height=height, margin_t=36)
    ticks = {"tickvals": (np.arange(len(names)) + 0.5).tolist(), "ticktext": labels}
    figure.update_yaxes(**ticks, autorange="reversed", showgrid=False, zeroline=False)
    return figure.update_xaxes(showgrid=False, zeroline=False)
