"""Tables and findings of a report."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gym_dr.envs.family import UNLIMITED, difference_limits
from gym_dr.errors import exact_text
from gym_dr.evaluation.results import sampler_notes
from gym_dr.evaluation.statistics import ONE_TRAINING, Interval, mean_over_seeds, means_with_intervals
from gym_dr.evaluation.tables import (
    SetResults,
    failure_table,
    interval_cell,
    regret_tables,
    reward_tables,
    statistics_table,
)
from gym_dr.reports.comparison import Comparison, Group
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import source_of
from gym_dr.table import Cell, Row, Table

NOTE = (
    "Small numbers are 95 % intervals over a policy's episodes. IQM: interquartile mean, of the middle half "
    "of the episodes. SD: standard deviation. Worst 25 % and 10 %: mean return of the worst 25 % and 10 % of the "
    "episodes (CVaR). Cells of a distribution follow a Sobol sequence, which "
    "covers it more evenly than random draws. "
) + ONE_TRAINING
ORDERS = {"first_order": "alone", "total": "with interactions"}
SHARE = (0.0, 1.0)
SMALL = "Small numbers are 95 % intervals over seeds (Student's t), or over the episodes of a single policy."


def sets_table(comparison: Comparison) -> Table:
    """Mean returns and shares of solved episodes: a row for each set, a column for each group."""
    groups = range(len(comparison.groups))
    rows: list[Row] = [
        [comparison.label(name), *(_mean_and_success(comparison, group, name) for group in groups)]
        for name in comparison.sets
    ]
    columns = ["", *(group.name for group in comparison.groups)]
    return Table(caption="Mean return on each set", columns=columns, rows=rows, notes=[SMALL])


def terms_of_rewards(comparison: Comparison) -> list[Table]:
    """For each group a table with the terms of its reward on each set, pooled over its runs; none without terms."""
    sets = []
    for name in comparison.sets:
        results = [
            {"policy": group.name, "reward_terms": {term: over_runs([run[term] for run in runs]) for term in runs[0]}}
            for index, group in enumerate(comparison.groups)
            for runs in [[result.get("reward_terms", {}) for result in comparison.results(index, name)]]
        ]
        sets.append(dataclasses.replace(results_on(comparison, name), results=results))
    return reward_tables(sets)


def _mean_and_success(comparison: Comparison, group: int, set_name: str) -> Cell:
    value, interval = interval_cell(pooled(comparison, group, set_name, "mean"))
    if comparison.document["success"] is None:
        return Cell(value, interval)
    solved = interval_cell(pooled(comparison, group, set_name, "success_rate"), percent=True)
    return Cell(value, f"{interval}\n{solved.value} solved".strip())


def pooled(comparison: Comparison, group: int, set_name: str, statistic: str) -> Interval:
    """A statistic of a group on a set; see ``over_runs``."""
    limits = SHARE if statistic == "success_rate" else comparison.limits
    return over_runs([result["statistics"][statistic] for result in comparison.results(group, set_name)], limits)


def over_runs(found: Sequence[Interval], within: tuple[float, float] = UNLIMITED) -> Interval:
    """One number for several runs: the mean over seeds with its interval, or that of a single run as it is."""
    known = np.array([one["value"] for one in found if one["value"] is not None])
    return mean_over_seeds(known, within)[0] if len(found) > 1 and len(known) else found[0]


def indices(comparison: Comparison, group: int, set_name: str) -> dict[str, list[Interval]]:
    """Sobol indices of a group on a set, over its runs: parameter -> alone, with interactions; empty if unknown."""
    found = [shares for result in comparison.results(group, set_name) if (shares := result["sensitivity"])]
    names = found[0]["parameters"] if found else ()
    return {
        name: [over_runs([one[order][i] for one in found], SHARE) for order in ORDERS] for i, name in enumerate(names)
    }


def results_on(comparison: Comparison, set_name: str, *, weakest: bool = False) -> SetResults:
    """The results of the runs of all groups on a set; ``weakest`` leaves each group's run with the worst cell."""
    groups = [comparison.results(group, set_name) for group in range(len(comparison.groups))]
    if weakest:
        groups = [[min(results, key=lambda result: result["worst_cell"]["mean"]["value"])] for results in groups]
    return SetResults(
        cells=comparison.cells(set_name),
        label=comparison.label(set_name),
        place=comparison.place(set_name),
        results=[result for results in groups for result in results],
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
    """States the findings of an evaluation: differences from the first policy, on the main sets first."""
    sets = sorted(comparison.sets, key=comparison.rank)
    others = range(1, len(comparison.groups))
    differences = [_comparison(comparison, others, name) for name in sets] if others else []
    levels = [_level(comparison, group) for group in range(len(comparison.groups))]
    single = differences and any(len(group.policies) == 1 for group in comparison.groups)
    return [*differences, *levels, *([ONE_TRAINING] if single else [])]


def difference(comparison: Comparison, first: int, second: int, set_name: str) -> Interval:
    """Mean return of one group minus that of another.

    The interval is over seeds if both have several, so that it holds for other seeds, and over episodes for two single
    policies.
    """
    rows, over = comparison.differences(first, second, set_name)
    within = difference_limits(comparison.document["env"])
    if over == "episodes":
        return means_with_intervals(rows, comparison.cells(set_name), within)[0]
    return mean_over_seeds(rows.mean(axis=1), within)[0]  # a single row has no interval


def _comparison(comparison: Comparison, groups: Sequence[int], set_name: str) -> str:
    """How much more groups return than the first, on one set."""
    parts: list[str] = []
    for group in groups:
        found, over = difference(comparison, group, 0, set_name), comparison.differences(group, 0, set_name)[1]
        value, low, high = found["value"], found["low"], found["high"]
        text = f"{comparison.groups[group].quoted} achieves {abs(value):.1f} {'more' if value >= 0 else 'less'}"
        text += "" if parts else f" than {comparison.groups[0].quoted}"
        if low is None or high is None:
            parts.append(f"{text} (too few {over or 'seeds'} for an interval)")
        else:
            chance = ", which may be chance" if low <= 0 <= high else ""
            parts.append(f"{text}{chance} (95 % interval of the difference over {over} {low:.1f} to {high:.1f})")
    return f"{comparison.place(set_name)}, {'; '.join(parts)}."


def _level(comparison: Comparison, group: int) -> str:
    """A policy's mean return, and the parameter that it depends on most."""
    name, set_name = comparison.groups[group].quoted, comparison.main_set(group)
    results = comparison.results(group, set_name)
    mean = interval_cell(pooled(comparison, group, set_name, "mean"))
    text = f"{comparison.place(set_name)}, {name} achieves {mean.value} on average"
    over = "seeds" if len(results) > 1 else "episodes"
    text += f" (95 % interval over {over} {mean.detail})" if mean.detail else ""
    if "success_rate" in results[0]["statistics"]:
        text += f" and solves {interval_cell(pooled(comparison, group, set_name, 'success_rate'), percent=True).value} "
        text += "of the episodes"
    order = int(comparison.cells(set_name).episodes > 1)  # without the noise of cells, total indices include it
    shares = {name: found[order] for name, found in indices(comparison, group, set_name).items()}
    return f"{text}; {_most_important(shares)}." if shares else f"{text}."


def _most_important(shares: Mapping[str, Interval]) -> str:
    """Says on which parameter the return depends most, if its index is surely above 0."""
    most = max(shares, key=lambda name: shares[name]["value"] or 0.0)
    sure = (shares[most]["low"] or 0.0) > 0.0
    return f"its return depends most on {most}" if sure else "no parameter has a significant effect"


def sensitivity_tables(comparison: Comparison) -> list[Table]:
    """Sobol indices on each set: a row for each parameter, two columns for each group."""
    note = (
        "Shares of the variance of a cell's mean return that the parameter explains, alone and with its interactions. "
        "If an interval includes 0, the effect may be chance. Estimates are not rounded up to 0: those of a parameter "
        "without effect are slightly negative half of the time. A parameter that needs a switch has the shares of the "
        "variance between points where it is on."
    )
    columns = ["", *(f"{group.name}, {order}" for group in comparison.groups for order in ORDERS.values())]
    tables = []
    for name in comparison.sets:
        groups = [indices(comparison, group, name) for group in range(len(comparison.groups))]
        rows: list[Row] = [
            [param, *(interval_cell(share, percent=True) for of in groups for share in of[param])]
            for param in groups[0]
        ]
        place = comparison.place(name)
        caption = f"Which parameters matter, {place[0].lower()}{place[1:]}"
        tables += [Table(caption=caption, columns=columns, rows=rows, notes=[note])] if rows else []
    return tables


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
    """A table of worst cells and nearest failures for each main set with cells: of each group's weakest run."""
    note = (
        "Of several seeds, the weakest run is shown. The worst cell is chosen by its mean return and then played again "
        "with fresh seeds. Nearest failure: the cell nearest to nominal where it fails. Its distance is that of "
        "the parameter that changes most, as a share of the parameter's range."
    )
    shown = [results_on(comparison, name, weakest=True) for name in _sets_of_cells(comparison)]
    tables = [failure_table(one, f"What breaks it, {one.place[0].lower()}{one.place[1:]}") for one in shown]
    return [dataclasses.replace(table, notes=[note]) for table in tables]


def _sets_of_cells(comparison: Comparison) -> list[str]:
    return [name for name in comparison.main_sets if comparison.cells(name).num_cells > 1]


def watch_commands(comparison: Comparison) -> list[tuple[str, str]]:
    """Commands that play the weakest run of each group in its worst cells."""
    found = []
    folders = {p.name: str(p.run.folder.path) for group in comparison.groups for p in group.policies if p.run}
    # the source of an environment of your own, to be named since its code would run
    trust = ["--trust", source] if (source := source_of(comparison.document["env"])) else []
    for one in [results_on(comparison, name, weakest=True) for name in _sets_of_cells(comparison)]:
        for result in [result for result in one.results if result["policy"] in folders]:
            sets = [
                word
                for name, value in result["worst_cell"]["params"].items()
                for word in ("--set", f"{name}={_short(comparison, name, value)}")
            ]
            what = f"Watch '{result['policy']}' in its worst cell {one.place[0].lower()}{one.place[1:]}"
            found.append((what, shlex.join(["gymdr", "play", folders[result["policy"]], *trust, *sets])))
    return found


def _short(comparison: Comparison, parameter: str, value: float) -> str:
    """Six digits of a value, within the parameter's bounds."""
    known = comparison.document["parameters"][parameter]
    low, high = known["low"] or -math.inf, known["high"] or math.inf  # no rounding passes 0; None: no bound
    return exact_text(min(max(float(f"{value:.6g}"), low), high))


def config_diff(groups: Sequence[Group]) -> list[Table]:
    """A table with a row for each setting that differs between configurations, and a column for each configuration.

    Returns:
        One table, or none for a single configuration.
    """
    configs = {group.name: group.runs[0].config for group in groups if group.runs}
    forms = [_settings(config) for config in configs.values()]
    names = dict.fromkeys(name for form in forms for name in form if name != "seed")
    rows = [[name, *(str(form.get(name, "none")) for form in forms)] for name in names]
    rows = [row for row in rows if len({*row[1:]}) > 1]
    table = Table(caption="What differs between the policies", columns=["Setting", *configs], rows=rows)
    return [table] if rows else []


def _settings(config: RunConfig) -> dict[str, Any]:
    """Name -> value of every setting and option and of every draw."""
    parts = [config.settings, config.options, config.sampler_options]
    draws = {f"draws of {name}": rule for name, rule in (config.randomization or {}).items()}
    return {"algorithm": config.algorithm, **{k: v for part in parts if part for k, v in vars(part).items()}, **draws}
