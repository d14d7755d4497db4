"""The effects of a study's factors as dots with intervals, grouped by factor: a picture and a report's section."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.evaluation.plots import new_figure as new_picture
from gym_dr.evaluation.plots import save_figure
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import new_figure, series
from gym_dr.experiments.factor_effects import RESIDUAL, SEED_BLOCKS
from gym_dr.experiments.factor_tables import TIMES, effect_name, percentage

if TYPE_CHECKING:
    import pandas as pd

ROW, GAP_BETWEEN = 1.0, 1.4  # heights of a row, and of a factor's heading
AXIS = "Difference in mean return"
QUESTION = "How much does each factor change, and how much of the variance between runs does it explain?"


def plot_effects(effects: pd.DataFrame, shares: pd.DataFrame, path: Path) -> None:
    """Draws effects with 95 % intervals, grouped by factor with its share of variance, a column for each set.

    Args:
        effects: See ``StudyTables.effects``; those of one statistic, at least one.
        shares: See ``StudyTables.shares``; those of the same statistic.
        path: Path of the picture.

    Raises:
        RunFolderError: The picture cannot be written.
    """
    sets = list(dict.fromkeys(effects["set"]))
    places = _places(effects)
    lowest = max(places.values()) + ROW
    figure, axes = new_picture(1, len(sets), (2.0 + 3.2 * len(sets), 1.2 + 0.24 * lowest))
    colors = {term: f"C{index % 10}" for index, term in enumerate(dict.fromkeys(effects["term"]))}
    small: Any = {"fontsize": "small", "parse_math": False}
    for ax, name in zip(axes, sets, strict=True):
        ax.axvline(0.0, color="0.4", linewidth=1.0, linestyle=":")
        for row in effects[effects["set"] == name].to_dict("records"):
            y = places[row["term"], row["level"]]
            ax.plot([row["low"], row["high"]], [y, y], color=colors[row["term"]], linewidth=1.8)
            ax.plot([row["value"]], [y], "o", color=colors[row["term"]], markersize=5)
        known = _shares_of(shares, name)
        for term, other in effects.drop_duplicates("term")[["term", "other"]].itertuples(index=False):
            text = term if TIMES in term else f"{term}, from {other}"
            y = places[term, ""]
            text += f": {known[term]}" if term in known else ""
            ax.text(0.02, y, text, transform=ax.get_yaxis_transform(), va="center", backgroundcolor="white", **small)
        rest = [f"{term}: {known[term]}" for term in (SEED_BLOCKS, RESIDUAL) if term in known]
        ax.set_title("\n".join([name, ", ".join(rest)]), **small)
        ax.set_ylim(lowest, -ROW)
        ax.grid(visible=False, axis="y")
        labels = {y: level for (_, level), y in places.items() if level}
        ax.set_yticks(list(labels), list(labels.values()) if ax is axes[0] else [""] * len(labels), fontsize="small")
    figure.supxlabel(f"{AXIS}, with 95 % intervals over seeds; percentages: shares of variance", fontsize="medium")
    save_figure(figure, path, dpi=110)


def _places(effects: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(term, level) -> height from the top; the level "" stands for a term's heading."""
    found: dict[tuple[str, str], float] = {}
    height = 0.0
    for term, rows in effects.groupby("term", sort=False):
        found[str(term), ""] = height
        for level in dict.fromkeys(rows["level"]):
            height += ROW
            found[str(term), level] = height
        height += GAP_BETWEEN
    return found


def _shares_of(shares: pd.DataFrame, name: str) -> dict[str, str]:
    """Term -> its share of variance on a set, as text."""
    return {row["term"]: percentage(row) for row in shares[shares["set"] == name].to_dict("records")}


def effects_section(effects: pd.DataFrame, shares: pd.DataFrame) -> list[Section]:
    """Dots with intervals, a view for each set; nothing if there are no effects.

    Args:
        effects: See ``StudyTables.effects``; those of one statistic.
        shares: See ``StudyTables.shares``; those of the same statistic.
    """
    if not len(effects):
        return []
    views = [
        View(name=str(name), panels=[_panel(rows, _shares_of(shares, str(name)), str(name))])
        for name, rows in effects.groupby("set", sort=False)
    ]
    return [
        Section(
            key="effects",
            title="The factors",
            lead=QUESTION,
            how_to_read="Dots are differences in mean return from the baseline's level (the dotted line); "
            "whiskers are 95 % intervals over seeds. Main effects are averaged over the levels of crossed factors. "
            f"Interactions, such as a{TIMES}b, are how much more a difference is at another level of the other factor. "
            "Percentages are shares of the variance of runs.",
            views=views,
            choice="Set",
        )
    ]


def _panel(effects: pd.DataFrame, shares: Mapping[str, str], name: str) -> Panel:
    import plotly.graph_objects as go  # heavy

    traces = []
    for index, (key, rows) in enumerate(effects.groupby("term", sort=False)):
        term = str(key)
        value, low, high = (rows[column] for column in ("value", "low", "high"))
        traces.append(
            go.Scatter(
                x=value.tolist(),
                y=[plain(effect_name(row)) for row in rows.to_dict("records")],
                mode="markers",
                name=plain(f"{term}: {shares[term]}" if term in shares else term),
                showlegend=True,
                marker={"color": series(index)[0], "size": 10},
                error_x={"array": (high - value).tolist(), "arrayminus": (value - low).tolist(), "thickness": 1.6},
                customdata=rows[["low", "high"]].to_numpy().tolist(),
                hovertemplate="%{y}: <b>%{x:.1f}</b>, %{customdata[0]:.1f} to %{customdata[1]:.1f}<extra></extra>",
            )
        )
    rest = [f"{term}: {shares[term]}" for term in (SEED_BLOCKS, RESIDUAL) if term in shares]
    figure = new_figure(traces, x=AXIS, height=180 + 26 * len(effects))
    figure.add_vline(x=0.0, line={"color": "#7a7f87", "width": 1.5, "dash": "dot"})
    figure.update_yaxes(autorange="reversed", type="category")
    return Panel(title=", ".join(rest), figure=figure, description=f"Effects of factors on mean returns on {name}.")
