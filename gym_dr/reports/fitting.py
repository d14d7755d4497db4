"""The page of a fit: what the log determines, what it leaves possible, and whether the model explains it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from gym_dr.arrays import Array
from gym_dr.fitting.results import Fit
from gym_dr.reports.binning import evenly_spaced
from gym_dr.reports.page import Panel, Report, Section, View, plain, versions_of
from gym_dr.reports.style import line, new_figure, series, translucent, with_unit

PACKAGES = ("gym-dr", "gymnasium", "numpy", "scipy", "plotly")  # a fit may depend on their versions
FITTED, NOMINAL, PRIOR = 0, 1, 5  # colors, as ``series`` counts them
PHYSICS = {"nominal": NOMINAL, "fitted": FITTED, "likelihood": 2, "simulation": 2}
QUANTILES = 4000  # of a prior
BINS = 25  # of densities
MAX_PAIRS = 10
MAX_POINTS = 1000  # of a pair, or of a coordinate
BAND = 2.0  # standard deviations
MAX_BINS = 25  # of steps
FEWEST = 10  # residuals behind a mean
SMALL = 320  # height of one of many plots, pixels
MARKS = [step * 10.0**power for power in range(-6, 7) for step in (1, 2, 5)]  # of a logarithmic axis
PARAMETERS = (
    "The prior says which values were possible before the log was read. Mean and 90 % interval are those of the "
    "posterior: the values that can explain the log. The log has no information on a parameter that keeps its prior."
)


def fit_report(fit: Fit, command: str, randomization: Path) -> Report:
    """Collects the content of a page.

    Args:
        fit: The fit.
        command: The command that made it; empty for Python.
        randomization: The file of its ranges.
    """
    train = ["gymdr", "train", "ppo", "--env", fit.env, "--randomization", str(randomization)]
    parameters = replace(fit.table, caption="Parameters", notes=[PARAMETERS])
    densities, pairs = _densities(fit), _pairs(fit)
    sections = [densities, pairs, _replay(fit), _residuals(fit.residuals)]
    return Report(
        title=f"Fit of {fit.env}",
        facts=[f"{name}: {value}" for name, value in fit.facts.items()],
        findings=list(fit.findings),
        tables=[table for table in (parameters, fit.prediction_table, fit.error_table) if table.rows],
        sections=[section for section in sections if section.views],
        provenance=[],
        command=command,
        versions=versions_of(PACKAGES),
        picture=next((section.views[0].panels[0] for section in (pairs, densities) if section.views), None),
        next_commands=[("Train on the fitted ranges", shlex.join([*train, "--run-dir", "runs/fitted"]))],
    )


# ---- prior and posterior ---------------------------------------------------------------------------------------------


def _densities(fit: Fit) -> Section:
    """Plots prior and posterior of each parameter."""
    panels = [_density(fit, name) for name in fit.parameters.index]
    return Section(
        key="posterior",
        title="Prior and posterior",
        lead="Which values were possible before the log was read, and which can explain it.",
        how_to_read="Gray is the prior, blue the posterior; the orange line is the nominal value. "
        "Each density is drawn as a share of its own peak, so that a narrow posterior does not hide the "
        "prior. A narrow peak: the log determines the parameter. Blue as wide as gray: it does not. A peak at an end "
        "of the prior: the value may lie beyond, so fit again with a wider prior.",
        views=[View(panels=panels)] if panels else [],
    )


def _density(fit: Fit, name: str) -> Panel:
    row, rule = fit.parameters.to_dict(orient="index")[name], fit.prior[name]
    drawn = fit.particles[name].to_numpy(np.float64)
    prior = rule.apply(row["nominal"], rule.distribution.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES))
    shown = np.r_[drawn, prior, row["nominal"]]
    low, high = float(shown.min()), float(shown.max())
    margin = 0.04 * (high - low) or 1.0
    ends, hover = (np.full(2, row["nominal"]), np.array([0.0, 1.0])), "nominal %{x:.5g}<extra></extra>"
    nominal = line(NOMINAL, *ends, name="nominal", showlegend=True, hovertemplate=hover)
    traces = [_area(PRIOR, "prior", prior), _area(FITTED, "posterior", drawn), nominal]
    figure = new_figure(traces, x=with_unit(name, row["unit"]), y="Share of the peak", height=SMALL)
    figure.update_xaxes(exponentformat="power", range=[low - margin, high + margin])
    figure.update_yaxes(range=[0, 1.05], tickformat=".0%")
    description = f"Density of {name} before and after the fit, which leaves {row['low']:.4g} to {row['high']:.4g}."
    return Panel(title=f"{name}: {row['identified']}", figure=figure, description=description)


def _area(color: int, name: str, values: Array) -> Any:
    """A histogram as a filled line, as a share of its peak."""
    counts, edges = np.histogram(values, BINS)
    heights = counts / counts.max()
    return go.Scatter(
        x=[edges[0], *edges.tolist()],
        y=[0.0, *heights.tolist(), 0.0],
        mode="lines",
        line={"color": series(color)[0], "width": 1.8, "shape": "hv"},
        fill="tozeroy",
        fillcolor=translucent(series(color)[0], 0.25),
        name=name,
        showlegend=True,
        hovertemplate=f"{name} at %{{x:.5g}}: %{{y:.0%}} of its peak<extra></extra>",
    )


# ---- pairs -----------------------------------------------------------------------------------------------------------


def _pairs(fit: Fit) -> Section:
    """Plots the posterior of pairs of parameters, the most correlated first."""
    table = fit.particles.corr(method="spearman").fillna(0.0)  # nan for a constant
    correlations = {(x, y): float(table.loc[x, y]) for x, y in combinations(fit.parameters.index, 2)}
    ordered = sorted(correlations, key=lambda pair: -abs(correlations[pair]))
    shown = ordered[:MAX_PAIRS]
    return Section(
        key="pairs",
        title="Pairs of parameters",
        lead="Which pairs of values can explain the log."
        + (" Other pairs are less correlated." if len(ordered) > len(shown) else ""),
        how_to_read="Each dot is a draw of the posterior. A round cloud: the log tells the two parameters apart. A "
        "thin line or curve: it determines a combination, such as their ratio, better than each of them. The "
        "correlation is that of ranks. An orange diamond marks the nominal values if they are among the draws.",
        views=[View(panels=[_pair(fit, *pair, correlations[pair]) for pair in shown])] if shown else [],
    )


def _pair(fit: Fit, x: str, y: str, correlation: float) -> Panel:
    drawn, nominal = fit.particles[[x, y]].to_numpy(np.float64), fit.parameters.loc[[x, y], "nominal"].to_numpy()
    hover = f"{plain(x)} %{{x:.5g}}<br>{plain(y)} %{{y:.5g}}<extra></extra>"

    def points(places: Array, hover: str, marker: dict[str, Any]) -> go.Scatter:
        first, second = places.T.tolist()
        return go.Scatter(x=first, y=second, mode="markers", marker=marker, hovertemplate=hover)

    kept = drawn[evenly_spaced(len(drawn), MAX_POINTS)]
    traces = [points(kept, hover, {"size": 4, "color": series(FITTED)[0], "opacity": 0.55})]
    if (drawn.min(axis=0) <= nominal).all() and (nominal <= drawn.max(axis=0)).all():
        marker = {"size": 12, "symbol": "diamond", "color": series(NOMINAL)[0], "line": {"color": "white", "width": 1}}
        traces.append(points(nominal[None], f"nominal<br>{hover}", marker))
    titles = {axis: with_unit(name, str(fit.parameters.loc[name, "unit"])) for axis, name in (("x", x), ("y", y))}
    figure = new_figure(traces, **titles, height=SMALL, showlegend=False, margin_t=36)
    figure.update_xaxes(exponentformat="power")
    figure.update_yaxes(exponentformat="power")
    title = f"{x} and {y}: correlation {correlation:.2f}"
    return Panel(title=title, figure=figure, description=f"Draws of the posterior, {title}.")


# ---- replay ----------------------------------------------------------------------------------------------------------


def _replay(fit: Fit) -> Section:
    """Plots how far simulation departs from the log at each horizon: the mean over coordinates, then each."""
    table = fit.replay[np.isfinite(fit.replay["share"]) & (fit.replay["share"] > 0)]
    views = [
        _departure(group, str(name), str(group["unit"].iloc[0]))
        for name, group in table.groupby("coordinate", sort=False)
    ]
    if len(views) > 1:
        mean = table.groupby(["physics", "horizon"], sort=False)["share"].mean().reset_index()
        views.insert(0, _departure(mean, "", ""))
    exact = " Errors of exactly 0 have no place on a logarithmic axis." if (fit.replay["share"] == 0).any() else ""
    return Section(
        key="replay",
        title="Predictions of the log",
        lead="How far simulation departs from the log up to some horizon, when it begins in a state that is fitted to "
        "a short window of the log and repeats the logged actions.",
        how_to_read="Nominal: parameters have their nominal values. Fitted: they have the best ones of the method that "
        "was taken; a third line is that of the other method. "
        "Errors are root mean squares, as a share of the standard deviation of the logged motion: at 100% a simulation "
        "predicts no better than the mean of the log. Lower is better. At short horizons, measurement noise sets a "
        f"floor. Point at the line of a coordinate for the error in its unit.{exact}",
        views=views,
        choice="Coordinate",
    )


def _departure(table: pd.DataFrame, coordinate: str, unit: str) -> View:
    """The errors of each physics; without a coordinate, their mean."""
    traces = []
    for name, color in PHYSICS.items():
        part = table[table["physics"] == name]
        if part.empty:
            continue
        hover = "%{y:.3g}% over %{x}"
        if coordinate:
            hover = f"%{{customdata:.3g}}{plain(f' {unit}' if unit else '')}, {hover}"
        traces.append(
            line(
                color,
                part["horizon"].to_numpy(),
                100 * part["share"].to_numpy(),
                customdata=part["error"].tolist() if coordinate else None,
                mode="lines+markers",
                name=name,
                showlegend=True,
                hovertemplate=f"{hover}<extra>{name}</extra>",
            )
        )
    figure = new_figure(traces, x="Horizon", y="Error, % of the motion's standard deviation")
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="log", tickvals=MARKS, ticktext=[f"{mark:g}" for mark in MARKS])
    label = with_unit(coordinate, unit) or "mean over all"
    description = f"Errors of predictions, {coordinate or 'mean over all coordinates'}."
    return View(name=label, panels=[Panel(title=label if coordinate else "", figure=figure, description=description)])


# ---- residuals -------------------------------------------------------------------------------------------------------


def _residuals(residuals: pd.DataFrame) -> Section:
    """Plots the residuals of each coordinate over steps.

    Args:
        residuals: See ``Fit.residuals``.
    """
    known = residuals[np.isfinite(residuals["residual"])].sort_values(["episode", "step"], kind="stable")
    views = [
        View(name=str(name), panels=[_scatter(str(name), table)])
        for name, table in known.groupby("coordinate", sort=False)
    ]
    return Section(
        key="residuals",
        title="Residuals",
        lead="What the fitted model leaves unexplained in each step, in units of its own standard deviation. If the "
        "model is right, this is noise.",
        how_to_read="Noise stays around 0, about 95% of it within the gray band of two standard deviations; the line "
        "is the mean of neighboring steps. A mean away from 0 shows that the model lacks something, such as friction "
        "or a delay. About one mean in twenty is two standard errors away from 0 by chance.",
        views=views,
        choice="Coordinate",
    )


def _scatter(coordinate: str, table: pd.DataFrame) -> Panel:
    ordered = table.sort_values("step", kind="stable")
    shown = ordered.iloc[evenly_spaced(len(ordered), MAX_POINTS)]
    outside = float((table["residual"].abs() > BAND).mean())
    width = int(table["step"].max()) // MAX_BINS + 1
    bins = table.groupby(table["step"] // width)["residual"].agg(["mean", "count"])
    bins = bins[bins["count"] >= FEWEST]
    points = go.Scatter(
        x=shown["step"].tolist(),
        y=shown["residual"].tolist(),
        mode="markers",
        marker={"size": 4, "color": series(0)[0], "opacity": 0.55},
        customdata=shown["episode"].tolist(),
        hovertemplate="step %{x} of episode %{customdata}: %{y:.2f} standard deviations<extra></extra>",
    )
    hover = "mean near step %{x:.0f}: %{y:.2f} standard deviations<extra></extra>"
    middle = bins.index.to_numpy(np.float64) * width + (width - 1) / 2
    mean = line(1, middle, bins["mean"].to_numpy(), hovertemplate=hover)
    x, y = "Step of the episode", "Residual, standard deviations"
    figure = new_figure([points, mean], x=x, y=y, showlegend=False, margin_t=36)
    gray = translucent(series(5)[0], 0.18)
    figure.add_hrect(y0=-BAND, y1=BAND, fillcolor=gray, line_width=0, layer="below")
    title = f"{outside:.1%} outside the band"
    return Panel(title=title, figure=figure, description=f"Residuals of {coordinate} by step, {title}.")
