from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.evaluation.report import tables
from gym_dr.evaluation.report.comparison import Comparison


class Seeds:
    """Groups of several runs, of which only the returns are known; the rest is another evaluation's."""

    def __init__(self, comparison: Comparison, returns: list[Any]) -> None:
        self._compared, self._returns = comparison, [np.array(r) for r in returns]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compared, name)

    def entries(self, group: int) -> list[dict[str, Any]]:
        return self._compared.entries(group) * len(self._returns[group])

    def returns(self, group: int, set_name: str) -> Any:
        return self._returns[group]


def test_every_set_has_a_table_with_a_row_for_each_run(comparison: Comparison) -> None:
    found = tables.summary_tables(comparison)
    for table, name in zip(found, comparison.sets, strict=False):
        assert [row for row, _ in table.rows] == [policy["name"] for policy in comparison.document["policies"]]
        assert ("Worst cell" in table.columns) == (comparison.cells(name).num_cells > 1)
        assert all(len(cells) == len(table.columns) - 1 for _, cells in table.rows)
    mean = comparison.results(1, "nominal")[0]["statistics"]["mean"]["value"]
    assert float(found[0].rows[1][1][0].value) == pytest.approx(mean, abs=0.5)


def test_the_first_answer_compares_the_policies_over_the_training_distribution(comparison: Comparison) -> None:
    difference = tables.difference(comparison, 1, 0, "sobol")["value"]
    returns = [comparison.returns(group, "sobol").mean() for group in (0, 1)]
    assert difference == pytest.approx(returns[1] - returns[0])
    answer = tables.findings(comparison)[0]
    assert answer.startswith("Over the training distribution, ")
    assert f"{abs(difference):.1f}" in answer


def test_a_difference_turned_round_has_the_other_sign_and_its_interval_too(comparison: Comparison) -> None:
    there, back = tables.difference(comparison, 1, 0, "grid"), tables.difference(comparison, 0, 1, "grid")
    assert there["low"] <= there["value"] <= there["high"]
    assert back == {"value": -there["value"], "low": -there["high"], "high": -there["low"]}


def test_several_seeds_are_compared_by_their_means(comparison: Comparison) -> None:
    # means of seeds: 1, 2, 3 and 5, 7, 9. Variances 1 and 4 over 3 seeds: the difference has the standard error
    # sqrt(1/3 + 4/3) = 1.29099 and, after Welch, (5/3)^2 / ((1/3)^2/2 + (4/3)^2/2) = 2.94118 degrees of freedom,
    # where t is 3.21993 at 97.5 %: half an interval is 4.1569
    seeds: Any = Seeds(comparison, [[[1.0], [2.0], [3.0]], [[5.0], [7.0], [9.0]]])
    found = tables.difference(seeds, 1, 0, "sobol")
    assert found["value"] == 5.0
    assert [found["low"], found["high"]] == pytest.approx([5 - 4.157, 5 + 4.157], abs=1e-2)


def test_one_seed_against_several_has_no_interval(comparison: Comparison) -> None:
    seeds: Any = Seeds(comparison, [[[1.0]], [[5.0], [7.0]]])
    assert tables.difference(seeds, 1, 0, "sobol") == {"value": 5.0, "low": None, "high": None}
    assert "too few seeds" in tables.findings(seeds)[0]


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        ({"value": 5.0, "low": 1.0, "high": 9.0}, "returns 5.0 more than"),
        ({"value": -5.0, "low": -9.0, "high": -1.0}, "returns 5.0 less than"),
        ({"value": 5.0, "low": -1.0, "high": 11.0}, "cannot be told apart"),
    ],
)
def test_an_answer_claims_no_more_than_the_interval(
    comparison: Comparison, found: dict[str, float], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "difference", lambda *_: found)
    assert answer in tables.findings(comparison)[0]


def test_what_breaks_a_policy_names_the_worst_cell(comparison: Comparison) -> None:
    table = next(t for t in tables.summary_tables(comparison) if t.caption.startswith("What breaks it"))
    worst = comparison.results(0, "sobol")[0]["worst_cell"]
    assert f"gravity {worst['params']['gravity']:.3g}" in table.rows[0][1][0].interval
