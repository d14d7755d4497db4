"""Plots of what policies with memory know about their physics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.evaluation.knowledge import MIN_EPISODES
from gym_dr.evaluation.report.comparison import Comparison
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import SERIES, new_figure
from gym_dr.wording import counted

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")  # of lines of one plot, one for each color


def what_memories_know(comparison: Comparison) -> Section:
    """Plots, for each policy with memory, the share of each parameter's variance that is known over the steps."""
    views, episodes = [], 0
    for index, group in enumerate(comparison.groups):
        members = {entry["name"] for entry in comparison.entries(index)}
        found = [entry for entry in comparison.document.get("knowledge", ()) if entry["policy"] in members]
        if found:
            views.append(View(name=group.name, panels=_panels(found)))
            episodes = found[0]["episodes"]
    seeds = any(len(group.policies) > 1 for group in comparison.groups)
    return Section(
        key="knowledge",
        title="What a policy knows about its physics",
        lead="The share of each parameter's variance that the policy's memory explains, over the steps of an episode.",
        how_to_read=f"{counted(episodes, 'episode')} with training draws. At each marked step, a linear map "
        "of what the policy remembers predicts the draws of the episodes that still go on, each by the map of the "
        "others (leave-one-out): 100% is an exact prediction, 0% one that is no better than the mean. Dashed: the same "
        "from the observation of that step alone, as policies without memory see it. Lines end "
        f"where fewer than {MIN_EPISODES} episodes go on. A policy need not know what does not matter for its return."
        + (" Lines are means over seeds." if seeds else ""),
        views=views,
        choice="Policy",
    )


def _panels(entries: Sequence[dict[str, Any]]) -> list[Panel]:
    """Plots of as many parameters as there are colors, the best known first; entries are those of a group's runs."""
    parameters = entries[0]["parameters"]
    count = min(len(entry["steps"]) for entry in entries)
    steps = np.array(entries[0]["steps"][:count])
    memory, observation = (
        np.mean([np.array(entry[what][:count], np.float64) for entry in entries], axis=0)  # None becomes NaN
        for what in ("memory", "observation")
    )
    best = np.nan_to_num(memory, nan=-1.0).max(0)
    order = np.argsort(-best, kind="stable")
    return [
        _shares(steps, [(parameters[k], memory[:, k], observation[:, k]) for k in part])
        for part in np.split(order, range(len(SERIES), len(order), len(SERIES)))
    ]


def _shares(steps: Array, lines: Sequence[tuple[str, Array, Array]]) -> Panel:
    import plotly.graph_objects as go

    traces = []
    for (name, *shares), color, symbol in zip(lines, SERIES, SYMBOLS, strict=False):
        for what, dash, values in zip(("memory", "the observation alone"), ("solid", "dash"), shares, strict=True):
            solid = dash == "solid"
            traces.append(
                go.Scatter(
                    x=steps.tolist(),
                    y=values.tolist(),
                    mode="lines+markers" if solid else "lines",
                    marker={"symbol": symbol, "size": 8},
                    line={"color": color, "dash": dash, "width": 2.5 if solid else 1.5},
                    name=plain(name),
                    legendgroup=name,
                    showlegend=solid,
                    hovertemplate=f"step %{{x}}: {what} explains <b>%{{y:.0%}}</b><extra>%{{fullData.name}}</extra>",
                )
            )
    axis = {"title": {"text": "Step of the episode"}, "type": "log", "tickvals": steps.tolist()}
    figure = new_figure(traces, xaxis=axis, y="Share of the variance that is known")
    figure.update_yaxes(range=[-0.02, 1.02], tickformat=".0%")
    names = ", ".join(name for name, *_ in lines)
    return Panel(title="", figure=figure, description=f"Shares of variance known over steps, of {names}.")
