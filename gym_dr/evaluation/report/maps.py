"""Heat maps over pairs of parameters: what each policy returns there, and how two policies differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.report.binning import Array, Bins, BinStatistics, bin_statistics, make_bins
from gym_dr.evaluation.report.comparison import Comparison
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import new_figure, parameter_title, show_bins
from gym_dr.evaluation.report.tables import describe_set

if TYPE_CHECKING:
    import plotly.graph_objects as go

STATISTICS = (("mean", "mean return"), ("worst", "worst episode"))


def heat_maps(comparison: Comparison) -> Section | None:
    """Mean and worst return of each policy over each pair of parameters, with the training range drawn on them.

    Returns:
        None where no set varies two parameters.
    """
    views = [_view(comparison, set_name, x, y) for set_name, x, y in _places(comparison)]
    if not views:
        return None
    return Section(
        key="maps",
        title="Where it works",
        lead=f"Mean return and worst single episode, over each pair of parameters.{_left_out(comparison)}",
        how_to_read="Each tile holds all episodes with about those two values, whatever the other parameters were; "
        "plots of the same kind share one colour scale, so that policies can be compared. The white frame is the range "
        "that the policy was trained on, a white cross its only value. Tiles without an episode are left out.",
        views=views,
        choice="Parameters",
    )


def difference_maps(comparison: Comparison) -> Section | None:
    """The paired difference of every two policies over each pair of parameters.

    Returns:
        None for a single policy, or where no set varies two parameters.
    """
    views = []
    for groups in comparison.group_pairs:
        a, b = (comparison.groups[g].name for g in groups)
        for set_name, x, y in _places(comparison):
            name = f"{a} minus {b}: {_pair_name(comparison, set_name, x, y)}"
            views.append(View(name=name, panels=[_difference(comparison, groups, set_name, x, y)]))
    if not views:
        return None
    return Section(
        key="differences",
        title="Which policy is better where",
        lead="The mean return of one policy minus that of another, on the same draws and episode seeds."
        + _left_out(comparison),
        how_to_read="Blue tiles: the policy that is named first returns more. Red tiles: the other one does. Point at "
        "a tile for its standard error; a difference below two of them may be chance.",
        views=views,
        choice="Policies and parameters",
    )


def _places(comparison: Comparison) -> list[tuple[str, str, str]]:
    """(set, x, y) of all maps: of a chosen grid first, then of what fills the box; of draws where there is neither."""
    kinds = {entry["name"]: entry["kind"] for entry in comparison.document["sets"]}
    for choice in (("grid", "sobol"), ("distribution",), ("corners",)):
        names = sorted((name for name in kinds if kinds[name] in choice), key=lambda name: choice.index(kinds[name]))
        if places := [(name, x, y) for name in names for x, y in comparison.pairs(name)]:
            return places
    return []


def _left_out(comparison: Comparison) -> str:
    """Which parameters have no maps, since there would be too many, as sentences that follow others."""
    sets = dict.fromkeys(place[0] for place in _places(comparison))
    sentences = {name: text for name in sets if (text := comparison.left_out(name))}
    if len(sets) > 1:
        return "".join(f" {describe_set(comparison, name)}, {t[0].lower()}{t[1:]}" for name, t in sentences.items())
    return "".join(f" {text}" for text in sentences.values())


def _pair_name(comparison: Comparison, set_name: str, x: str, y: str) -> str:
    several = len({place[0] for place in _places(comparison)}) > 1
    return f"{x} and {y}" + (f" ({comparison.label(set_name)})" if several else "")


def _view(comparison: Comparison, set_name: str, x: str, y: str) -> View:
    across, up = _bins(comparison, set_name, x, y)
    found = [bin_statistics(comparison.returns(g, set_name), across, up) for g in range(len(comparison.groups))]
    panels = []
    for index, group in enumerate(comparison.groups):
        for key, words in STATISTICS:
            together = np.stack([getattr(t, key) for t in found])
            scale = {"colorscale": "Viridis", "zmin": float(np.nanmin(together)), "zmax": float(np.nanmax(together))}
            figure = _map(comparison, (x, across), (y, up), getattr(found[index], key), found[index], words, scale)
            _draw_range(figure, comparison, index, (x, across), (y, up))
            title = f"{group.name}: {words}"
            panels.append(Panel(title=title, figure=figure, description=f"Heat map, {title}, over {x} and {y}."))
    return View(name=_pair_name(comparison, set_name, x, y), panels=panels)


def _bins(comparison: Comparison, set_name: str, x: str, y: str) -> tuple[Bins, Bins]:
    values = comparison.values(set_name)
    return make_bins(values[x]), make_bins(values[y])


def _difference(comparison: Comparison, groups: tuple[int, int], set_name: str, x: str, y: str) -> Panel:
    across, up = _bins(comparison, set_name, x, y)
    first, second = (comparison.returns(g, set_name).mean(axis=0) for g in groups)  # over seeds
    found = bin_statistics((first - second)[None], across, up)
    largest = float(np.nanmax(np.abs(found.mean))) or 1.0
    scale = {"colorscale": "RdBu", "zmin": -largest, "zmax": largest}
    figure = _map(comparison, (x, across), (y, up), found.mean, found, "difference", scale)
    a, b = (comparison.groups[g].name for g in groups)
    title = f"{a} minus {b}: difference of mean returns"
    return Panel(title=title, figure=figure, description=f"Heat map, {title}, over {x} and {y}.")


def _map(
    comparison: Comparison,
    across: tuple[str, Bins],
    up: tuple[str, Bins],
    values: Array,
    found: BinStatistics,
    words: str,
    scale: dict[str, Any],
) -> go.Figure:
    import plotly.graph_objects as go

    (x, x_bins), (y, y_bins) = across, up
    heat = go.Heatmap(
        x=x_bins.edges.tolist(),
        y=y_bins.edges.tolist(),
        z=values.tolist(),
        customdata=np.stack([found.count, found.error], axis=-1).tolist(),
        hoverongaps=False,
        colorbar={"title": {"text": words, "side": "right"}, "thickness": 12},
        hovertemplate=f"{plain(x)} %{{x:.4g}}<br>{plain(y)} %{{y:.4g}}<br>{words} <b>%{{z:.1f}}</b>"
        "<br>standard error of the mean %{customdata[1]:.1f}<br>%{customdata[0]} episodes<extra></extra>",
        **scale,
    )
    titles = {"x": parameter_title(comparison, x), "y": parameter_title(comparison, y)}
    figure = new_figure([heat], **titles, height=360, margin_t=36)
    for name, bins, update in ((x, x_bins, figure.update_xaxes), (y, y_bins, figure.update_yaxes)):
        show_bins(update, comparison, name, bins, showgrid=False, zeroline=False)
    return figure


def _draw_range(
    figure: go.Figure, comparison: Comparison, group: int, across: tuple[str, Bins], up: tuple[str, Bins]
) -> None:
    """A frame around the values of training, a cross where there was only one; white on black shows on any colour."""
    (x0, x1), (y0, y1) = (comparison.training_range(group, name) for name, _ in (across, up))
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
        _inside(low, high, bins, whole=comparison.document["parameters"][name]["kind"] != "float")
        for (low, high), (name, bins) in zip(((x0, x1), (y0, y1)), (across, up), strict=True)
    )
    for colour, width, dash in (("black", 5, "solid"), ("white", 2.5, "solid")):
        figure.add_shape(
            type="rect", x0=left, x1=right, y0=bottom, y1=top, line={"color": colour, "width": width, "dash": dash}
        )


def _inside(low: float, high: float, bins: Bins, *, whole: bool) -> tuple[float, float]:
    """A range within a plot; one that covers all of it is drawn just inside, where its frame can be seen."""
    first, last = float(bins.edges[0]), float(bins.edges[-1])
    if whole:  # around the tiles of its numbers, not through their middle
        low, high = low - 0.5, high + 0.5
    margin = 0.01 * (last - first)
    return max(low, first + margin), min(high, last - margin)
