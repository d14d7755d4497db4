"""How returns are spread, along one parameter and over all episodes, and which parameter they depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.evaluation.report.compared import WIDEST_FIRST, Array, Compared
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import new_figure, parameter_title, series, translucent
from gym_dr.evaluation.report.tiles import ticks

if TYPE_CHECKING:
    import plotly.graph_objects as go

POINTS = 200  # of a distribution curve


def distributions(compared: Compared) -> Section:
    """For each set the share of episodes that return at least so much, a curve for each policy."""
    names = sorted(compared.sets, key=lambda name: name != compared.widest)  # that one first
    views = [View(name=compared.label(name), panels=[_distribution(compared, name)]) for name in names]
    seeds = any(len(group.policies) > 1 for group in compared.groups)
    return Section(
        key="distributions",
        title="How returns are spread",
        lead="The share of episodes that return at least so much.",
        how_to_read="A curve further to the right is better. Where it drops early, some draws make the policy fail, "
        "which a mean would hide."
        + (" The episodes of all seeds are counted together." if seeds else "")
        + ("" if compared.document["success"] is None else " The dotted line is the return that counts as success."),
        views=views,
        choice="Evaluated on",
    )


def along_parameters(compared: Compared) -> Section | None:
    """Mean return along each single parameter, the training range shaded.

    Returns:
        None where no set varies a parameter.
    """
    views = []
    for name in sorted(compared.sets, key=lambda name: WIDEST_FIRST.index(compared.set_entry(name)["kind"])):
        panels = [_along(compared, name, parameter) for parameter in compared.values(name)]
        if panels:
            views.append(View(name=compared.label(name), panels=panels))
    if not views:
        return None
    return Section(
        key="along",
        title="One parameter at a time",
        lead="Mean return along each parameter, whatever the others were.",
        how_to_read="The band is two standard errors of the mean over episodes to either side. The bar at the bottom "
        "spans the range that the policy of that colour was trained on; a diamond is its only value.",
        views=views,
        choice="Evaluated on",
    )


def sensitivity(compared: Compared) -> Section | None:
    """First-order and total Sobol indices of each parameter, a bar for each policy.

    Returns:
        None where no set allows them.
    """
    names = [n for n in compared.sets if compared.set_entry(n)["kind"] == "sobol"]
    if not names:
        return None
    panels = [
        _indices(compared, names[0], "first_order", "On its own (first order)"),
        _indices(compared, names[0], "total", "With interactions (total)"),
    ]
    return Section(
        key="sensitivity",
        title="What it depends on",
        lead="Which parameter moves the return of each policy.",
        how_to_read="A bar is the share of the variance of the mean return, over the whole randomized box, that comes "
        "from the parameter: alone, and together with others. Whiskers are 95% intervals, or for several seeds the "
        f"smallest and largest value; one that holds 0 may be chance.{_noise(compared, names[0])}",
        views=[View(panels=panels)],
    )


def _distribution(compared: Compared, set_name: str) -> Panel:
    import plotly.graph_objects as go

    traces = []
    for index, group in enumerate(compared.groups):
        returns = np.sort(compared.returns(index, set_name).ravel())
        kept = np.unique(np.linspace(0, len(returns) - 1, min(POINTS, len(returns))).round().astype(int))
        colour, dash = series(index)
        traces.append(
            go.Scatter(
                x=returns[kept].tolist(),
                y=(100 * (1 - kept / len(returns))).tolist(),
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2.5},
                name=plain(group.name),
                showlegend=True,
                hovertemplate="%{y:.0f}% of episodes return at least %{x:.1f}<extra>%{fullData.name}</extra>",
            )
        )
    figure = new_figure(traces, x="Episode return", y="Episodes that return at least this, %")
    figure.update_yaxes(range=[0, 102])
    if compared.document["success"] is not None:
        figure.add_vline(x=compared.document["success"], line={"color": "#7a7f87", "width": 1.5, "dash": "dot"})
    return Panel(title="", figure=figure, description=f"Shares of episodes by return, on {compared.label(set_name)}.")


def _along(compared: Compared, set_name: str, parameter: str) -> Panel:
    import plotly.graph_objects as go

    part = ticks(compared.values(set_name)[parameter])
    traces: list[Any] = []
    lowest = np.inf
    for index, group in enumerate(compared.groups):
        colour, dash = series(index)
        mean, error = _means(part.tile, len(part.centres), compared.returns(index, set_name))
        lowest = min(lowest, float(np.nanmin(mean - 2 * error)))
        low, high = (mean - 2 * error).tolist(), (mean + 2 * error).tolist()
        traces += [
            go.Scatter(
                x=[*part.centres.tolist(), *part.centres[::-1].tolist()],
                y=[*high, *low[::-1]],
                fill="toself",
                mode="lines",
                fillcolor=translucent(colour, 0.18),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=str(index),
            ),
            go.Scatter(
                x=part.centres.tolist(),
                y=mean.tolist(),
                customdata=(2 * error).tolist(),
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": 2.5},
                name=plain(group.name),
                legendgroup=str(index),
                showlegend=True,
                hovertemplate=f"{plain(parameter)} %{{x:.4g}}<br>mean return <b>%{{y:.1f}}</b> +- %{{customdata:.1f}}"
                "<extra>%{fullData.name}</extra>",
            ),
        ]
    figure = new_figure(traces, x=parameter_title(compared, parameter), y="Mean return", height=340)
    if compared.document["parameters"][parameter]["kind"] != "float" and len(part.centres) <= 2:
        figure.update_xaxes(tickvals=part.centres.tolist())
    figure.update_xaxes(range=[float(part.edges[0]), float(part.edges[-1])])
    _mark_ranges(figure, compared, parameter)
    return Panel(
        title=parameter, figure=figure, description=f"Mean return along {parameter}, on {compared.label(set_name)}."
    )


def _mark_ranges(figure: go.Figure, compared: Compared, parameter: str) -> None:
    """A line for each policy, above the axis, over the values that it was trained on."""
    nominal = compared.document["parameters"][parameter]["nominal"]
    for index in range(len(compared.groups)):
        low, high = compared.ranges(index).get(parameter, (nominal, nominal))
        height = 0.015 + 0.03 * index
        if low == high:
            figure.add_annotation(
                x=low, y=height, yref="y domain", text="\u25c6", showarrow=False, font={"color": series(index)[0]}
            )
        else:
            figure.add_shape(
                type="line",
                x0=low,
                x1=high,
                y0=height,
                y1=height,
                yref="y domain",
                line={"color": series(index)[0], "width": 5},
                opacity=0.8,
            )


def _means(tile: Any, size: int, returns: Array) -> tuple[Array, Array]:
    """Mean and its standard error in each bin, over runs and episodes; NaN where too few episodes are."""
    flat = np.broadcast_to(tile, returns.shape).ravel()
    count = np.bincount(flat, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(flat, returns.ravel(), size) / count
        squares = np.bincount(flat, (returns.ravel() - mean[flat]) ** 2, size)
        error = np.sqrt(squares / (count - 1) / count)
    return mean, np.where(count > 1, error, 0.0)


def _indices(compared: Compared, set_name: str, order: str, title: str) -> Panel:
    import plotly.graph_objects as go

    bars = []
    for index, group in enumerate(compared.groups):
        found = [result["sensitivity"] for result in compared.results(index, set_name)]
        parameters = found[0]["parameters"]
        values = np.array([[item["value"] for item in one[order]] for one in found], dtype=float)  # None: NaN
        middle = values.mean(axis=0)
        if len(found) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
        else:
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


def _noise(compared: Compared, set_name: str) -> str:
    """What no parameter explains, in words."""
    shares = []
    for index, group in enumerate(compared.groups):
        known = [r["sensitivity"]["noise"] for r in compared.results(index, set_name)]
        if None not in known:
            shares.append(f"{np.mean(known):.0%} ({group.name})")
    return (
        f" Chance (how an episode begins, sampled actions) makes up {', '.join(shares)} of that variance."
        if shares
        else ""
    )
