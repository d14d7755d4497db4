"""Assembles the report of a tuning, from Optuna's own plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gym_dr.evaluation.report.page import Panel, Report, Section, View, versions_of
from gym_dr.evaluation.report.style import HEIGHT
from gym_dr.reports.table import Table

if TYPE_CHECKING:
    import optuna
    import pandas as pd

ENOUGH = 10  # complete trials, for importances
SECTIONS = {  # plot of Optuna -> title, lead, how to read it
    "optimization_history": ("Progress", "What complete trials returned.", "The best of many values is partly luck."),
    "param_importances": (
        "Which options matter",
        "The share of each option in whether a trial is among the best tenth (PED-ANOVA, Watanabe et al. 2023).",
        "With less than about 50 trials, shares are rough.",
    ),
    "slice": (
        "One option at a time",
        "What complete trials returned over each option.",
        "Darker points are later trials. If the best are at an end of a range, better values may be beyond it.",
    ),
    "parallel_coordinate": ("All options", "A line is a complete trial.", "Darker lines returned more."),
    "intermediate_values": (
        "During training",
        "Mean return of the last 100 training episodes, ten times in each run; a trial's runs follow each other.",
        "A line that ends early is a trial that was pruned or failed.",
    ),
}


def tuning_report(
    study: optuna.Study, trials: pd.DataFrame, title: str, texts: Sequence[str], train: str, command: str
) -> Report:
    """Collects the content of a page.

    Args:
        study: Optuna's study, with at least one complete trial.
        trials: A row for each trial, as in ``trials.csv``.
        title: Title of the page.
        texts: What was found, and facts about the search.
        train: The command that trains with what was found.
        command: The command that made it; empty if it was made from Python.
    """
    ordered = trials.sort_values("value", ascending=False, kind="stable").astype(object)
    cells = [[f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in row] for row in ordered.to_numpy()]
    rows = [["" if cell == "nan" else cell for cell in row] for row in cells]
    few = [] if (trials["state"] == "complete").sum() >= ENOUGH else ["param_importances"]
    return Report(
        title=title,
        facts=texts[1:],
        findings=texts[:1],
        tables=[Table(caption="Trials", columns=list(map(str, ordered.columns)), rows=rows)],
        sections=[_section(study, name, *about) for name, about in SECTIONS.items() if name not in few],
        **dict.fromkeys(["film_strips", "film_strip_notes", "provenance"], ()),
        command=command,
        versions=versions_of(["gym-dr", "gymnasium", "numpy", "optuna", "plotly"]),
        next_commands=[("Train with the best options, on a seed on which they were not chosen", train)],
    )


def _section(study: optuna.Study, name: str, title: str, lead: str, note: str) -> Section:
    """A plot of Optuna without its title and colors, which the page has; or one for each option."""
    import plotly.graph_objects as go  # heavy
    from optuna import visualization

    plot, options = getattr(visualization, f"plot_{name}"), list(study.best_trial.params)
    called: list[dict[str, Any]] = [{"params": [one]} for one in options] if name == "slice" else [{}]
    shown = {} if name == "intermediate_values" else {"target_name": "Mean return"}
    panels = []
    for choice in called:
        figure = plot(study, **shown, **choice)
        layout = figure.layout.to_plotly_json() | {"title": None, "template": {}, "height": HEIGHT}
        layout["margin"] = {"l": 10, "r": 10, "t": 60, "b": 10}
        panels.append(Panel(title="", figure=go.Figure(data=figure.data, layout=layout), description=lead))
    return Section(key=name, title=title, lead=lead, how_to_read=note, views=[View(panels=panels)])
