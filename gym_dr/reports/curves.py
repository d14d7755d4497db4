"""Plots of returns along one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gym_dr.reports.binning import bin_statistics, make_bins
from gym_dr.reports.comparison import Comparison
from gym_dr.reports.page import Panel, Section, View, plain
from gym_dr.reports.style import line, new_figure, parameter_axis, series, translucent


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
