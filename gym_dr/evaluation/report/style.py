"""What all plots of a report share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gym_dr.evaluation.report.compared import Compared
from gym_dr.evaluation.report.page import plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's hues, which colour-blind readers tell apart, as light as both white and dark paper allow
SERIES = ("#1f83c4", "#d9601a", "#0f9d76", "#c4709e", "#b98a12", "#7a7f87")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # for those who tell no colours apart
HEIGHT = 400  # pixels


def series(index: int) -> tuple[str, str]:
    """Colour and dash of the n-th policy, in every plot the same."""
    return SERIES[index % len(SERIES)], DASHES[index % len(DASHES)]


def translucent(colour: str, alpha: float) -> str:
    """A colour of ``SERIES`` that lets others through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def with_unit(name: str, unit: str) -> str:
    """A parameter's name with its unit, as a plot's label; "x" is a factor's, which alone would read as a name."""
    if unit == "x":
        unit = "times nominal"
    return plain(f"{name} ({unit})" if unit else name)


def parameter_title(compared: Compared, name: str) -> str:
    """A parameter of an evaluation with its unit, as a plot's label."""
    return with_unit(name, compared.document["parameters"][name]["unit"])


def new_figure(traces: Sequence[Any], *, x: str, y: str, height: int = HEIGHT, **layout: Any) -> go.Figure:
    """A figure in no colours of its own: the page gives them.

    Args:
        traces: Plotly's.
        x: Title of the axis, as ``plain`` text.
        y: The other's.
        height: Pixels; the width is that of the page.
        layout: More of Plotly's.
    """
    import plotly.graph_objects as go  # heavy

    figure = go.Figure(data=list(traces), layout=go.Layout(template={}))
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 60, "b": 10},  # above: buttons, and below them the legend
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        xaxis={"title": {"text": x}},
        yaxis={"title": {"text": y}},
        hovermode="closest",
    )
    return figure.update_layout(**layout)
