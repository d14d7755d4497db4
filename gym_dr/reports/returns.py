"""Plots of returns: along one parameter, and over pairs of parameters, also of differences between two policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gym_dr.envs.family import difference_limits
from gym_dr.reports.binning import Bins, BinStatistics, bin_statistics, make_bins, tile_bins
from gym_dr.reports.comparison import MAX_PARAMETERS, Comparison
from gym_dr.reports.page import Panel, Section, View, plain
from gym_dr.reports.style import line, new_figure, parameter_axis, series, translucent


def heat_maps(comparison: Comparison) -> Section:
    """Plots mean returns of each policy and differences from the first over each pair of parameters."""
    sets = _sets(comparison)
    maps = {
        f"{x} and {y}" + (f" ({comparison.label(name)})" if len(sets) > 1 else ""): (name, x, y)
        for name in sets
        for x, y in comparison.pairs(name)
    }
    return Section(
        key="maps",
        title="Where it works",
        lead="Mean return of each policy, and how much more it achieves than the first, on the same draws and episode "
        f"seeds, over each pair of parameters; of many only the {MAX_PARAMETERS} that matter most are shown.",
        how_to_read="A tile pools all episodes with about these two values, whatever the other parameters were, but "
        "only those in which both parameters have an effect. Parameters with many values are divided into ranges with "
        "about the same number of episodes. Maps of returns share one color scale, so policies can be compared. "
        "Tiles without episodes are blank. In a map of differences, blue: the policy named first has the higher "
        "return. Hover over a tile for its 95 % interval, over seeds if there are several; a difference whose interval "
        "includes 0 may be chance.",
        views=[
            View(
                name=name,
                panels=[
                    *_returns(comparison, *place),
                    *(_difference(comparison, group, *place) for group in range(1, len(comparison.groups))),
                ],
            )
            for name, place in maps.items()
        ],
        choice="Parameters",
    )


def first_picture(comparison: Comparison, group: int) -> Panel | None:
    """A map over the two parameters that matter most, or a curve if only one is no switch; None without parameters.

    Args:
        comparison: The policies and their evaluation.
        group: The group to map; if it is not the first, the map is its difference from the first.
    """
    name = comparison.main_set(group)
    shown, pairs = comparison.important(name), comparison.pairs(name)
    if not pairs or any(comparison.is_switch(one) for one in pairs[0]):
        return along(comparison, name, shown[0]) if shown else None
    return _difference(comparison, group, name, *pairs[0]) if group else _returns(comparison, name, *pairs[0])[0]


def _sets(comparison: Comparison) -> list[str]:
    """The sets to map: grids and Sobol sequences, else draws."""
    for choice in (("grid", "sobol"), ("distribution",)):
        sets = [cells.name for kind in choice for cells in comparison.evaluation.sets if cells.kind == kind]
        if sets := [name for name in sets if comparison.pairs(name)]:
            return sets
    return []


def _returns(comparison: Comparison, set_name: str, x: str, y: str) -> list[Panel]:
    """Mean return of each policy."""
    axes = _axes(comparison, set_name, x, y)
    found = [
        bin_statistics(
            comparison.returns(group, set_name), comparison.cells(set_name), axes[x], axes[y], comparison.limits
        )
        for group in range(len(comparison.groups))
    ]
    means = np.stack([table.mean for table in found])
    scale = {"colorscale": "Viridis", "zmin": float(np.nanmin(means)), "zmax": float(np.nanmax(means))}
    return [
        _map(comparison, axes, f"Mean return of {group.quoted}", own, "mean return", scale)
        for group, own in zip(comparison.groups, found, strict=True)
    ]


def _difference(comparison: Comparison, group: int, set_name: str, x: str, y: str) -> Panel:
    """How much more a policy returns than the first one."""
    axes = _axes(comparison, set_name, x, y)
    rows, over = comparison.differences(group, 0, set_name)
    cells = comparison.cells(set_name) if over else None
    found = bin_statistics(rows, cells, axes[x], axes[y], difference_limits(comparison.document["env"]))
    largest = float(np.nanmax(np.abs(found.mean))) or 1.0
    return _map(
        comparison,
        axes,
        f"Mean return of {comparison.groups[group].quoted} minus {comparison.groups[0].quoted}",
        found,
        "difference",
        {"colorscale": "RdBu", "zmin": -largest, "zmax": largest},
    )


def _axes(comparison: Comparison, set_name: str, x: str, y: str) -> dict[str, Bins]:
    """The parameters of a map, x before y, and their bins."""
    values = comparison.values[set_name]
    return dict(zip((x, y), tile_bins(values[x], values[y]), strict=True))


def _map(
    comparison: Comparison,
    axes: dict[str, Bins],
    title: str,
    found: BinStatistics,
    words: str,
    scale: dict[str, Any],
) -> Panel:
    (x, x_bins), (y, y_bins) = axes.items()
    heat = go.Heatmap(
        x=x_bins.edges.tolist(),
        y=y_bins.edges.tolist(),
        z=found.mean.tolist(),
        customdata=np.stack([found.count.astype(object), found.intervals], axis=-1).tolist(),
        hoverongaps=False,
        colorbar={"title": {"text": words, "side": "right"}, "thickness": 12},
        hovertemplate=f"{plain(x)} %{{x:.4g}}<br>{plain(y)} %{{y:.4g}}<br>{words} <b>%{{z:.1f}}</b>"
        "<br>mean: %{customdata[1]}<br>%{customdata[0]} episodes<extra></extra>",
        **scale,
    )
    xaxis, yaxis = (parameter_axis(comparison, n, b, showgrid=False, zeroline=False) for n, b in axes.items())
    figure = new_figure([heat], height=360, margin_t=36, xaxis=xaxis, yaxis=yaxis)
    return Panel(title=title, figure=figure, description=f"Heat map, {title}, over {x} and {y}.")


# ---- along one parameter ---------------------------------------------------------------------------------------------


def along_parameters(comparison: Comparison) -> Section:
    """Plots the mean return along each single parameter, with the training range marked."""
    panels = {
        name: [along(comparison, name, parameter) for parameter in comparison.values[name]]
        for name in sorted(comparison.sets, key=comparison.rank)
    }
    return Section(
        key="along",
        title="One parameter at a time",
        lead="Mean return along each parameter, averaged over the others.",
        how_to_read="Bands are 95 % intervals of the mean, over seeds if a policy has several, else over episodes. A "
        "bar at the bottom spans the training range of the policy in that color, if it is known; a short one marks a "
        "single value.",
        views=[View(name=comparison.label(name), panels=found) for name, found in panels.items() if found],
        choice="Evaluated on",
    )


def along(comparison: Comparison, set_name: str, parameter: str) -> Panel:
    """Plots the mean return along one parameter, a curve for each policy."""
    bins = make_bins(comparison.values[set_name][parameter])
    traces: list[Any] = []
    for index, group in enumerate(comparison.groups):
        found = bin_statistics(
            comparison.returns(index, set_name), comparison.cells(set_name), bins, within=comparison.limits
        )
        low, high = (np.where(np.isnan(ends), found.mean, ends).tolist() for ends in (found.low, found.high))
        traces += [
            go.Scatter(
                x=[*bins.centers.tolist(), *bins.centers[::-1].tolist()],
                y=[*high, *low[::-1]],
                fill="toself",
                mode="lines",
                fillcolor=translucent(series(index)[0], 0.18),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=str(index),
            ),
            line(
                index,
                bins.centers,
                found.mean,
                customdata=found.intervals.tolist(),
                mode="lines+markers",
                name=plain(group.name),
                legendgroup=str(index),
                showlegend=True,
                hovertemplate=f"{plain(parameter)} %{{x:.4g}}<br>mean return <b>%{{y:.1f}}</b>, "
                "%{customdata}<extra>%{fullData.name}</extra>",
            ),
        ]
    axis = parameter_axis(comparison, parameter, bins)
    figure = new_figure(traces, xaxis=axis, y="Mean return", height=340)
    _mark_ranges(figure, comparison, parameter, axis["range"])
    return Panel(
        title=parameter,
        figure=figure,
        description=f"Mean return along {parameter}, on {comparison.label(set_name)}.",
    )


def _mark_ranges(figure: go.Figure, comparison: Comparison, parameter: str, ends: Sequence[float]) -> None:
    """Marks each policy's training range with a line above the axis, within the ends of the axis."""
    least = 0.004 * (ends[1] - ends[0])  # half of the length for a single value
    for index in range(len(comparison.groups)):
        if (known := comparison.training_range(index, parameter)) is not None:
            y, line = 0.015 + 0.03 * index, {"color": series(index)[0], "width": 5}
            x0, x1 = max(known[0] - least, ends[0]), min(known[1] + least, ends[1])
            figure.add_shape(type="line", x0=x0, x1=x1, y0=y, y1=y, yref="y domain", line=line, opacity=0.8)
