"""Heat maps over pairs of parameters: what each policy returns there, and how two policies differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.report.compared import Compared
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import new_figure, parameter_title
from gym_dr.evaluation.report.tables import where
from gym_dr.evaluation.report.tiles import Array, Ticks, Tiles, ticks, tiles

if TYPE_CHECKING:
    import plotly.graph_objects as go

STATISTICS = (("mean", "mean return"), ("worst", "worst episode"))


def heat_maps(compared: Compared) -> Section | None:
    """Mean and worst return of each policy over each pair of parameters, with the training range drawn on them.

    Returns:
        None where no set varies two parameters.
    """
    views = [_view(compared, set_name, x, y) for set_name, x, y in _places(compared)]
    if not views:
        return None
    return Section(
        key="maps",
        title="Where it works",
        lead=f"Mean return and worst single episode, over each pair of parameters.{_left_out(compared)}",
        how_to_read="Each tile holds all episodes with about those two values, whatever the other parameters were; "
        "plots of the same kind share one colour scale, so that policies can be compared. The white frame is the range "
        "that the policy was trained on, a white cross its only value. Tiles without an episode are left out.",
        views=views,
        choice="Parameters",
    )


def difference_maps(compared: Compared) -> Section | None:
    """The paired difference of every two policies over each pair of parameters.

    Returns:
        None for a single policy, or where no set varies two parameters.
    """
    views = []
    for groups in compared.comparisons:
        a, b = (compared.groups[g].name for g in groups)
        for set_name, x, y in _places(compared):
            name = f"{a} minus {b}: {_pair_name(compared, set_name, x, y)}"
            views.append(View(name=name, panels=[_difference(compared, groups, set_name, x, y)]))
    if not views:
        return None
    return Section(
        key="differences",
        title="Which policy is better where",
        lead="The mean return of one policy minus that of another, on the same draws and episode seeds."
        + _left_out(compared),
        how_to_read="Blue tiles: the policy that is named first returns more. Red tiles: the other one does. Point at "
        "a tile for its standard error; a difference below two of them may be chance.",
        views=views,
        choice="Policies and parameters",
    )


def _places(compared: Compared) -> list[tuple[str, str, str]]:
    """(set, x, y) of all maps: of a chosen grid first, then of what fills the box; of draws where there is neither."""
    kinds = {entry["name"]: entry["kind"] for entry in compared.document["sets"]}
    for wanted in (("grid", "sobol"), ("distribution",), ("corners",)):
        chosen = sorted((name for name in kinds if kinds[name] in wanted), key=lambda name: wanted.index(kinds[name]))
        places = [(name, x, y) for name in chosen for x, y in compared.pairs(name)]
        if places:
            return places
    return []


def _left_out(compared: Compared) -> str:
    """Which parameters have no maps, since there would be too many, as sentences that follow others."""
    sets = dict.fromkeys(place[0] for place in _places(compared))
    sentences = {name: text for name in sets if (text := compared.left_out(name))}
    if len(sets) > 1:
        sentences = {name: f"{where(compared, name)}, {text[0].lower()}{text[1:]}" for name, text in sentences.items()}
    return "".join(f" {text}" for text in sentences.values())


def _pair_name(compared: Compared, set_name: str, x: str, y: str) -> str:
    several = len({place[0] for place in _places(compared)}) > 1
    return f"{x} and {y}" + (f" ({compared.label(set_name)})" if several else "")


def _view(compared: Compared, set_name: str, x: str, y: str) -> View:
    values = compared.values(set_name)
    across, up = ticks(values[x]), ticks(values[y])
    found = [tiles(across, up, compared.returns(g, set_name)) for g in range(len(compared.groups))]
    panels = []
    for index, group in enumerate(compared.groups):
        for key, words in STATISTICS:
            together = np.stack([getattr(t, key) for t in found])
            scale = {"colorscale": "Viridis", "zmin": float(np.nanmin(together)), "zmax": float(np.nanmax(together))}
            figure = _map(compared, (x, across), (y, up), getattr(found[index], key), found[index], words, scale)
            _draw_range(figure, compared, index, (x, across), (y, up))
            title = f"{group.name}: {words}"
            panels.append(Panel(title=title, figure=figure, description=f"Heat map, {title}, over {x} and {y}."))
    return View(name=_pair_name(compared, set_name, x, y), panels=panels)


def _difference(compared: Compared, groups: tuple[int, int], set_name: str, x: str, y: str) -> Panel:
    values = compared.values(set_name)
    across, up = ticks(values[x]), ticks(values[y])
    first, second = (compared.returns(g, set_name).mean(axis=0) for g in groups)  # over seeds
    found = tiles(across, up, (first - second)[None])
    largest = float(np.nanmax(np.abs(found.mean))) or 1.0
    scale = {"colorscale": "RdBu", "zmin": -largest, "zmax": largest}
    figure = _map(compared, (x, across), (y, up), found.mean, found, "difference", scale)
    a, b = (compared.groups[g].name for g in groups)
    title = f"{a} minus {b}: difference of mean returns"
    return Panel(title=title, figure=figure, description=f"Heat map, {title}, over {x} and {y}.")


def _map(
    compared: Compared,
    across: tuple[str, Ticks],
    up: tuple[str, Ticks],
    shown: Array,
    found: Tiles,
    words: str,
    scale: dict[str, Any],
) -> go.Figure:
    import plotly.graph_objects as go

    (x, x_ticks), (y, y_ticks) = across, up
    heat = go.Heatmap(
        x=x_ticks.edges.tolist(),
        y=y_ticks.edges.tolist(),
        z=shown.tolist(),
        customdata=np.stack([found.count, found.error], axis=-1).tolist(),
        hoverongaps=False,
        colorbar={"title": {"text": words, "side": "right"}, "thickness": 12},
        hovertemplate=f"{plain(x)} %{{x:.4g}}<br>{plain(y)} %{{y:.4g}}<br>{words} <b>%{{z:.1f}}</b>"
        "<br>standard error of the mean %{customdata[1]:.1f}<br>%{customdata[0]} episodes<extra></extra>",
        **scale,
    )
    figure = new_figure([heat], x=parameter_title(compared, x), y=parameter_title(compared, y), height=360, margin_t=36)
    for name, part, update in ((x, x_ticks, figure.update_xaxes), (y, y_ticks, figure.update_yaxes)):
        update(range=[float(part.edges[0]), float(part.edges[-1])], showgrid=False, zeroline=False)
        if compared.document["parameters"][name]["kind"] != "float" and len(part.centres) <= 2:
            update(tickvals=part.centres.tolist())  # a half has no meaning
    return figure


def _draw_range(
    figure: go.Figure, compared: Compared, group: int, across: tuple[str, Ticks], up: tuple[str, Ticks]
) -> None:
    """A frame around the values of training, a cross where there was only one; white on black shows on any colour."""
    (x0, x1), (y0, y1) = (_training_range(compared, group, name) for name, _ in (across, up))
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
    (left, right), (bottom, top) = (
        _inside(low, high, part, whole=compared.document["parameters"][name]["kind"] != "float")
        for (low, high), (name, part) in zip(((x0, x1), (y0, y1)), (across, up), strict=True)
    )
    for colour, width, dash in (("black", 5, "solid"), ("white", 2.5, "solid")):
        figure.add_shape(
            type="rect", x0=left, x1=right, y0=bottom, y1=top, line={"color": colour, "width": width, "dash": dash}
        )


def _training_range(compared: Compared, group: int, name: str) -> Sequence[float]:
    nominal = compared.document["parameters"][name]["nominal"]
    return compared.ranges(group).get(name, (nominal, nominal))


def _inside(low: float, high: float, part: Ticks, *, whole: bool) -> tuple[float, float]:
    """A range within a plot; one that covers all of it is drawn just inside, where its frame can be seen."""
    first, last = float(part.edges[0]), float(part.edges[-1])
    if whole:  # around the tiles of its numbers, not through their middle
        low, high = low - 0.5, high + 0.5
    margin = 0.01 * (last - first)
    return max(low, first + margin), min(high, last - margin)
