"""What a study says of its gap, for returns that are given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from gym_dr.experiments.gap_tables import gap_findings, gap_numbers, gap_section, gap_table
from gym_dr.experiments.study_gap import Gap

GAP = Gap(memoryless="plain", policy=("memory",), oracle="told")

# gaps of 80, 90 and 100; gains of 70, 72 and 74
CLEAR = {"plain": (10.0, 20.0, 30.0), "memory": (80.0, 92.0, 104.0), "told": (90.0, 110.0, 130.0)}
T_2 = 4.302653  # Student's t with 2 degrees of freedom at 97.5 %


def numbers(
    returns: Mapping[str, Sequence[float]],
    *,
    gap: Gap = GAP,
    name: str = "box",
    seeds: int = 3,
    fewer: Mapping[str, Sequence[int]] | None = None,
    oracle_on: str = "box",
) -> pd.DataFrame:
    """The rows for one set, from a return for each variant and seed; NaN for a run that is missing.

    ``fewer`` has the seeds of variants that are planned with others than the study's.
    """
    sets = dict.fromkeys(gap.variants, name) | {gap.oracle: oracle_on}
    means = {
        (sets[variant], variant): {seed: value for seed, value in enumerate(values) if not math.isnan(value)}
        for variant, values in returns.items()
    }
    return gap_numbers(gap, {name: sets}, means, {variant: range(seeds) for variant in gap.variants} | (fewer or {}))


def test_the_share_is_the_sum_of_gains_over_that_of_gaps_with_intervals_paired_by_seed() -> None:
    (row,) = numbers(CLEAR).to_dict("records")
    assert (row["memoryless_return"], row["policy_return"], row["oracle_return"]) == (20.0, 92.0, 110.0)
    # gaps: mean 90, standard deviation 10; gains: mean 72, standard deviation 2, although returns vary by 10 and more
    assert (row["gap"], row["gain"], row["share"]) == pytest.approx((90.0, 72.0, 216 / 270))
    half = T_2 / math.sqrt(3)
    assert (row["gap_low"], row["gap_high"]) == pytest.approx((90 - 10 * half, 90 + 10 * half), abs=1e-5)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((72 - 2 * half, 72 + 2 * half), abs=1e-5)
    # gains - r gaps have mean 72 - 90 r and standard deviation |2 - 10 r|, so above 0.2
    # 72 - 90 r = +- half (10 r - 2) at r = (72 +- 2 half) / (90 +- 10 half)
    ends = [(72 + sign * 2 * half) / (90 + sign * 10 * half) for sign in (1, -1)]
    assert (row["share_low"], row["share_high"]) == pytest.approx(ends, abs=1e-5)
    assert row["verdict"] == "gap"
    assert (row["seeds"], row["seeds_missing"]) == (3, 0)


def test_a_clear_gap_is_stated_with_its_share() -> None:
    assert gap_findings(numbers(CLEAR)) == [
        "On box, memory closes 80 % of the gap (95 % interval 67 to 103 %): told returns 90.0 more than plain "
        "(95 % interval of the difference 65.2 to 114.8)."
    ]


# gaps of 10, 0 and -4: mean 2, standard deviation 7.21, so the interval is 2 +- 17.9
NO_GAP = {"plain": (10.0, 20.0, 30.0), "memory": (25.0, 15.0, 30.0), "told": (20.0, 20.0, 26.0)}


def test_where_the_gap_may_be_zero_there_is_none_to_close_and_no_ratio() -> None:
    table = numbers(NO_GAP)
    (row,) = table.to_dict("records")
    assert (row["verdict"], row["gap"]) == ("no gap", 2.0)
    assert all(math.isnan(row[name]) for name in ("share", "share_low", "share_high"))
    assert gap_findings(table) == [
        "On box, there is no gap to close: told returns 2.0 more than plain (95 % interval of the difference -15.9 to "
        "19.9), which is not clearly above zero."
    ]
    (_, *cells), *_ = gap_table(GAP, table, "1,000").rows
    assert cells[-1].value == "no gap to close"
    assert gap_section(table, ["plain", "memory", "told"]) == []


def test_an_oracle_that_is_clearly_worse_leaves_no_gap_either() -> None:
    table = numbers(CLEAR | {"plain": CLEAR["told"], "told": CLEAR["plain"]})
    assert list(table["verdict"]) == ["no gap"]
    assert "there is no gap to close: told returns 90.0 less than plain" in gap_findings(table)[0]


def test_one_seed_has_figures_and_no_interval() -> None:
    table = numbers({name: values[:1] for name, values in CLEAR.items()}, seeds=1)
    (row,) = table.to_dict("records")
    assert (row["verdict"], row["gap"], row["share"]) == ("unknown", 80.0, 70 / 80)
    assert all(math.isnan(row[f"{name}_{end}"]) for name in ("gap", "gain", "share") for end in ("low", "high"))
    assert gap_findings(table) == [
        "On box, told returns 80.0 more than plain and memory closes 88 % of that; there are too few seeds for an "
        "interval."
    ]
    (_, *cells), *_ = gap_table(GAP, table, "1,000").rows
    assert cells[-1] == ("88 %", "")


def test_one_seed_without_a_gap_has_no_share() -> None:
    table = numbers({"plain": [20.0], "memory": [30.0], "told": [15.0]}, seeds=1)
    assert gap_findings(table) == ["On box, told returns 5.0 less than plain; there are too few seeds for an interval."]
    (_, *cells), *_ = gap_table(GAP, table, "1,000").rows
    assert cells[-1].value == "unknown"


def test_a_gap_that_is_the_same_in_every_seed_has_no_interval() -> None:
    (sentence,) = gap_findings(numbers({"plain": [10.0, 10.0], "memory": [20.0, 40.0], "told": [50.0, 50.0]}, seeds=2))
    assert sentence == (
        "On box, told returns 40.0 more than plain and memory closes 50 % of that; the gap is the same in all seeds, "
        "so it has no interval."
    )


def test_only_seeds_that_all_three_have_count() -> None:
    table = numbers(CLEAR | {"memory": (80.0, math.nan, 104.0)})
    (row,) = table.to_dict("records")
    assert (row["seeds"], row["seeds_missing"]) == (2, 1)
    assert (row["memoryless_return"], row["gap"]) == (20.0, 90.0)  # of the first and the third seed
    ((name, *_),) = gap_table(GAP, table, "1,000").rows
    assert name == "memory on box (2 of 3 seeds)"
    assert len(numbers(CLEAR | {"memory": [math.nan] * 3})) == 0


def test_a_variant_that_is_planned_with_fewer_seeds_misses_none_of_the_others() -> None:
    table = numbers(CLEAR | {"memory": CLEAR["memory"][:2]}, fewer={"memory": [0, 1]})
    assert table[["seeds", "seeds_missing"]].to_numpy().tolist() == [[2, 0]]


def test_each_policy_has_a_row_and_what_is_said_of_all_is_said_once() -> None:
    several = Gap(memoryless="plain", policy=("memory", "wise"), oracle="told")
    clear = numbers(CLEAR | {"wise": (50.0, 56.0, 65.0)}, gap=several)
    assert list(clear["policy"]) == ["memory", "wise"]
    assert len(gap_findings(clear)) == 2
    assert len(gap_findings(numbers(NO_GAP | {"wise": (0.0, 1.0, 2.0)}, gap=several))) == 1


def test_the_table_names_the_roles_and_other_sensors() -> None:
    table = gap_table(GAP, numbers(CLEAR), "1,000")
    ((name, *cells),) = table.rows
    assert name == "memory on box"
    assert list(map(str, cells)) == [
        *("20.0", "92.0", "110.0"),
        *("90.0 (65.2 to 114.8)", "72.0 (67.0 to 77.0)", "80 % (67 to 103)"),
    ]
    (note,) = table.notes
    assert "oracle (told) minus memoryless (plain)" in note
    assert "1,000 environment steps with the same critic" in note
    assert "sensors" not in note
    hidden = numbers(CLEAR, oracle_on="nominal")
    assert gap_findings(hidden)[0].startswith("On box (told on nominal), memory closes 80 % of the gap")
    assert (
        gap_table(GAP, hidden, "1,000").notes[0].endswith("Each is judged with the sensors that it was trained with.")
    )


def test_the_plot_has_a_point_with_its_interval_for_each_policy() -> None:
    several = Gap(memoryless="plain", policy=("memory", "wise"), oracle="told")
    table = numbers(CLEAR | {"wise": (50.0, 56.0, 65.0)}, gap=several)
    (section,) = gap_section(table, ["plain", "memory", "told", "wise"])
    ((panel,),) = [view.panels for view in section.views]
    memory, wise = panel.figure.data
    assert (memory.name, wise.name) == ("memory", "wise")
    assert memory.x == pytest.approx([80.0])
    row = table.iloc[0]
    assert memory.x[0] + memory.error_x.array[0] == pytest.approx(100 * row["share_high"])
    assert memory.x[0] - memory.error_x.arrayminus[0] == pytest.approx(100 * row["share_low"])
    assert memory.marker.color != wise.marker.color
    assert np.allclose([shape.x0 for shape in panel.figure.layout.shapes], [0.0, 100.0])
