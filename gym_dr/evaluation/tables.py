"""The tables of an evaluation, for the terminal, notebooks and reports."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gym_dr.errors import counted
from gym_dr.evaluation.failures import REGRET, impossible, why_no_regret
from gym_dr.evaluation.sets import CellSet
from gym_dr.table import Cell, Row, Table

STATISTICS = {  # name in evaluation.json -> heading
    "mean": "mean return",
    "median": "median",
    "iqm": "IQM",
    "std": "SD",
    "cvar_25": "worst 25 %",
    "cvar_10": "worst 10 %",
    "success_rate": "success",
}
BRIEF = ("mean", "success_rate")  # statistics with intervals where there is little room


@dataclass(frozen=True, kw_only=True)
class SetResults:
    """The results of some policies on a set."""

    cells: CellSet
    label: str  # in the head of a column
    place: str  # at the beginning of a sentence
    results: Sequence[Mapping[str, Any]]  # of each policy

    @property
    def size(self) -> str:
        """The number of cells and episodes."""
        count = f"{self.cells.num_cells:,} cells of " if self.cells.num_cells > 1 else ""
        return f"{count}{counted(self.cells.episodes, 'episode')}"


def evaluation_tables(document: Mapping[str, Any], all_sets: Sequence[CellSet]) -> list[Table]:
    """The tables of ``evaluation.json`` as far as they fit into a terminal."""
    sets = [
        SetResults(
            cells=cells,
            label=cells.name,
            place=f"On {cells.name}",
            results=[result for result in document["results"] if result["set"] == cells.name],
        )
        for cells in all_sets
    ]
    several = [one for one in sets if one.cells.num_cells > 1]
    return [
        *(statistics_table(one, f"{one.label}: {one.size}", brief=True) for one in sets),
        *reward_tables(sets),
        *differences_to_first(document, sets),
        *regret_tables(document, sets),
        *(failure_table(one, f"{one.label}: what breaks a policy") for one in several),
        *(table for one in several for table in sensitivity_tables(one)),
    ]


def statistics_table(one: SetResults, caption: str, *, brief: bool) -> Table:
    """A row for each policy, with the statistics of its returns."""
    columns = [key for key in STATISTICS if key in one.results[0]["statistics"]]
    rows: list[Row] = []
    for result in one.results:
        shown = {key: interval_cell(result["statistics"][key], percent=key == "success_rate") for key in columns}
        rows.append([result["policy"], *(c.value if brief and key not in BRIEF else c for key, c in shown.items())])
    reason = one.results[0]["sensitivity"] and one.results[0]["sensitivity"]["reason"]
    notes = [f"There are no sensitivity indices: {reason}."] if reason else []
    return Table(caption=caption, columns=["policy", *(STATISTICS[key] for key in columns)], rows=rows, notes=notes)


def reward_tables(sets: Sequence[SetResults]) -> list[Table]:
    """For each policy a table with the mean sum of each term of the reward on each set; none without terms."""
    return [
        Table(
            caption=f"Terms of the reward, mean sum over an episode of {results[0]['policy']}",
            columns=["", *(one.label for one in sets)],
            rows=[
                [term, *(interval_cell(result["reward_terms"][term], exact=True) for result in results)]
                for term in terms
            ],
        )
        for results in zip(*(one.results for one in sets), strict=True)
        if (terms := results[0].get("reward_terms"))
    ]


def differences_to_first(document: Mapping[str, Any], sets: Sequence[SetResults]) -> list[Table]:
    """How much more the first policy returns than each other policy, on the same draws and episodes."""
    first = document["policies"][0]["name"]
    rows: dict[str, list[str | Cell]] = {}
    for one in sets:
        for entry in document["differences"]:
            if entry["set"] == one.cells.name and entry["policy"] == first:
                row = rows.setdefault(entry["other"], [f"{first} minus {entry['other']}"])
                row.append(interval_cell(entry["statistics"]["mean"], signed=True))
    columns = ["", *(one.label for one in sets)]
    return [Table(caption="Differences of mean return", columns=columns, rows=list(rows.values()))] if rows else []


def regret_tables(document: Mapping[str, Any], sets: Sequence[SetResults]) -> list[Table]:
    """A table with the regret of each policy on each set; none without references."""
    if not document.get("references"):
        return []
    columns, notes = ["policy"], []
    rows: list[list[str | Cell]] = [["return of the best known"], *([r["policy"]] for r in sets[0].results)]
    for one in sets:
        entry = next((entry for entry in document["best_known"] if entry["set"] == one.cells.name), None)
        if entry is None:
            notes.append(f"{one.place}, there is no regret: {why_no_regret(one.cells)}.")
            continue
        if sentences := impossible(entry):
            notes.append(f"{one.place}: {' '.join(sentences)}")
        columns.append(one.label)
        for row, found in zip(rows, [entry["mean"], *(r["statistics"][REGRET] for r in one.results)], strict=True):
            row.append(interval_cell(found))
    return [Table(caption="Regret", columns=columns, rows=rows if len(columns) > 1 else [], notes=notes)]


def failure_table(one: SetResults, caption: str) -> Table:
    """The worst cell of each policy, and the cell nearest to nominal in which it fails."""
    rows: list[Row] = []
    for result in one.results:
        worst, least = result["worst_cell"], result["least_perturbation"]
        near = Cell(
            f"{least['distance']:.0%} of the range" if least["found"] else "none found",
            _values(least["params"]) if least["params"] else least["reason"],
        )
        first = f"{_values(worst['params'])};\n{number(worst['first_mean'])} when it was chosen"
        rows.append([result["policy"], Cell(number(worst["mean"]["value"]), first), near])
    return Table(caption=caption, columns=["policy", "worst cell, mean return", "nearest failure"], rows=rows)


def sensitivity_tables(one: SetResults) -> list[Table]:
    """How much of the variance of each policy's returns parameters explain; estimates of no effect may be below 0."""
    tables = []
    for result in one.results:
        found = result["sensitivity"]
        if found is None or found["reason"]:
            continue
        shares = zip(found["parameters"], found["first_order"], found["total"], strict=True)
        rows: list[Row] = [
            [name, *(interval_cell(share, percent=True) for share in orders)] for name, *orders in shares
        ]
        if found["noise"] is not None:
            rows.append(["no parameter (noise)", f"{min(found['noise'], 1.0):.0%}", ""])
        noisy = found["noise"] is not None and found["noise"] > 0.5
        notes = ["Most of the variance is noise: play more episodes or more points."] if noisy else []
        caption = f"{one.label}: variance of {result['policy']} that parameters explain"
        tables.append(Table(caption=caption, columns=["", "alone", "with interactions"], rows=rows, notes=notes))
    return tables


def interval_cell(
    found: Mapping[str, float | None], *, percent: bool = False, signed: bool = False, exact: bool = False
) -> Cell:
    """A number with its interval, if it has one; three digits of small ones if ``exact``."""

    def text(value: float) -> str:
        small = f"{value:z.3g}" if exact and abs(value) < 99.95 else number(value, signed=signed)
        return f"{value:z.0%}" if percent else small

    value, low, high = found["value"], found["low"], found["high"]
    if value is None:
        return Cell("unknown")
    return Cell(text(value), "" if low is None or high is None else f"{text(low)} to {text(high)}")


def number(value: float, *, signed: bool = False) -> str:
    """One decimal below 100, none above."""
    return f"{value:{'+' if signed else ''}z.{1 if abs(value) < 99.95 else 0}f}"


def _values(params: Mapping[str, float]) -> str:
    return textwrap.fill(", ".join(f"{name} {value:.3g}" for name, value in params.items()), 48)
