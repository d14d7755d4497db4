"""Assembles the report of a fit: what a log determines, what stays possible, and whether the model explains the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.evaluation.report.binning import evenly_spaced
from gym_dr.evaluation.report.page import Panel, Report, Section, View, plain, versions_of
from gym_dr.evaluation.report.residuals import residual_section
from gym_dr.evaluation.report.style import line, new_figure, series, translucent, with_unit
from gym_dr.fitting.results import Fit
from gym_dr.reports.table import Table

if TYPE_CHECKING:
    import pandas as pd

PACKAGES = ("gym-dr", "gymnasium", "numpy", "scipy", "plotly")  # a fit may depend on their versions
FITTED, NOMINAL, TRUE, PRIOR = 0, 1, 2, 5  # colors, as ``series`` counts them
PHYSICS = {"nominal": NOMINAL, "fitted": FITTED, "true": TRUE}
MEANINGS = {
    "nominal": "Nominal: parameters have their nominal values.",
    "fitted": "Fitted: they have the means of the posterior.",
    "true": "True: they have the values that are written in the log.",
}
QUANTILES = 4001  # of a prior
PRIOR_BINS, BINS = 100, 30  # of densities
MAX_PAIRS, MIN_PAIRS = 10, 2
CORRELATED = 0.1  # below this a pair says nothing that its two densities do not say
MAX_POINTS = 1000  # of a pair
CLOSE = 1e-3  # share of the mean below which a deviation takes too many digits
SMALL = 320  # height of one of many plots, pixels


def fit_report(fit: Fit, command: str, next_commands: Sequence[tuple[str, str]]) -> Report:
    """Collects the content of a page.

    Args:
        fit: What a fit has found.
        command: The command that made it; empty if it was made from Python.
        next_commands: What to do with the ranges: (description, command).
    """
    sections = [_densities(fit), _pairs(fit), _replay(fit), residual_section(fit.residuals)]
    return Report(
        title=f"Fit of {fit.env}",
        facts=[f"{name}: {value}" for name, value in fit.facts.items()],
        findings=list(fit.findings),
        tables=[table for table in (_parameter_table(fit), _error_table(fit)) if table.rows],
        sections=[section for section in sections if section.views],
        film_strips=[],
        film_strip_notes=[],
        provenance=[],
        command=command,
        versions=versions_of(PACKAGES),
        next_commands=next_commands,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parameter:
    """A parameter to find."""

    name: str
    unit: str
    nominal: float
    ends: tuple[float, float]  # of the prior
    mean: float
    deviation: float
    interval: tuple[float, float]  # 90 %
    shrink: float
    told: str
    prior: Array  # ascending quantiles
    drawn: Array  # of the posterior

    def text(self, value: float) -> str:
        """A value with the digits that its uncertainty leaves."""
        return _rounded(value, self.deviation)

    @property
    def origin(self) -> float:
        """Where axes close to the posterior start; not 0 if all their numbers would begin with the same digits."""
        return float(self.text(self.mean)) if self.deviation < CLOSE * abs(self.mean) else 0.0

    @property
    def label(self) -> str:
        """Of an axis that starts at ``origin``."""
        start = f" {'+' if self.mean < 0 else '-'} {self.text(self.mean).lstrip('-')}" if self.origin else ""
        return with_unit(f"{self.name}{start}", self.unit)

    def span(self, ends: tuple[float, float]) -> str:
        """A range in words, with its unit."""
        low, high = map(self.text, ends)
        return f"{low} to {high} {'times nominal' if self.unit == 'x' else self.unit}".rstrip()


def _parameters(fit: Fit) -> list[_Parameter]:
    """The parameters to find, in the order of the table."""
    uniforms = (np.arange(QUANTILES) + 0.5) / QUANTILES
    found = []
    for name, row in fit.parameters.to_dict(orient="index").items():
        rule = fit.prior[str(name)]
        found.append(
            _Parameter(
                name=str(name),
                unit=row["unit"],
                nominal=row["nominal"],
                ends=(row["prior_low"], row["prior_high"]),
                mean=row["mean"],
                deviation=row["deviation"],
                interval=(row["low"], row["high"]),
                shrink=row["shrink"],
                told=row["told"],
                prior=np.sort(rule.apply(row["nominal"], rule.distribution.ppf(uniforms))),
                drawn=fit.particles[name].to_numpy(np.float64),
            )
        )
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------


def _parameter_table(fit: Fit) -> Table:
    rows = []
    for one in _parameters(fit):
        (low, high), (prior_low, prior_high) = one.interval, one.ends
        texts = [
            f"{prior_low:.4g} to {prior_high:.4g}",
            f"{one.nominal:.4g}",
            one.text(one.mean),
            f"{one.text(low)} to {one.text(high)}",
            _percent(1 - one.shrink),
            one.told,
        ]
        rows.append([_labeled(one.name, one.unit), *texts])
    note = (
        "The prior is what was possible before the log was read. Mean and 90% interval are those of the posterior, "
        "which is what the log leaves possible. The range shrank by this share of the prior's standard deviation. The "
        "log tells nothing of a parameter that keeps its prior."
    )
    columns = ["Parameter", "Prior range", "Nominal", "Mean", "90% interval", "Range shrank by", "The log"]
    return Table(caption="Parameters", columns=columns, rows=rows, notes=[note])


def _error_table(fit: Fit) -> Table:
    rows = [
        [_labeled(str(name), row["unit"]), *(_size(row[key]) for key in ("measured", "process"))]
        for name, row in fit.errors.to_dict(orient="index").items()
    ]
    note = (
        "Standard deviations, in the unit of the coordinate. Errors of measurement are those of the log's sensors. "
        "Errors of the process are what each step of the system adds and the simulation lacks."
    )
    columns = ["Coordinate", "Error of measurement", "Error of the process, each step"]
    return Table(caption="Errors that the fit has estimated", columns=columns, rows=rows, notes=[note])


def _labeled(name: str, unit: str) -> str:
    """A name with its unit, for tables, which escape text themselves."""
    return f"{name} ({'times nominal' if unit == 'x' else unit})" if unit else name


def _rounded(value: float, deviation: float) -> str:
    """A value with two digits of its deviation."""
    if not (math.isfinite(value) and math.isfinite(deviation) and deviation > 0):
        return f"{value:.4g}"
    decimals = 1 - math.floor(math.log10(deviation))
    if decimals > 6 or abs(value) >= 1e6:  # too long to read
        digits = max(2, decimals + math.floor(math.log10(abs(value) or deviation)) + 1)
        return f"{value:.{min(digits, 9)}g}"
    return f"{value:.{max(decimals, 0)}f}"


def _percent(share: float) -> str:
    """A share that never claims to be all."""
    if not math.isfinite(share):
        return "-"
    if share > 0.999:
        return "over 99.9%"
    return f"{max(share, 0.0):.{1 if share > 0.99 else 0}%}"


def _size(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "-"


# ---- prior and posterior ---------------------------------------------------------------------------------------------


def _densities(fit: Fit) -> Section:
    """Plots, for each parameter, what was possible before and what the log leaves possible."""
    parameters = _parameters(fit)
    shifted = any(one.origin for one in parameters)
    close = [one for one in parameters if one.shrink < 0.5]  # others fill the range of their prior anyway
    views = [View(name="all of the prior", panels=[_density(one, close=False) for one in parameters])]
    views.append(View(name="close to the posterior", panels=[_density(one, close=True) for one in close]))
    return Section(
        key="posterior",
        title="Prior and posterior",
        lead="What was possible before the log was read, and what it leaves possible.",
        how_to_read="Gray is the prior, blue the posterior; the orange line is the nominal value, if it lies within "
        "the plot. Each density is drawn as a share of its own peak, so that a narrow posterior does not hide the "
        "prior. A narrow peak: the log determines the parameter. Blue as wide as gray: it does not. A peak at an end "
        "of the prior: the value may lie beyond it, so fit again with a wider prior."
        + (" An axis such as gravity - 9.81 shows the difference from that value." if shifted else ""),
        views=[view for view in views if view.panels],
        choice="Range",
    )


def _density(one: _Parameter, *, close: bool) -> Panel:
    origin = one.origin if close else 0.0
    edges, heights = _histogram(one.drawn - origin)
    prior, nominal = one.prior - origin, one.nominal - origin
    low, high = float(edges[0]), float(edges[-1])
    if not close:
        low, high = min(low, nominal, float(prior[0])), max(high, nominal, float(prior[-1]))
    margin = (0.3 if close else 0.04) * (high - low) or 1.0
    low, high = low - margin, high + margin
    axis = {"range": [low, high], "title": {"text": one.label if close else with_unit(one.name, one.unit)}}
    traces = [
        _area(PRIOR, "prior", *_prior_density(prior, low, high)),
        _area(FITTED, "posterior", np.r_[edges[0], edges], np.r_[0.0, heights, 0.0], shape="hv"),
    ]
    if low <= nominal <= high:
        ends, hover = (np.full(2, nominal), np.array([0.0, 1.0])), "nominal %{x:.5g}<extra></extra>"
        traces.append(line(NOMINAL, *ends, name="nominal", showlegend=True, hovertemplate=hover))
    figure = new_figure(traces, xaxis=axis, y="Share of the peak", height=SMALL)
    figure.update_xaxes(exponentformat="power")
    figure.update_yaxes(range=[0, 1.05], tickformat=".0%")
    description = f"Density of {one.name} before and after the fit, which leaves {one.span(one.interval)}."
    return Panel(title=f"{one.name}: {one.told}", figure=figure, description=description)


def _histogram(drawn: Array) -> tuple[Array, Array]:
    """Edges of bins, and their heights as shares of the highest."""
    counts, edges = np.histogram(drawn, BINS)
    return edges, counts / counts.max()


def _prior_density(quantiles: Array, low: float, high: float) -> tuple[Array, Array]:
    """An outline of the density between two values, as a share of its peak over the whole range."""
    first, last = float(quantiles[0]), float(quantiles[-1])
    if not last > first:
        return np.full(2, first), np.array([0.0, 1.0])
    half = 0.5 * (last - first) / PRIOR_BINS  # finer windows would show the quantiles themselves

    def mass(x: Array) -> Array:
        middle = np.clip(x, first + half, last - half)
        below, above = (np.interp(middle + way, quantiles, np.linspace(0, 1, len(quantiles))) for way in (-half, half))
        found: Array = above - below
        return found

    x = np.linspace(max(low, first), min(high, last), PRIOR_BINS)
    heights = np.minimum(mass(x) / mass(np.linspace(first, last, PRIOR_BINS)).max(), 1.0)
    return np.r_[x[0], x, x[-1]], np.r_[0.0, heights, 0.0]


def _area(color: int, name: str, x: Array, y: Array, *, shape: str = "linear") -> Any:
    """A density as a filled line."""
    import plotly.graph_objects as go  # heavy

    return go.Scatter(
        x=x.tolist(),
        y=y.tolist(),
        mode="lines",
        line={"color": series(color)[0], "width": 1.8, "shape": shape},
        fill="tozeroy",
        fillcolor=translucent(series(color)[0], 0.25),
        name=name,
        showlegend=True,
        hovertemplate=f"{name} at %{{x:.5g}}: %{{y:.0%}} of its peak<extra></extra>",
    )


# ---- pairs -----------------------------------------------------------------------------------------------------------


def _pairs(fit: Fit) -> Section:
    """Plots the posterior of pairs of parameters, those first that depend on each other most."""
    parameters = _parameters(fit)
    strengths = {pair: _rank_correlation(pair[0].drawn, pair[1].drawn) for pair in combinations(parameters, 2)}
    ordered = sorted(strengths, key=lambda pair: -abs(strengths[pair]))
    strong = [pair for pair in ordered if abs(strengths[pair]) >= CORRELATED]
    shown = strong[:MAX_PAIRS] if len(strong) > MIN_PAIRS else ordered[:MIN_PAIRS]
    left = len(ordered) - len(shown)
    weaker = f" The {left} other pairs depend on each other less." if left > 1 else ""
    if left == 1:
        weaker = " The other pair depends on each other less."
    return Section(
        key="pairs",
        title="Pairs of parameters",
        lead=f"Which values the log leaves possible together.{weaker}",
        how_to_read="Each dot is a draw of the posterior. A round cloud: the log tells the two parameters apart. A "
        "thin line or curve: it determines a combination, such as their ratio, better than each of them. The "
        "correlation is that of ranks. An orange diamond marks the nominal values if they are among the draws.",
        views=[View(panels=[_pair(*pair, strengths[pair]) for pair in shown])] if shown else [],
    )


def _rank_correlation(a: Array, b: Array) -> float:
    """Spearman's; 0 for a constant."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    from scipy import stats  # heavy

    return float(stats.spearmanr(a, b).statistic)


