"""What a study says of its factors, for values that are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from gym_dr.experiments.factor_plots import effects_section, plot_effects
from gym_dr.experiments.factor_tables import (
    as_comparisons,
    effect_tables,
    effects_on,
    share_findings,
    shares_on,
    undetermined,
)
from gym_dr.experiments.study_factors import Design
from gym_dr.experiments.study_tables import findings

DESIGN = Design(
    levels={"draws": ("box", "none"), "sampler": ("uniform", "adr", "spdl")}, crossed=(("draws", "sampler"),), seeds={}
)
MEANS = {"baseline": 100.0, "none": 40.0, "adr": 110.0, "spdl": 90.0, "none+adr": 50.0, "none+spdl": 60.0}
RUNS = {
    name: {seed: mean + (5 * seed + index**seed) % 4 for seed in (1, 2, 3)}
    for index, (name, mean) in enumerate(MEANS.items())
}


@pytest.fixture
def effects() -> pd.DataFrame:
    """On two sets: that of the runs, and one where nothing has an interval."""
    rows = [row | {"set": "box", "p_holm": row["p"]} for row in effects_on(DESIGN, RUNS)]
    single = {name: {1: value} for name, value in MEANS.items()}
    rows += [row | {"set": "nominal", "p_holm": None} for row in effects_on(DESIGN, single)]
    table = pd.DataFrame(rows).assign(statistic="mean", budgets="equal")
    return table.astype({"low": "float64", "high": "float64", "p_holm": "float64"})


@pytest.fixture
def shares() -> pd.DataFrame:
    return pd.DataFrame([row | {"set": "box", "statistic": "mean"} for row in shares_on(DESIGN, RUNS)])


def test_a_row_says_which_level_is_compared_with_which_over_how_many_seeds() -> None:
    rows = effects_on(DESIGN, RUNS | {"none+spdl": {1: 61.0, 2: 60.0}})
    assert [(row["term"], row["level"], row["other"], row["seeds"]) for row in rows] == [
        ("draws", "none", "box", 2),  # averaged over the samplers
        ("sampler", "adr", "uniform", 3),
        ("sampler", "spdl", "uniform", 2),
        ("draws x sampler", "none x adr", "box x uniform", 3),
        ("draws x sampler", "none x spdl", "box x uniform", 2),
    ]
    assert rows[1]["compared"] == [("baseline", "adr"), ("none", "none+adr")]
    assert sorted(rows[3]["compared"][0]) == sorted(["baseline", "none", "adr", "none+adr"])


def test_effects_and_shares_are_tables_with_a_column_for_each_set(effects: pd.DataFrame, shares: pd.DataFrame) -> None:
    first, second = effect_tables(effects.replace({"budgets": {"equal": "unequal"}}), shares, "Return", percent=False)
    assert (first.caption, first.columns) == ("Return: effects", ["Effect", "box", "nominal"])
    assert [name for name, *_ in first.rows][::3] == ["draws: none minus box †", "draws x sampler: none x adr †"]
    assert first.rows[1][2] == ("10.0", "")  # nominal: adr returns 10 more with both draws
    assert (second.caption, second.columns) == ("Return: shares of variance", ["Term", "box"])
    assert [name for name, *_ in second.rows][-2:] == ["seed blocks", "residual variance"]
    assert effect_tables(effects[:0], shares[:0], "Return", percent=False) == []


def test_shares_are_stated_the_largest_first(shares: pd.DataFrame) -> None:
    assert share_findings(shares) == [
        "On box, draws explains 90 % of the variance of mean returns, draws x sampler 7 %, sampler 3 %, "
        "all others less than 1 %; 0 % is left between seeds."
    ]
    none = shares.assign(share=[0.0, 0.009, 0.0, 0.0, 0.991])
    assert share_findings(none) == [
        "On box, no factor explains 1 % of the variance of mean returns; 99 % is left between seeds."
    ]


def test_main_effects_are_stated_as_comparisons_are(effects: pd.DataFrame) -> None:
    found = findings(as_comparisons(effects), "nominal", "levels")
    few = "there are too few seeds for an interval"
    assert f"On nominal, sampler adr returns 10.0 more than sampler uniform; {few}." in found
    assert any(text.startswith("On box, draws none returns ") and "draws box" in text for text in found)
    assert not any(" x " in text for text in found)


def test_what_cannot_be_known_is_said_with_its_reason() -> None:
    assert undetermined(DESIGN, RUNS) == []
    assert undetermined(DESIGN, {name: runs for name, runs in RUNS.items() if name != "none+spdl"}) == [
        "Effects of draws none, sampler spdl, draws x sampler none x spdl are not known, "
        "since there is no run of none+spdl."
    ]
    apart = {name: {2 if "spdl" in name else 1: 1.0} for name in RUNS}
    assert undetermined(DESIGN, apart)[0].endswith("since runs have too few seeds in common.")


@pytest.mark.usefixtures("full_pictures")
def test_the_picture_and_the_section_show_every_effect(
    effects: pd.DataFrame, shares: pd.DataFrame, tmp_path: Path
) -> None:
    plot_effects(effects, shares, tmp_path / "effects.png")
    with Image.open(tmp_path / "effects.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10
    (section,) = effects_section(effects, shares)
    assert [view.name for view in section.views] == ["box", "nominal"]
    (panel,) = section.views[0].panels
    assert "residual variance" in panel.title
    assert sum(len(trace.x) for trace in panel.figure.data) == 5
    assert [trace.name.split(":")[0] for trace in panel.figure.data] == ["draws", "sampler", "draws x sampler"]
    assert effects_section(effects[:0], shares[:0]) == []
