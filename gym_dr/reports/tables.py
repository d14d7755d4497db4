"""Tables and findings of a report."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gym_dr.evaluation.paired import mean_over_seeds
from gym_dr.evaluation.results import sampler_notes
from gym_dr.evaluation.statistics import CONFIDENCE, ONE_TRAINING, Interval, means_with_intervals
from gym_dr.evaluation.tables import SetResults, failure_table, interval_cell, regret_tables, statistics_table
from gym_dr.reports.comparison import Comparison, Group
from gym_dr.runs.config import RunConfig
from gym_dr.table import Row, Table
from gym_dr.wording import exact_text

NOTE = (
    "Small numbers are 95% intervals over a policy's episodes. IQM: interquartile mean, of the middle half "
    "of the episodes. SD: standard deviation. Worst 25 % and 10 %: mean return of the worst 25 % and 10 % of the "
    "episodes (CVaR). Cells of a distribution follow a Sobol sequence, which "
    "covers it more evenly than random draws. "
) + ONE_TRAINING


def results_on(comparison: Comparison, set_name: str) -> SetResults:
    """The results of the runs of all groups on a set."""
    groups = range(len(comparison.groups))
    return SetResults(
        cells=comparison.cells(set_name),
        label=comparison.label(set_name),
        place=comparison.place(set_name),
        results=[result for group in groups for result in comparison.results(group, set_name)],
    )


def summary_tables(comparison: Comparison) -> list[Table]:
    """A table for each set, with a row for each run."""
    tables = []
    for name in comparison.sets:
        one = results_on(comparison, name)
        table = statistics_table(one, f"{one.place}: {one.size}", brief=False)
        notes = [NOTE, *sampler_notes(comparison.document)] if name == comparison.sets[-1] else []
        tables.append(dataclasses.replace(table, notes=[*table.notes, *notes]))
    return tables


def findings(comparison: Comparison) -> list[str]:
    """States the findings of an evaluation, differences between policies first."""
    nominal = {"nominal"} & set(comparison.sets)
    differences = [
        _comparison(comparison, first, 0, name)
        for first in range(1, len(comparison.groups))
        for name in dict.fromkeys([comparison.main_set(first), comparison.main_set(0), *nominal])
    ]
    levels = [_level(comparison, group) for group in range(len(comparison.groups))]
    return [*differences, *([ONE_TRAINING] if differences else []), *levels]


def difference(comparison: Comparison, first: int, second: int, set_name: str) -> Interval:
    """Mean return of one group minus that of another.

    The interval is over seeds if both have several, so that it holds for other seeds, and over episodes for two single
    policies.
    """
    rows, over = comparison.differences(first, second, set_name)
    if over == "episodes":
        return means_with_intervals(rows, comparison.cells(set_name))[0]
    return mean_over_seeds(rows.mean(axis=1))[0]  # a single row has no interval


def _over(comparison: Comparison, first: int, second: int) -> str:
    """What the interval of a difference is over: seeds or episodes."""
    return "seeds" if min(len(comparison.entries(g)) for g in (first, second)) > 1 else "episodes"


def _comparison(comparison: Comparison, first: int, second: int, set_name: str) -> str:
    found, over = difference(comparison, first, second, set_name), _over(comparison, first, second)
    value, low, high = found["value"], found["low"], found["high"]
    a, b = (comparison.groups[g].name for g in (first, second))
    place = comparison.place(set_name)
    text = f"{place}, {a} returns {abs(value):.1f} {'more' if value >= 0 else 'less'} than {b} on average"
    if low is None:
        return f"{text}; there are too few seeds or episodes for an interval."
    if low <= 0 <= high:
        return (
            f"{place}, there is no significant difference between {a} and {b}: their mean returns differ by "
            f"{value:.1f} (95% interval over {over} {low:.1f} to {high:.1f})."
        )
    ends = sorted((abs(low), abs(high)))
    return f"{text} (95% interval over {over} {ends[0]:.1f} to {ends[1]:.1f})."


def _level(comparison: Comparison, group: int) -> str:
    """A policy's mean return, and the parameter that it depends on most."""
    name = comparison.groups[group].name
    place = comparison.place(comparison.main_set(group))
    results = comparison.results(group, comparison.main_set(group))
    mean = np.mean([result["statistics"]["mean"]["value"] for result in results])
    text = f"{place}, {name} returns {mean:.1f} on average"
    if "success_rate" in results[0]["statistics"]:
        solved = np.mean([result["statistics"]["success_rate"]["value"] for result in results])
        text += f" and succeeds in {solved:.0%} of episodes"
    if sensitive := [r["sensitivity"] for r in results if r["sensitivity"] and r["sensitivity"]["total"]]:
        text += f"; {_most_important(sensitive)}"
    return f"{text}."