def _pair(x: _Parameter, y: _Parameter, correlation: float) -> Panel:
    import plotly.graph_objects as go  # heavy

    kept = evenly_spaced(len(x.drawn), MAX_POINTS)
    hover = f"{plain(x.name)} %{{text}}<br>{plain(y.name)} %{{customdata}}<extra></extra>"
    marker: dict[str, Any] = {"size": 4, "color": series(FITTED)[0], "opacity": 0.55}

    def points(first: Array, second: Array, hover: str, marker: dict[str, Any]) -> go.Scatter:
        return go.Scatter(
            x=(first - x.origin).tolist(),
            y=(second - y.origin).tolist(),
            text=[x.text(value) for value in first],
            customdata=[y.text(value) for value in second],
            mode="markers",
            marker=marker,
            hovertemplate=hover,
        )

    traces = [points(x.drawn[kept], y.drawn[kept], hover, marker)]
    if all(one.drawn.min() <= one.nominal <= one.drawn.max() for one in (x, y)):
        marker = {"size": 12, "symbol": "diamond", "color": series(NOMINAL)[0], "line": {"color": "white", "width": 1}}
        traces.append(points(np.array([x.nominal]), np.array([y.nominal]), f"nominal<br>{hover}", marker))
    figure = new_figure(traces, x=x.label, y=y.label, height=SMALL, showlegend=False, margin_t=36)
    figure.update_xaxes(exponentformat="power")
    figure.update_yaxes(exponentformat="power")
    title = f"{x.name} and {y.name}: correlation {correlation:.2f}"
    return Panel(title=title, figure=figure, description=f"Draws of the posterior, {title}.")


