"""Tables and findings of a report."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.evaluation.captions import exact_text
from gym_dr.evaluation.regret import REGRET, WORST_REGRET, best_entry, impossible, why_no_regret
from gym_dr.evaluation.report.comparison import Comparison, Group, without_runs
from gym_dr.evaluation.results import sampler_notes
from gym_dr.evaluation.statistics import CONFIDENCE, NO_SPREAD, ONE_TRAINING, Interval
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.context import OBSERVATION
from gym_dr.reports.table import Cell, Row, Table
from gym_dr.runs.config import RunConfig
from gym_dr.wording import counted

STATISTICS = {  # name in evaluation.json -> heading
    "mean": "Mean return",
    "median": "Median",
    "iqm": "IQM",
    "std": "SD",
    "cvar_25": "Worst 25%",
    "cvar_10": "Worst 10%",
    "success_rate": "Success",
}
NOTE = (
    "Small numbers are 95% bootstrap intervals over a policy's episodes. IQM: interquartile mean, of the middle half "
    "of the episodes. SD: standard deviation. Worst 25% and 10%: mean return of the worst 25% and 10% of the episodes "
    "(CVaR). Worst cell: the setting of the parameters with the lowest mean return; the number is over fresh episodes "
    "of it, since the lowest of many noisy means is too low. Cells of a distribution follow a Sobol sequence, which "
    "covers it more evenly than random draws. "
) + ONE_TRAINING


def summary_tables(comparison: Comparison) -> list[Table]:
    """A table for each set, with a row for each run."""
    tables = []
    for name in comparison.sets:
        results = _results(comparison, name)
        columns = [key for key in STATISTICS if key in results[0]["statistics"]]
        cells = comparison.cells(name).num_cells > 1
        heads = ["Policy", *(STATISTICS[key] for key in columns), *(["Worst cell"] if cells else []), "Worst episode"]
        rows = []
        for result in results:
            row = [_cell(result["statistics"][key], percent=key == "success_rate") for key in columns]
            if cells:
                row.append(_cell(result["worst_cell"]["mean"]))
            rows.append([result["policy"], *row, _number(result["min"])])
        reason = results[0]["sensitivity"] and results[0]["sensitivity"]["reason"]
        notes = [f"There are no sensitivity indices: {reason}."] if reason else []
        notes += [NOTE, *sampler_notes(comparison.document)] if name == comparison.sets[-1] else []
        tables.append(Table(caption=_caption(comparison, name), columns=heads, rows=rows, notes=notes))
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
    return [*differences, *one_training(comparison), *levels]


def difference(comparison: Comparison, first: int, second: int, set_name: str) -> Interval:
    """Mean return of one group minus that of another.

    For single runs this is the evaluation's paired difference over episodes. For several seeds it compares the seeds'
    means (Welch's t interval), so that the finding holds for other seeds.
    """
    names = [entry["name"] for g in (first, second) for entry in comparison.entries(g)]
    for entry in comparison.document["differences"]:
        if entry["set"] == set_name and sorted(names) == sorted([entry["policy"], entry["other"]]):
            found: Interval = entry["statistics"]["mean"]
            if entry["policy"] == names[0]:
                return found
            mirror = {"value": "value", "low": "high", "high": "low"}
            return {end: None if found[other] is None else 0.0 - found[other] for end, other in mirror.items()}
    a, b = (comparison.returns(g, set_name).mean(axis=1) for g in (first, second))
    value = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2 or np.ptp(a) == np.ptp(b) == 0:
        return {"value": value, "low": None, "high": None}
    from scipy import stats  # heavy

    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(CONFIDENCE)
    return {"value": value, "low": float(interval.low), "high": float(interval.high)}


def _results(comparison: Comparison, set_name: str) -> list[dict[str, Any]]:
    """The results of the runs of all groups on a set."""
    return [result for g in range(len(comparison.groups)) for result in comparison.results(g, set_name)]


def _over(comparison: Comparison, first: int, second: int) -> str:
    """What the interval of a difference is over."""
    return "seeds" if min(len(comparison.entries(g)) for g in (first, second)) > 1 else "episodes"


def one_training(comparison: Comparison) -> list[str]:
    """States what intervals over episodes do not cover, if there are such differences; else nothing."""
    pairs = comparison.group_pairs
    return [ONE_TRAINING] if any(_over(comparison, *pair) == "episodes" for pair in pairs) else []


def _comparison(comparison: Comparison, first: int, second: int, set_name: str) -> str:
    found, over = difference(comparison, first, second, set_name), _over(comparison, first, second)
    value, low, high = found["value"], found["low"], found["high"]
    a, b = (comparison.groups[g].name for g in (first, second))
    place = comparison.place(set_name)
    text = f"{place}, {a} returns {abs(value):.1f} {'more' if value >= 0 else 'less'} than {b} on average"
    if low is None:
        several = [len(comparison.entries(group)) > 1 for group in (first, second)]
        few = f"there are too few {'seeds' if any(several) else 'episodes'} for an interval"
        return f"{text}; {NO_SPREAD if all(several) else few}."
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
    """A table with a row for each pair of policies; none for a single policy."""
    if not comparison.group_pairs:
        return []
    rows: list[Row] = []
    for first, second in comparison.group_pairs:
        cells = [_cell(difference(comparison, first, second, name), signed=True) for name in comparison.sets]
        rows.append([f"{comparison.groups[first].name} minus {comparison.groups[second].name}", *cells])
    note = "All policies play the same draws and episode seeds. If an interval includes 0, either policy may be better."
    over = {_over(comparison, *pair) for pair in comparison.group_pairs}
    if "episodes" in over:
        note += f" {ONE_TRAINING}"
    if "seeds" in over:
        note += " Between policies with several seeds, intervals are over seeds (Welch's t, difference of means)."
    if (count := len(rows) * len(comparison.sets)) > 1:
        note += (
            f" Of these {count} intervals, about one in {round(1 / (1 - CONFIDENCE))} excludes 0 by chance where "
            "policies do not differ. A study corrects for their number."
        )
    columns = ["", *(comparison.label(name) for name in comparison.sets)]
    return [Table(caption="Differences of mean return", columns=columns, rows=rows, notes=[note])]


def regret_tables(comparison: Comparison) -> list[Table]:
    """A table with the regret of each policy on each set; none without references."""
    entries = {name: best_entry(comparison.document, name) for name in comparison.sets}
    known = {name: entry for name, entry in entries.items() if entry is not None}
    if not comparison.document.get("references"):
        return []
    columns, best = ["Policy"], []
    rows: dict[str, list[str | Cell]] = {
        result["policy"]: [result["policy"]] for result in _results(comparison, comparison.sets[0])
    }
    for name, entry in known.items():
        results = _results(comparison, name)
        for statistic, words in ((REGRET, ""), (WORST_REGRET, ", worst tenth of cells")):
            if statistic in results[0]["statistics"]:
                columns.append(f"{comparison.label(name)}{words}")
                best.append(_cell(entry["mean"]) if statistic == REGRET else Cell(""))
                for result in results:
                    rows[result["policy"]].append(_cell(result["statistics"][statistic]))
    note = (
        "Regret: how much more the best known policy returns on the same draws and episode seeds. The best of all "
        f"policies, the references ({', '.join(comparison.document['references'])}) included, is chosen on one half of "
        "the episodes and takes its return from the other half, for each cell, or for all draws where each has one "
        "episode. With few episodes the choice is not always the best, and regret is too low rather than too high."
    )
    table: list[Row] = [["Return of the best known", *best], *rows.values()]
    told = {name: impossible(entry) for name, entry in known.items()}
    hard = [f"{comparison.place(name)}: {' '.join(sentences)}" for name, sentences in told.items() if sentences]
    why = {name: why_no_regret(comparison.cells(name)) for name in comparison.sets if name not in known}
    none = [f"{comparison.place(name)}, there is no regret: {reason}." for name, reason in why.items()]
    return [Table(caption="Regret", columns=columns, rows=table if known else [], notes=[note, *hard, *none])]


def failure_tables(comparison: Comparison) -> list[Table]:
    """A table of worst cells and least failing perturbations for each main set with cells."""
    return [_failures_on(comparison, name) for name in comparison.main_sets if comparison.cells(name).num_cells > 1]


def _failures_on(comparison: Comparison, set_name: str) -> Table:
    rows = []
    for result in _results(comparison, set_name):
        worst, least = result["worst_cell"], result["least_perturbation"]
        near = Cell(
            f"{least['distance']:.0%} of the range" if least["found"] else "none found",
            _values(least["params"]) if least["params"] else least["reason"],
        )
        first = f"\n{_number(worst['first_mean'])} when it was chosen"
        bad = Cell(_number(worst["mean"]["value"]), _values(worst["params"]) + first)
        rows.append([result["policy"], bad, near])
    note = (
        "The worst cell is chosen by its mean return and then played again with fresh seeds. Least perturbation: the "
        "cell nearest to nominal where the policy fails. Its distance is that of the parameter that changes most, as a "
        "share of the parameter's range."
    )
    columns = ["Policy", "Worst cell, mean return", "Least perturbation that makes it fail"]
    place = comparison.place(set_name)
    return Table(
        caption=f"What breaks it, {place[0].lower()}{place[1:]}",
        columns=columns,
        rows=rows,
        notes=[note],
    )


def watch_commands(comparison: Comparison) -> list[tuple[str, str]]:
    """Commands that play each policy in its worst cells; none for a callable, which has no name there."""
    named = {
        entry["name"]: policy
        for index, group in enumerate(comparison.groups)
        for entry, policy in zip(comparison.entries(index), group.policies, strict=True)
    }
    found = []
    for set_name in comparison.main_sets:
        for result in _results(comparison, set_name) if comparison.cells(set_name).num_cells > 1 else ():
            if (words := _as_typed(named[result["policy"]])) is not None:
                values = [f"{name}={exact_text(value)}" for name, value in result["worst_cell"]["params"].items()]
                sets = [word for value in values for word in ("--set", value)]
                place = comparison.place(set_name)
                what = f"Watch {result['policy']} in its worst cell {place[0].lower()}{place[1:]}"
                found.append((what, shlex.join(["gymdr", "play", *words, *sets])))
    return found


def _as_typed(policy: FrozenPolicy) -> list[str] | None:
    """How a policy is named on the command line; None if it cannot be."""
    module = policy.env.rpartition(":")[0]
    trusted = [module] if module else []
    record, kind = policy.record, policy.record["kind"]
    if policy.run is not None:
        words = [str(policy.run.folder.path)]
    elif kind in ("sb3", "onnx", "function"):
        text = record["function"] if kind == "function" else f"{kind}:{record['path']}"
        words = ["--policy", text, "--env", policy.env]
        words += ["--stochastic"] if record["actions"] == "stochastic" else []
        words += ["--context", OBSERVATION] if record.get("context") else []
        for param, (low, high) in (record.get("context") or {}).items():
            words += ["--context-params", f"{param}={exact_text(low)}:{exact_text(high)}"]
        if kind != "onnx":
            trusted.append(record["path"] if kind == "sb3" else text.partition(":")[0])
        if record.get("statistics"):
            trusted.append(str(Path(record["path"]).parent / record["statistics"]))
    else:
        return None
    return [*words, *(word for name in trusted for word in ("--trust", name))]


def _caption(comparison: Comparison, set_name: str) -> str:
    cells = comparison.cells(set_name)
    count = f"{cells.num_cells:,} cells of " if cells.num_cells > 1 else ""
    return f"{comparison.place(set_name)}: {count}{counted(cells.episodes, 'episode')}"


def _cell(found: Mapping[str, Any], *, percent: bool = False, signed: bool = False) -> Cell:
    def text(value: float) -> str:
        return f"{value:.0%}" if percent else _number(value, signed=signed)

    low, high = found["low"], found["high"]
    interval = "" if low is None or high is None else f"{text(low)} to {text(high)}"
    return Cell(text(found["value"]), interval)


def _values(params: Mapping[str, float]) -> str:
    return textwrap.fill(", ".join(f"{name} {value:.3g}" for name, value in params.items()), 48)


def _number(value: float, *, signed: bool = False) -> str:
    """One decimal below 100, none above."""
    return f"{value:{'+' if signed else ''}.{1 if abs(value) < 99.95 else 0}f}"


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
    for shown, group in zip(settings, trained, strict=True):
        shown |= {name: folder for name, folder in group.folders_by_seed.items() if name in shown}
    rows = _differing_rows(settings, missing="none")
    rows += _differing_rows([_draws(config) for config in configs], missing="nominal")
    notes = [] if one_algorithm else ["The algorithms' settings are at the end of the page."]
    notes += filter(None, [without_runs(groups, "known settings").strip()])
    columns = ["Setting", *(group.name for group in trained)]
    return [Table(caption="What differs between the policies", columns=columns, rows=rows, notes=notes)]


def _differing_rows(settings: Sequence[dict[str, str]], missing: str) -> list[list[str]]:
    """A row for each name whose value differs."""
    names = dict.fromkeys(name for values in settings for name in values)
    table = {name: [values.get(name, missing) for values in settings] for name in names}
    return [[name, *row] for name, row in table.items() if len(set(row)) > 1]


def _settings(config: RunConfig, *, with_options: bool) -> dict[str, str]:
    """Name -> value of every setting but the seed and the randomization, with the algorithm's options if wanted."""
    form = config.to_dict()
    options, of_sampler = form.pop(config.algorithm), form.pop(config.settings.sampler, {})
    form.pop("randomization", None)
    del form["seed"]
    return {name: _text(value) for name, value in {**form, **of_sampler, **(options if with_options else {})}.items()}


def _draws(config: RunConfig) -> dict[str, str]:
    """Randomized parameter -> its distribution."""
    if config.randomization is None:
        return {}
    draws = {f"draws of {name}": str(rule) for name, rule in config.randomization.rules}
    correlation = config.randomization.correlation
    return draws if correlation is None else {**draws, "correlation of draws": str(correlation)}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
