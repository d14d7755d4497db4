"""Heat maps over pairs of parameters: returns of each policy, and differences between two policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from gym_dr.arrays import Array
from gym_dr.reports.binning import Bins, BinStatistics, bin_statistics, make_bins
from gym_dr.reports.comparison import MAX_PAIRED, MAX_PARAMETERS, Comparison
from gym_dr.reports.page import Panel, Section, View, plain
from gym_dr.reports.style import new_figure, parameter_axis

MAPPED = (("mean", "mean return"), ("worst", "worst episode"))


def heat_maps(comparison: Comparison) -> Section:
    """Plots mean and worst return of each policy over each pair of parameters, with the training range marked."""
    maps = _maps(comparison)
    return Section(
        key="maps",
        title="Where it works",
        lead="Mean return and worst single episode, over each pair of parameters; of many parameters only the "
        f"{MAX_PARAMETERS} that matter most are shown.",
        how_to_read="A tile pools all episodes with about these two values, whatever the other parameters were. "
        "Parameters with many values are divided into ranges with about the same number of episodes. Plots of the same "
        "kind share one color scale, so policies can be compared. The white frame is the policy's training range, if "
        "it is known; a white cross marks a single value. Tiles without episodes are blank.",
        views=[View(name=name, panels=_returns(comparison, *place)) for name, place in maps.items()],
        choice="Parameters",
    )


def difference_maps(comparison: Comparison) -> Section:
    """Plots the paired difference of every two policies over each pair of parameters, or of many from the first."""
    maps = _maps(comparison)
    views = []
    many = len(comparison.groups) > MAX_PAIRED
    for first, second in comparison.group_pairs:
        title = f"{comparison.groups[first].name} minus {comparison.groups[second].name}"
        for name, place in maps.items():
            panel = _difference(comparison, title, first, second, *place)
            views.append(View(name=f"{title}: {name}", panels=[panel]))
    return Section(
        key="differences",
        title="Which policy is better where",
        lead="The mean return of one policy minus that of another, on the same draws and episode seeds."
        + (f" With so many policies, each is compared with {comparison.groups[0].name} only." if many else ""),
        how_to_read="Blue: the policy named first has the higher return. Red: the other one has. Hover over a tile for "
        "its 95 % interval, over seeds if there are several; a difference whose interval includes 0 may be chance.",
        views=views,
        choice="Policies and parameters",
    )


def _sets(comparison: Comparison) -> list[str]:
    """The sets to map: grids and Sobol sequences, else draws."""
    for choice in (("grid", "sobol"), ("distribution",)):
        sets = [cells.name for kind in choice for cells in comparison.evaluation.sets if cells.kind == kind]
        if sets := [name for name in sets if comparison.pairs(name)]:
            return sets
    return []


def _maps(comparison: Comparison) -> dict[str, tuple[str, str, str]]:
    """Name of each map -> (set, x, y)."""
    sets = _sets(comparison)
    return {
        f"{x} and {y}" + (f" ({comparison.label(name)})" if len(sets) > 1 else ""): (name, x, y)
        for name in sets
        for x, y in comparison.pairs(name)
    }


def _returns(comparison: Comparison, set_name: str, x: str, y: str) -> list[Panel]:
    """Mean and worst return of each policy."""
    axes = _axes(comparison, set_name, x, y)
    everyone = range(len(comparison.groups))
    found = [
        bin_statistics(comparison.returns(group, set_name), comparison.cells(set_name), *axes.values())
        for group in everyone
    ]
    panels = []
    for index, group in enumerate(comparison.groups):
        for key, words in MAPPED:
            together = np.stack([getattr(table, key) for table in found])
            scale = {"colorscale": "Viridis", "zmin": float(np.nanmin(together)), "zmax": float(np.nanmax(together))}
            values, title = getattr(found[index], key), f"{group.name}: {words}"
            panels.append(_map(comparison, axes, title, values, found[index], words, scale))
            _mark_range(panels[-1].figure, comparison, index, axes)
    return panels


def _difference(comparison: Comparison, names: str, first: int, second: int, set_name: str, x: str, y: str) -> Panel:
    axes = _axes(comparison, set_name, x, y)
    rows, over = comparison.differences(first, second, set_name)
    found = bin_statistics(rows, comparison.cells(set_name) if over else None, *axes.values())
    largest = float(np.nanmax(np.abs(found.mean))) or 1.0
    scale = {"colorscale": "RdBu", "zmin": -largest, "zmax": largest}
    return _map(comparison, axes, f"{names}: difference of mean returns", found.mean, found, "difference", scale)


def _axes(comparison: Comparison, set_name: str, x: str, y: str) -> dict[str, Bins]:
    """The parameters of a map, x before y, and their bins."""
    return {name: make_bins(comparison.values[set_name][name]) for name in (x, y)}


def _map(
    comparison: Comparison,
    axes: dict[str, Bins],
    title: str,
    values: Array,
    found: BinStatistics,
    words: str,
    scale: dict[str, Any],
) -> Panel:
    (x, x_bins), (y, y_bins) = axes.items()
    heat = go.Heatmap(
        x=x_bins.edges.tolist(),
        y=y_bins.edges.tolist(),
        z=values.tolist(),
        customdata=np.stack([found.count, found.low, found.high], axis=-1).tolist(),
        hoverongaps=False,
        colorbar={"title": {"text": words, "side": "right"}, "thickness": 12},
        hovertemplate=f"{plain(x)} %{{x:.4g}}<br>{plain(y)} %{{y:.4g}}<br>{words} <b>%{{z:.1f}}</b>"
        "<br>mean: 95 % interval %{customdata[1]:.1f} to %{customdata[2]:.1f}"
        "<br>%{customdata[0]} episodes<extra></extra>",
        **scale,
    )
    xaxis, yaxis = (parameter_axis(comparison, n, b, showgrid=False, zeroline=False) for n, b in axes.items())
    figure = new_figure([heat], height=360, margin_t=36, xaxis=xaxis, yaxis=yaxis)
    return Panel(title=title, figure=figure, description=f"Heat map, {title}, over {x} and {y}.")


def _mark_range(figure: go.Figure, comparison: Comparison, group: int, axes: dict[str, Bins]) -> None:
    """Frames the training range, or marks a single value with a cross, white on black to be visible on any color."""
    ranges = {name: known for name in axes if (known := comparison.training_range(group, name)) is not None}
    if not ranges:
        return
    (x0, x1), (y0, y1) = ranges.values()
    if x0 == x1 and y0 == y1:
        figure.add_scatter(
            x=[x0],
            y=[y0],
            mode="markers",
            marker={"symbol": "x", "size": 12, "color": "white", "line": {"color": "black", "width": 1.5}},
            showlegend=False,
            hovertemplate="the only value in training<extra></extra>",
        )
        return
    (x0, x1), (y0, y1) = (
        _inside(*ranges[name], bins, whole=comparison.document["parameters"][name]["kind"] != "float")
        for name, bins in axes.items()
    )
    for color, width in (("black", 5), ("white", 2.5)):
        frame = {"color": color, "width": width, "dash": "solid"}
        figure.add_shape(type="rect", x0=x0, x1=x1, y0=y0, y1=y1, line=frame)


def _inside(low: float, high: float, bins: Bins, *, whole: bool) -> tuple[float, float]:
    """Clips a range to a plot, just inside its edges, so that the frame stays visible."""
    first, last = float(bins.edges[0]), float(bins.edges[-1])
    if whole:  # around the tiles, not through their middle
        low, high = low - 0.5, high + 0.5
    margin = 0.01 * (last - first)
    return max(low, first + margin), min(high, last - margin)