# ---- replay ----------------------------------------------------------------------------------------------------------


def _replay(fit: Fit) -> Section:
    """Plots how far simulation departs from the log, over steps: first the mean over coordinates, then each."""
    table = fit.replay[np.isfinite(fit.replay["share"]) & (fit.replay["share"] > 0)]
    names = list(dict.fromkeys(table["coordinate"]))
    units = fit.errors["unit"].to_dict()
    views = [_departure(table[table["coordinate"] == name], name, units.get(name, "")) for name in names]
    if len(names) > 1:
        mean = table.groupby(["physics", "steps"], sort=False)["share"].mean().reset_index()
        views.insert(0, _departure(mean, "", ""))
    words = " ".join(text for name, text in MEANINGS.items() if name in set(table["physics"]))
    exact = " Errors of exactly 0 have no place on a logarithmic axis." if (fit.replay["share"] == 0).any() else ""
    return Section(
        key="replay",
        title="Replay against the log",
        lead="How far simulation departs from the log after some steps, when it starts from a measured state and "
        "repeats the logged actions.",
        how_to_read=f"{words} Errors are root mean squares, as a share of the standard deviation of the logged "
        "motion: at 100% a simulation predicts no better than the mean of the log. Lower is better. After few steps, "
        f"errors of measurement set a floor. Point at the line of a coordinate for the error in its unit.{exact}",
        views=views,
        choice="Coordinate",
    )


