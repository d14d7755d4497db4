"""Colors, lines and axes that all plots of a report share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from gym_dr.arrays import Array
from gym_dr.reports.binning import Bins
from gym_dr.reports.comparison import Comparison
from gym_dr.reports.page import plain

# Okabe and Ito's hues, which color-blind readers can distinguish, legible on light and dark backgrounds
SERIES = ("#1f83c4", "#d9601a", "#0f9d76", "#c4709e", "#b98a12", "#7a7f87")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # distinguishable without colors
HEIGHT = 400  # pixels


def series(index: int) -> tuple[str, str]:
    """Color and dash of the n-th policy, the same in every plot; no pair repeats among the first 36."""
    rounds, place = divmod(index, len(SERIES))
    return SERIES[place], DASHES[(place + rounds) % len(DASHES)]


def translucent(color: str, alpha: float) -> str:
    """A color of ``SERIES`` with an opacity."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def line(index: int, x: Array, y: Array, **options: Any) -> go.Scatter:
    """A line in the color and dash of the n-th policy; ``options`` are Plotly's."""
    color, dash = series(index)
    style = {"color": color, "dash": dash, "width": 2.5}
    return go.Scatter(x=x.tolist(), y=y.tolist(), line=style, **{"mode": "lines", **options})


def with_unit(name: str, unit: str) -> str:
    """A parameter's name and unit as a plot's label; the unit "x" is that of factors."""
    text = "times nominal" if unit == "x" else unit
    return plain(f"{name} ({text})" if unit else name)


def parameter_axis(comparison: Comparison, name: str, bins: Bins, **options: Any) -> dict[str, Any]:
    """A Plotly axis for a parameter that spans its bins; ``options`` are Plotly's."""
    parameter = comparison.document["parameters"][name]
    axis = {"title": {"text": with_unit(name, parameter["unit"])}, "range": bins.edges[[0, -1]].tolist(), **options}
    if parameter["kind"] != "float" and len(bins.centers) <= 2:
        axis["tickvals"] = bins.centers.tolist()  # no ticks between whole values
    return axis


def new_figure(traces: Sequence[Any], *, x: str = "", y: str = "", height: int = HEIGHT, **layout: Any) -> go.Figure:
    """A figure without colors for text and axes, which the page's script sets.

    Args:
        traces: Plotly traces.
        x: Title of the x axis, as ``plain`` text, unless ``layout`` has one.
        y: Title of the y axis.
        height: Pixels; the width is that of the page.
        layout: Plotly layout options.
    """
    shared = {
        "template": {},
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 60, "b": 10},  # room for buttons and legend at the top
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {"title": {"text": x}},
        "yaxis": {"title": {"text": y}},
        "hovermode": "closest",
    }
    # merged before the figure is made, since a change of a figure takes as long as making it
    return go.Figure(data=list(traces), layout=go.Layout(shared).update(layout))