def _most_important(found: Sequence[Mapping[str, Any]]) -> str:
    """Says on which parameter the return depends most, if the lower ends of its indices are above 0 on average."""
    # without the noise of cells, total indices include it
    order = "first_order" if any(one["noise"] is None for one in found) else "total"
    numbers = [[(item["value"] or 0.0, item["low"] or 0.0) for item in one[order]] for one in found]
    values, lows = np.mean(numbers, axis=0).T
    most = int(np.argmax(values))
    if lows[most] <= 0.0:
        return "no parameter shows an effect beyond chance"
    return f"its return depends most on {found[0]['parameters'][most]}"


def difference_tables(comparison: Comparison) -> list[Table]:
    """A table with a row for each pair of policies, or none for a single policy."""
    if not comparison.group_pairs:
        return []
    rows: list[Row] = []
    for first, second in comparison.group_pairs:
        cells = [interval_cell(difference(comparison, first, second, name), signed=True) for name in comparison.sets]
        rows.append([f"{comparison.groups[first].name} minus {comparison.groups[second].name}", *cells])
    note = (
        "All policies play the same draws and episode seeds. If an interval includes 0, either policy may be better; "
        f"where policies do not differ, about one in {round(1 / (1 - CONFIDENCE))} excludes it by chance. A study "
        "corrects for their number. Between policies with several seeds, intervals are over seeds, of "
        f"differences between runs with the same seed. {ONE_TRAINING}"
    )
    columns = ["", *(comparison.label(name) for name in comparison.sets)]
    return [Table(caption="Differences of mean return", columns=columns, rows=rows, notes=[note])]


def regret_table(comparison: Comparison) -> list[Table]:
    """A table with the regret of each policy on each set; none without references."""
    note = (
        "Regret: how much more the best known policy returns on the same draws and episode seeds. The best of all "
        f"policies, the references ({', '.join(comparison.document['references'])}) included, is chosen on one half of "
        "the episodes and takes its return from the other half, for each cell, or for all draws where each has one "
        "episode. With few episodes the choice is not always the best, and regret is too low rather than too high."
    )
    found = regret_tables(comparison.document, [results_on(comparison, name) for name in comparison.sets])
    return [dataclasses.replace(table, notes=[note, *table.notes]) for table in found]


def failure_tables(comparison: Comparison) -> list[Table]:
    """A table of worst cells and nearest failures for each main set with cells."""
    note = (
        "The worst cell is chosen by its mean return and then played again with fresh seeds. Nearest failure: the "
        "cell nearest to nominal where the policy fails. Its distance is that of the parameter that changes most, as a "
        "share of the parameter's range."
    )
    shown = [results_on(comparison, name) for name in comparison.main_sets if comparison.cells(name).num_cells > 1]
    tables = [failure_table(one, f"What breaks it, {one.place[0].lower()}{one.place[1:]}") for one in shown]
    return [dataclasses.replace(table, notes=[note]) for table in tables]


def watch_commands(comparison: Comparison) -> list[tuple[str, str]]:
    """Commands that play each run in its worst cells."""
    found = []
    for name in comparison.main_sets:
        place = comparison.place(name)
        for index, group in enumerate(comparison.groups if comparison.cells(name).num_cells > 1 else ()):
            for run, result in zip(group.runs, comparison.results(index, name), strict=False):
                values = [f"{param}={exact_text(value)}" for param, value in result["worst_cell"]["params"].items()]
                sets = [word for value in values for word in ("--set", value)]
                what = f"Watch {result['policy']} in its worst cell {place[0].lower()}{place[1:]}"
                found.append((what, shlex.join(["gymdr", "play", str(run.folder.path), *sets])))
    return found


def config_diff(groups: Sequence[Group]) -> list[Table]:
    """A table with a row for each setting that differs between configurations, and a column for each configuration.

    Returns:
        One table, or none for a single configuration.
    """
    trained = [group for group in groups if group.runs]
    if len(trained) < 2:
        return []
    configs = [group.runs[0].config for group in trained]
    one_algorithm = len({config.algorithm for config in configs}) == 1
    settings = [_settings(config, with_options=one_algorithm) for config in configs]
    names = dict.fromkeys(name for values in settings for name in values)
    table = {name: [values.get(name, "none") for values in settings] for name in names}
    rows = [[name, *row] for name, row in table.items() if len(set(row)) > 1]
    notes = [] if one_algorithm else ["The algorithms' settings are at the end of the page."]
    columns = ["Setting", *(group.name for group in trained)]
    return [Table(caption="What differs between the policies", columns=columns, rows=rows, notes=notes)]


def _settings(config: RunConfig, *, with_options: bool) -> dict[str, str]:
    """Name -> value of every setting but the seed, with the algorithm's options if wanted, and of every draw."""
    form = config.to_dict()
    options, of_sampler = form.pop(config.algorithm), form.pop(config.settings.sampler, {})
    del form["seed"], form["randomization"]
    rules = () if config.randomization is None else config.randomization.rules
    draws = {f"draws of {name}": rule for name, rule in rules}
    known = {**form, **of_sampler, **(options if with_options else {}), **draws}
    return {name: _text(value) for name, value in known.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
