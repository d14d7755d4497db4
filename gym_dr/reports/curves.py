"""Plots of returns: their distribution, along one parameter, and each parameter's sensitivity indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gym_dr.evaluation.statistics import mean_ends
from gym_dr.reports.binning import bin_statistics, evenly_spaced, make_bins
from gym_dr.reports.comparison import Comparison
from gym_dr.reports.page import Panel, Section, View, plain
from gym_dr.reports.style import line, new_figure, parameter_axis, series, translucent

MAX_POINTS = 200  # of a distribution curve


def distributions(comparison: Comparison) -> Section:
    """Plots, for each set, the share of episodes with at least a given return, a curve for each policy."""
    names = sorted(comparison.sets, key=lambda name: name not in comparison.main_sets)
    views = [View(name=comparison.label(name), panels=[distribution(comparison, name)]) for name in names]
    seeds = any(len(group.policies) > 1 for group in comparison.groups)
    return Section(
        key="distributions",
        title="Distribution of returns",
        lead="The share of episodes whose return is at least a given value.",
        how_to_read="Further to the right is better. A curve that drops early shows that the policy fails on some "
        "draws, which a mean would hide."
        + (" Curves pool the episodes of all seeds." if seeds else "")
        + ("" if comparison.document["success"] is None else " The dotted line is the return that counts as success."),
        views=views,
        choice="Evaluated on",
    )


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
        "bar at the bottom spans the training range of the policy in that color, if it is known; a diamond marks a "
        "single value.",
        views=[View(name=comparison.label(name), panels=found) for name, found in panels.items() if found],
        choice="Evaluated on",
    )


def sensitivity(comparison: Comparison) -> Section:
    """Plots first-order and total Sobol indices of each parameter, a bar for each policy."""
    shares = {name: comparison.results(0, name)[0]["sensitivity"] for name in comparison.sets}
    sets = [name for name, found in shares.items() if found and found["parameters"]]
    over = " or ".join(comparison.label(name) for name in sets)
    orders = {"first_order": "Alone (first order)", "total": "With interactions (total)"}
    return Section(
        key="sensitivity",
        title="Which parameters matter",
        lead=f"How much each parameter affects the return of each policy over {over}.",
        how_to_read="A bar is the share of the variance of a cell's mean return that the parameter explains: alone, "
        "and with its interactions. Whiskers are 95 % intervals, over seeds if a policy has several, "
        "else over points and their episodes; if they include 0, the effect may be chance. Estimates are "
        "not rounded up to 0: those of a parameter without effect are slightly negative half of the time. A parameter "
        "that needs a switch has the shares of the variance between points where it is on.",
        views=[
            View(name=comparison.label(name), panels=[_indices(comparison, name, *order) for order in orders.items()])
            for name in sets
        ],
        choice="Evaluated on",
    )


def distribution(comparison: Comparison, set_name: str) -> Panel:
    """Plots the share of episodes with at least a given return, a curve for each policy."""
    traces = []
    for index, group in enumerate(comparison.groups):
        returns = np.sort(comparison.returns(index, set_name).ravel())
        ranks = evenly_spaced(len(returns), MAX_POINTS)
        hover = "%{y:.0f}% of episodes return at least %{x:.1f}<extra>%{fullData.name}</extra>"
        shares = 100 * (1 - ranks / len(returns))
        traces.append(line(index, returns[ranks], shares, name=plain(group.name), showlegend=True, hovertemplate=hover))
    figure = new_figure(traces, x="Episode return", y="Episodes that return at least this, %")
    figure.update_yaxes(range=[0, 102])
    if comparison.document["success"] is not None:
        figure.add_vline(x=comparison.document["success"], line={"color": "#7a7f87", "width": 1.5, "dash": "dot"})
    return Panel(title="", figure=figure, description=f"Shares of episodes by return, on {comparison.label(set_name)}.")


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
                customdata=np.stack([found.low, found.high], axis=-1).tolist(),
                mode="lines+markers",
                name=plain(group.name),
                legendgroup=str(index),
                showlegend=True,
                hovertemplate=f"{plain(parameter)} %{{x:.4g}}<br>mean return <b>%{{y:.1f}}</b>, 95 % "
                "interval %{customdata[0]:.1f} to %{customdata[1]:.1f}<extra>%{fullData.name}</extra>",
            ),
        ]
    axis = parameter_axis(comparison, parameter, bins)
    figure = new_figure(traces, xaxis=axis, y="Mean return", height=340)
    _mark_ranges(figure, comparison, parameter, axis["range"])
    description = f"Mean return along {parameter}, on {comparison.label(set_name)}."
    return Panel(title=parameter, figure=figure, description=description)


def _mark_ranges(figure: go.Figure, comparison: Comparison, parameter: str, ends: Sequence[float]) -> None:
    """Marks each policy's training range with a line above the axis, within the ends of the axis."""
    for index in range(len(comparison.groups)):
        known = comparison.training_range(index, parameter)
        if known is None:
            continue
        low, high = known
        y, color = 0.015 + 0.03 * index, series(index)[0]
        if low == high:
            figure.add_annotation(x=low, y=y, yref="y domain", text="\u25c6", showarrow=False, font={"color": color})
        else:
            line = {"color": color, "width": 5}
            x0, x1 = max(low, ends[0]), min(high, ends[1])
            figure.add_shape(type="line", x0=x0, x1=x1, y0=y, y1=y, yref="y domain", line=line, opacity=0.8)


def _indices(comparison: Comparison, set_name: str, order: str, title: str) -> Panel:
    bars = []
    for index, group in enumerate(comparison.groups):
        found = [result["sensitivity"] for result in comparison.results(index, set_name)]
        parameters = found[0]["parameters"]
        values = np.array([[item["value"] for item in one[order]] for one in found], dtype=float)  # None becomes NaN
        middle, (low, high) = values.mean(axis=0), mean_ends(values.T[:, None]).clip(0.0, 1.0)
        if len(found) == 1:
            low, high = (np.array([item[end] for item in found[0][order]], dtype=float) for end in ("low", "high"))
        bars.append(
            go.Bar(
                y=[plain(name) for name in parameters],
                x=middle.tolist(),
                orientation="h",
                name=plain(group.name),
                showlegend=True,
                marker={"color": series(index)[0], "pattern": {"shape": ("", "/", ".", "x")[index % 4]}},
                error_x={
                    "array": np.maximum(high - middle, 0).tolist(),
                    "arrayminus": np.maximum(middle - low, 0).tolist(),
                    "thickness": 1.2,
                },
                customdata=np.stack([low, high], axis=-1).tolist(),
                hovertemplate="%{y}: <b>%{x:.0%}</b>, %{customdata[0]:.0%} to %{customdata[1]:.0%}"
                "<extra>%{fullData.name}</extra>",
            )
        )
    height = 120 + 22 * len(bars[0].y) * (len(bars) + 1)
    figure = new_figure(bars, x="Share of the variance", y="", height=height, barmode="group")
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(autorange="reversed")
    return Panel(title=title, figure=figure, description=f"Bars: {title}, for each parameter.")
