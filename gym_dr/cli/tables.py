"""Prints the results of training and evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any

import click

from gym_dr.evaluation.regret import REGRET, WORST_REGRET, best_entry, impossible, why_no_regret
from gym_dr.evaluation.results import Evaluation, sampler_notes
from gym_dr.evaluation.statistics import ONE_TRAINING
from gym_dr.experiments.run import Run, Runs
from gym_dr.reports.table import Table
from gym_dr.wording import counted

_COLUMNS = {  # statistic -> heading
    "mean": "mean [95 % over episodes]",
    "median": "median",
    "iqm": "IQM",
    "std": "std",
    "cvar_25": "worst 25 %",
    "cvar_10": "worst 10 %",
    "success_rate": "solved",
}

_REGRET = {REGRET: "mean [95 % over episodes]", WORST_REGRET: "worst tenth of cells"}


def show_training(trained: Run | Runs) -> None:
    """Prints a line for each set of a run's evaluation, or a table over seeds."""
    if isinstance(trained, Runs):
        table = [["", "seeds", "mean", "95 % over seeds", "std", "IQM"]]
        for name, row in trained.summary.to_dict("index").items():
            mean, low, high, std, iqm = (
                "-" if math.isnan(row[key]) else f"{row[key]:.1f}"
                for key in ("mean", "mean_low", "mean_high", "std", "iqm")
            )
            interval = "-" if low == "-" else f"{low} to {high}"
            table.append([str(name), f"{row['seeds']:.0f}", mean, interval, std, iqm])
        show_table(table)
        click.echo(f"Run folders: {trained.path}/seed-*")
        return
    evaluation = trained.evaluation if trained.config.settings.eval_episodes else None
    for row in evaluation.document["results"] if evaluation else ():
        found = row["statistics"]
        solved = f", {found['success_rate']['value']:.0%} solved" if "success_rate" in found else ""
        mean, std = found["mean"]["value"], found["std"]["value"]
        spread = f"standard deviation {std:.1f} ({counted(row['episodes'], 'episode')}{solved})"
        click.echo(f"Evaluation on {row['set']:8} mean return {mean:.1f}, {spread}")
    click.echo(f"Run folder: {trained.path}")


def show_evaluation(evaluation: Evaluation) -> None:
    """Prints, for each set, statistics, worst cells, sensitivities and differences."""
    success = evaluation.document["success"]
    solved = "" if success is None else f", solved: a return of at least {success:g}"
    click.echo(f"{evaluation.document['env']}{solved}")
    for note in sampler_notes(evaluation.document):
        click.echo(note)
    for cells in evaluation.sets:
        each = f"{cells.num_cells:,} cells x " if cells.num_cells > 1 else ""
        click.echo(f"\n{cells.name}: {each}{counted(cells.episodes, 'episode')}")
        rows = [row for row in evaluation.document["results"] if row["set"] == cells.name]
        _show_statistics(rows)
        if (entry := best_entry(evaluation.document, cells.name)) is not None:
            _show_regret(rows, entry)
        elif evaluation.document.get("references"):
            click.echo(f"  no regret: {why_no_regret(cells)}")
        for row in rows:
            for line in _about_cells(row):
                click.echo(f"  {row['policy']}: {line}")
        reason = rows[0]["sensitivity"] and rows[0]["sensitivity"]["reason"]
        if reason:
            click.echo(f"  no sensitivity indices: {reason}")
        for row in rows:
            if row["sensitivity"] is not None and not reason:
                _show_sensitivity(row)
        differences = [row for row in evaluation.document["differences"] if row["set"] == cells.name]
        _show_differences(differences, evaluation.policies[0])
    click.echo(f"\n{ONE_TRAINING}")


def _show_statistics(rows: Sequence[Mapping[str, Any]]) -> None:
    names = [name for name in _COLUMNS if name in rows[0]["statistics"]]
    table = [["policy", *(_COLUMNS[name] for name in names)]]
    table += [[row["policy"], *(_cell(name, row["statistics"][name]) for name in names)] for row in rows]
    show_table(table)


def _show_regret(rows: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> None:
    """Prints the regret of each policy, and what the best known policy does not solve either."""
    names = [name for name in _REGRET if name in rows[0]["statistics"]]
    best = f"regret (best known: {_cell('mean', entry['mean'])})"
    table = [[best, *(_REGRET[name] for name in names)]]
    table += [[row["policy"], *(_cell(name, row["statistics"][name], always=True) for name in names)] for row in rows]
    show_table(table)
    for sentence in impossible(entry):
        click.echo(f"  {sentence}")


def _show_differences(rows: Sequence[Mapping[str, Any]], first: str) -> None:
    """Prints differences to the first policy only, since all pairs would be too many; the JSON file has them all."""
    against = [row for row in rows if row["policy"] == first]
    if not against:
        return
    names = [name for name in ("mean", "iqm", "cvar_10", "success_rate") if name in against[0]["statistics"]]
    table = [[f"{first} minus", *(_COLUMNS[name].partition(" [")[0] for name in names)]]
    table += [[row["other"], *(_cell(name, row["statistics"][name], always=True) for name in names)] for row in against]
    show_table(table)


def _cell(name: str, number: Mapping[str, float | None], always: bool = False) -> str:
    """A number, with its interval if there is room."""

    def form(value: float | None) -> str:
        text = f"{value:.0%}" if name == "success_rate" else f"{value:.1f}"
        return text if float(text.rstrip("%")) else text.lstrip("-")  # no "-0"

    text = form(number["value"])
    if number["low"] is None or not (always or name in ("mean", "success_rate")):
        return text
    return f"{text} [{form(number['low'])}, {form(number['high'])}]"


def _about_cells(row: Mapping[str, Any]) -> list[str]:
    lines = []
    worst, near = row["worst_cell"], row["least_perturbation"]
    if worst is not None:
        text = f"worst mean {_cell('mean', worst['mean'])} at {_values(worst['params'])}"
        chosen = f"{worst['first_mean']:.1f} when it was chosen"
        lines.append(f"{text} ({worst['episodes']} fresh episodes; {chosen})")
    if near is not None and near["cell"] is not None:
        lines.append(
            f"nearest failure {near['distance']:.0%} of the range from nominal, {near['success_rate']:.0%} solved at "
            f"{_values(near['params'])}"
        )
    elif near is not None:
        lines.append(f"nearest failure: {near['reason']}")
    return lines


def _show_sensitivity(row: Mapping[str, Any]) -> None:
    """Prints Sobol indices; estimates of no effect are below 0 half of the time, with 0 in their intervals."""
    found = row["sensitivity"]
    table = [[f"{row['policy']}: variance explained by", "alone", "with interactions"]]
    shares = zip(found["parameters"], found["first_order"], found["total"], strict=True)
    table += [[f"  {name}", _share(first), _share(total)] for name, first, total in shares]
    if found["noise"] is not None:
        table.append(["  no parameter (noise)", f"{min(found['noise'], 1.0):.0%}", ""])
    show_table(table)
    if found["noise"] is not None and found["noise"] > 0.5:
        click.echo("  most of the variance is noise: use more --episodes or more points")


def _share(number: Mapping[str, float | None]) -> str:
    return "unknown" if number["value"] is None else _cell("success_rate", number)


def _values(params: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in params.items())


def show_table(table: Sequence[Sequence[str]]) -> None:
    """Prints a table whose first row has the heads, indented."""
    click.echo(indent(str(Table(columns=table[0], rows=table[1:])), "  "))
