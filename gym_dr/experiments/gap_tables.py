"""The gap of a study over its seeds: the numbers, the sentences, the table and the plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Array
from gym_dr.evaluation.paired import mean_over_seeds, ratio_over_seeds
from gym_dr.evaluation.report.page import Panel, Section, View, plain
from gym_dr.evaluation.report.style import new_figure, series
from gym_dr.evaluation.statistics import Interval
from gym_dr.experiments.study_gap import Gap
from gym_dr.experiments.table_cells import cell
from gym_dr.reports.table import Cell, Row, Table

if TYPE_CHECKING:
    import pandas as pd

Means = Mapping[tuple[str, str], Mapping[int, float]]  # (set, variant) -> seed -> mean return

OPEN, NONE, UNKNOWN = "gap", "no gap", "unknown"  # whether there is a gap
ENDS = ("", "_low", "_high")  # of the columns of a number with its interval
NUMBERS = tuple(f"{name}{end}" for name in ("gap", "gain", "share") for end in ENDS)
COLUMNS = (
    *("set", "policy", "memoryless", "oracle", "policy_set", "oracle_set", "seeds", "seeds_missing"),
    *("memoryless_return", "policy_return", "oracle_return", *NUMBERS, "verdict"),
)


def gap_numbers(
    gap: Gap, judged: Mapping[str, Mapping[str, str]], means: Means, seeds_of: Mapping[str, Sequence[int]]
) -> pd.DataFrame:
    """The gap on each set, and what each policy closes of it.

    Args:
        gap: The variants.
        judged: See ``judged_on``.
        means: Mean returns of the runs that were evaluated.
        seeds_of: The seeds that each variant is to be trained with.

    Returns:
        A row for each set and policy, with the mean returns over the seeds that memoryless, policy and oracle all have;
        ``gap``, oracle minus memoryless; ``gain``, policy minus memoryless; ``share``, their ratio. Low and high are
        ends of 95 % intervals, NaN if there is none. ``verdict`` is "gap" if the interval of the gap is above 0, "no
        gap" if not, and then there is no share, and "unknown" without an interval.
    """
    import pandas as pd  # heavy

    rows = []
    for name, sets in judged.items():
        for policy in gap.policy:
            three = (gap.memoryless, policy, gap.oracle)
            found = [means.get((sets[variant], variant), {}) for variant in three]
            common = [seed for seed in found[0] if all(seed in by_seed for by_seed in found)]
            if common:
                head = {"set": name, "policy": policy, "memoryless": gap.memoryless, "oracle": gap.oracle}
                head |= {"policy_set": sets[policy], "oracle_set": sets[gap.oracle]}
                returns = np.array([[by_seed[seed] for seed in common] for by_seed in found])
                planned = set.intersection(*(set(seeds_of[variant]) for variant in three))
                counts = {"seeds": len(common), "seeds_missing": len(planned) - len(common)}
                rows.append({**head, **counts, **_closed(*returns)})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(NUMBERS, "float64"))


def _closed(memoryless: Array, policy: Array, oracle: Array) -> dict[str, Any]:
    """The numbers of a row, from mean returns of the same seeds, shape ``(seeds,)``."""
    (gap, _), (gain, _) = mean_over_seeds(oracle - memoryless), mean_over_seeds(policy - memoryless)
    share: Interval = {"value": None, "low": None, "high": None}
    verdict = UNKNOWN if gap["low"] is None else OPEN if gap["low"] > 0.0 else NONE
    if verdict != NONE and gap["value"] > 0.0:
        share = ratio_over_seeds(policy - memoryless, oracle - memoryless)
    if verdict == UNKNOWN:
        share |= {"low": None, "high": None}
    returns = {"memoryless_return": memoryless, "policy_return": policy, "oracle_return": oracle}
    numbers = {"gap": gap, "gain": gain, "share": share}
    return {
        **{name: float(values.mean()) for name, values in returns.items()},
        **{f"{name}{end}": found[end[1:] or "value"] for name, found in numbers.items() for end in ENDS},
        "verdict": verdict,
    }


def gap_findings(table: pd.DataFrame) -> list[str]:
    """What to say of each row of ``gap_numbers``; where there is no gap, once for all policies."""
    return list(dict.fromkeys(_finding(row) for row in table.to_dict("records")))


def _finding(row: Mapping[Any, Any]) -> str:
    place, gap = f"On {_place(row)}", row["gap"]
    more = f"{row['oracle']} returns {abs(gap):.1f} {'more' if gap >= 0 else 'less'} than {row['memoryless']}"
    interval = f"95 % interval of the difference {row['gap_low']:.1f} to {row['gap_high']:.1f}"
    if row["verdict"] == NONE:
        return f"{place}, there is no gap to close: {more} ({interval}), which is not clearly above zero."
    share = _share(row)
    if row["verdict"] == UNKNOWN:
        part = "" if math.isnan(row["share"]) else f" and {row['policy']} closes {share.value} of that"
        few = "there are too few seeds for an interval"
        why = few if row["seeds"] < 2 else "the gap is the same in all seeds, so it has no interval"
        return f"{place}, {more}{part}; {why}."
    within = f" (95 % interval {share.detail} %)" if share.detail else ""
    return f"{place}, {row['policy']} closes {share.value} of the gap{within}: {more} ({interval})."


def _place(row: Mapping[Any, Any]) -> str:
    """The set; with different sensors also those of the others."""
    others = [f"{row[who]} on {row[f'{who}_set']}" for who in ("policy", "oracle") if row[f"{who}_set"] != row["set"]]
    return f"{row['set']} ({', '.join(others)})" if others else str(row["set"])


def gap_table(gap: Gap, table: pd.DataFrame, steps: str) -> Table:
    """The rows of ``gap_numbers`` as a table.

    Args:
        gap: The variants.
        table: See ``gap_numbers``.
        steps: Environment steps of each run, as text.
    """
    rows: list[Row] = []
    for row in table.to_dict("records"):
        few = f" ({row['seeds']} of {row['seeds'] + row['seeds_missing']} seeds)" if row["seeds_missing"] else ""
        returns = [f"{row[f'{who}_return']:.1f}" for who in ("memoryless", "policy", "oracle")]
        differences = [cell(_interval(row, name), percent=False) for name in ("gap", "gain")]
        rows.append([f"{row['policy']} on {_place(row)}{few}", *returns, *differences, _share(row)])
    note = _method(gap, steps)
    if (table[["policy_set", "oracle_set"]].to_numpy() != table[["set"]].to_numpy()).any():
        note += " Each is judged with the sensors that it was trained with."
    columns = ["Policy and set", "Memoryless", "Policy", "Oracle", "Gap", "Gain", "Share closed"]
    return Table(caption="Share of the gap closed", columns=columns, rows=rows, notes=[note])


def _method(gap: Gap, steps: str) -> str:
    return (
        f"Mean returns over seeds. Gap: oracle ({gap.oracle}) minus memoryless ({gap.memoryless}). Gain: policy minus "
        "memoryless. Both are paired by seed, on the same draws and episodes, with 95 % intervals (Student's t). Share "
        "closed: the sum of gains over seeds, divided by the sum of gaps, with Fieller's 95 % interval; only where the "
        f"interval of the gap is above zero. All were trained for {steps} environment steps with the same critic."
    )


def _interval(row: Mapping[Any, Any], name: str) -> Interval:
    return {end[1:] or "value": row[f"{name}{end}"] for end in ENDS}


def _share(row: Mapping[Any, Any]) -> Cell:
    if math.isnan(row["share"]):
        return Cell("no gap to close" if row["verdict"] == NONE else "unknown")
    return cell(_interval(row, "share"), percent=True)


def gap_section(table: pd.DataFrame, variants: Sequence[str]) -> list[Section]:
    """A plot of the shares that are closed, with intervals, on each set with a gap; nothing if there is none.

    Args:
        table: See ``gap_numbers``.
        variants: All variants, in the order of the report's colors.
    """
    import plotly.graph_objects as go  # heavy

    shown = table[table["verdict"] == OPEN]
    if not len(shown):
        return []
    traces = []
    for policy, rows in shown.groupby("policy", sort=False):
        share, low, high = (100 * rows[f"share{end}"] for end in ENDS)
        traces.append(
            go.Scatter(
                x=share.tolist(),
                y=[plain(f"{policy} on {_place(row)}") for row in rows.to_dict("records")],
                mode="markers",
                name=plain(policy),
                showlegend=True,
                marker={"color": series(variants.index(str(policy)))[0], "size": 11},
                error_x={"array": (high - share).tolist(), "arrayminus": (share - low).tolist(), "thickness": 1.6},
                customdata=np.stack([low, high], axis=-1).tolist(),
                hovertemplate="%{y}: <b>%{x:.0f} %</b>, %{customdata[0]:.0f} to %{customdata[1]:.0f} %"
                "<extra>%{fullData.name}</extra>",
            )
        )
    figure = new_figure(traces, x="Share of the gap closed, %", height=150 + 40 * len(shown))
    for end in (0.0, 100.0):
        figure.add_vline(x=end, line={"color": "#7a7f87", "width": 1.5, "dash": "dot"})
    figure.update_yaxes(autorange="reversed", type="category")
    panel = Panel(title="", figure=figure, description="Shares of the gap that policies close, on each set with a gap.")
    return [
        Section(
            key="gap",
            title="The gap",
            lead="How much of the difference between memoryless policy and oracle the policy makes up for.",
            how_to_read="The dotted lines are the memoryless policy (0 %) and the oracle (100 %); whiskers are 95 % "
            "intervals over seeds. Sets without a clear gap have no share and are not shown.",
            views=[View(panels=[panel])],
        )
    ]