def _departure(table: pd.DataFrame, coordinate: str, unit: str) -> View:
    """The errors of each physics; without a coordinate, their mean."""
    traces = []
    for name, color in PHYSICS.items():
        part = table[table["physics"] == name].sort_values("steps")
        if part.empty:
            continue
        hover = "%{y:.3g}% after %{x} steps"
        if coordinate:
            hover = f"%{{customdata:.3g}}{plain(f' {unit}' if unit else '')}, {hover}"
        traces.append(
            line(
                color,
                part["steps"].to_numpy(),
                100 * part["share"].to_numpy(),
                customdata=part["error"].tolist() if coordinate else None,
                mode="lines+markers",
                name=name,
                showlegend=True,
                hovertemplate=f"{hover}<extra>{name}</extra>",
            )
        )
    figure = new_figure(traces, x="Steps", y="Error, % of the motion's deviation")
    ticks = sorted(set(table["steps"].tolist()))
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[str(step) for step in ticks])
    marks = _decimal_marks(100 * table["share"].to_numpy())
    figure.update_yaxes(type="log", tickvals=marks, ticktext=[f"{mark:g}" for mark in marks])
    label = _labeled(coordinate, unit) or "mean over all"
    description = f"Error of replay against steps, {coordinate or 'mean over all coordinates'}."
    return View(name=label, panels=[Panel(title=label if coordinate else "", figure=figure, description=description)])


def _decimal_marks(values: Array) -> list[float]:
    """Marks of a logarithmic axis, at round numbers, neither few nor crowded."""
    low, high = (math.log10(float(end)) for end in (values.min(), values.max()))
    steps = (1, 2, 5) if high - low < 1.5 else (1, 3) if high - low < 4 else (1,)
    return [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
