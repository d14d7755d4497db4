"""What a study's page says at its top."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from gym_dr.studies.results import difference_findings


def difference(**changes: Any) -> dict[str, Any]:
    """A row of ``StudyResult.comparisons``."""
    row = {"variant": "adr", "other": "uniform", "set": "nominal", "statistic": "mean", "seeds": 5, "budgets": "equal"}
    return row | {"value": 20.0, "low": 12.5, "high": 27.5, "p_holm": 0.01} | changes


def said(*rows: dict[str, Any]) -> list[str]:
    return difference_findings(pd.DataFrame(rows), "nominal")


def test_every_difference_on_nominal_values_is_stated() -> None:
    found = said(difference(), difference(variant="spdl", value=-3.0, low=-9.0, high=3.0, p_holm=0.4))
    assert found[1:] == [
        "On nominal, 'adr' achieves 20.0 more than 'uniform' (95 % interval of the difference 12.5 to 27.5, "
        "corrected p = 0.010).",
        "On nominal, 'spdl' achieves 3.0 less than 'uniform' (95 % interval of the difference -9.0 to 3.0, "
        "corrected p = 0.400), which is not significant.",
    ]


def test_of_the_other_sets_only_significant_differences_are_stated() -> None:
    found = said(
        difference(),
        difference(set="box", p_holm=0.051),
        difference(set="stairs", p_holm=0.049),
        difference(set="stairs", statistic="cvar_10", p_holm=0.001),  # in the tables only
        difference(set="stump", statistic="success_rate", value=0.4, low=0.25, high=0.55, p_holm=0.0004),
    )
    assert found[2:] == [
        "On stairs, 'adr' achieves 20.0 more than 'uniform' (95 % interval of the difference 12.5 to 27.5, "
        "corrected p = 0.049).",
        "On stump, 'adr' solves 40.0 percentage points more than 'uniform' (95 % interval of the difference 25.0 to "
        "55.0, corrected p < 0.001).",
    ]


def test_the_first_sentence_is_the_verdict() -> None:
    assert said(difference(p_holm=0.2), difference(set="box", p_holm=0.2))[0].startswith("No difference")
    verdict = said(difference(p_holm=0.2), difference(set="box"), difference(set="stairs", p_holm=0.3))[0]
    assert verdict.startswith("On box, 'adr' achieves 20.0 more than 'uniform'")
    assert "2 other differences" in verdict
    unknown = said(difference(seeds=1, low=math.nan, high=math.nan, p_holm=math.nan))[0]
    assert not unknown.startswith(("No difference", "On"))
    assert said(difference(statistic="regret")) == []


def test_too_few_seeds_and_unequal_budgets_are_marked() -> None:
    found = said(difference(seeds=1, low=math.nan, high=math.nan, p_holm=math.nan, budgets="unequal"))
    assert found[1] == "On nominal, 'adr' achieves 20.0 more than 'uniform'; there are too few seeds for an interval †."
