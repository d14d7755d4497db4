from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import RunFolderError
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.suite import sets_for
from gym_dr.policies.open import open_runs
from gym_dr.reports.assemble import assemble
from gym_dr.reports.comparison import Comparison, group_policies
from gym_dr.reports.page import render
from gym_dr.reports.returns import along_parameters, first_picture, heat_maps
from gym_dr.runs.configure import open_run
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.metrics import read_csv
from tests.policies.tiny_run import train_tiny_run


def test_heat_maps_show_the_means_of_the_evaluation(comparison: Comparison) -> None:
    view = heat_maps(comparison).views[0]
    assert len(view.panels) == 3  # of two policies, and of their difference
    heat = view.panels[1].figure.data[0]  # the second policy, on the grid, which comes first
    returns = comparison.evaluation.returns("grid")[1].reshape(3, 2, 2)  # gravity, wind, episodes
    names = [view.panels[1].figure.layout[axis].title.text.split(" ")[0] for axis in ("xaxis", "yaxis")]
    expected = returns.mean(axis=2) if names == ["wind_power", "gravity"] else returns.mean(axis=2).T
    assert [list(row) for row in heat.z] == expected.tolist()


def titles(panel: Any) -> set[str]:
    return {panel.figure.layout[axis].title.text.split(" ")[0] for axis in ("xaxis", "yaxis")}


def test_the_first_picture_is_a_map_over_two_numbers_and_no_switch(comparison: Comparison) -> None:
    panel = first_picture(comparison, 1)
    values = comparison.values["sobol"]
    assert comparison.document["parameters"]["enable_wind"]["kind"] == "bool"
    assert titles(panel) < {*values} - {"enable_wind"}
    assert "minus" in panel.title
    assert "minus" not in first_picture(comparison, 0).title


def test_with_a_single_number_the_first_picture_is_its_curve(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: comparison.values["sobol"][name] for name in ("enable_wind", "gravity")}
    monkeypatch.setitem(comparison.values, "sobol", few)
    assert titles(first_picture(comparison, 0)) == {"gravity", "Mean"}


def test_the_first_screen_has_the_verdict_one_map_and_one_table(comparison: Comparison) -> None:
    report = assemble(comparison, "gymdr report")
    assert report.picture is not None
    first = report.tables[0]
    assert [name for name, *_ in first.rows] == [comparison.label(name) for name in comparison.sets]
    assert first.columns[1:] == [group.name for group in comparison.groups]
    page = render(report)
    order = [page.index(text) for text in ("verdict", 'id="first-plot"', f"<caption>{first.caption}", 'id="more"')]
    assert order == sorted(order)
    assert len(report.folded) == len(comparison.sets)
    assert page.index("<details>") < page.index(f"<caption>{report.folded[0].caption}") < page.index("</details>")


def test_a_reference_has_its_origin_on_the_page(judged: Comparison) -> None:
    names = [group.name for group in (*judged.groups, *judged.references)]
    report = assemble(judged, "gymdr report")
    assert [origin.name for origin in report.provenance] == names
    assert [table.caption for table in report.tables].count("Regret") == 1


def test_a_training_range_without_end_is_drawn_as_far_as_the_plot_reaches(comparison: Comparison) -> None:
    document = copy.deepcopy(comparison.document)
    for policy in document["policies"]:
        policy["ranges"]["gravity"] = [None, None]  # as JSON has infinities
    evaluation = Evaluation(comparison.evaluation.folder, document, comparison.evaluation.episodes)
    endless = Comparison(groups=comparison.groups, evaluation=evaluation)
    panels = along_parameters(endless).views[0].panels
    (panel,) = (panel for panel in panels if panel.title == "gravity")
    for shape in panel.figure.layout.shapes:
        assert (shape.x0, shape.x1) == panel.figure.layout.xaxis.range


def test_a_difference_map_is_the_later_policy_minus_the_first(comparison: Comparison) -> None:
    panel = heat_maps(comparison).views[0].panels[2]
    returns = comparison.evaluation.returns("grid").mean(axis=2)
    assert max(map(max, panel.figure.data[0].z)) == pytest.approx((returns[1] - returns[0]).max())


def test_a_single_policy_without_parameters_has_a_report(tmp_path: Path) -> None:
    run = train_tiny_run(tmp_path / "run", "--env", "CartPole-v1", "--randomization", "none")
    policies = open_runs([open_run(str(run))])
    evaluation = evaluate_policies(policies, sets_for(policies, (), 4), tmp_path / "e")
    comparison = Comparison(groups=group_policies(policies), evaluation=evaluation)
    report = assemble(comparison, "gymdr report")
    assert report.picture is None
    assert report.sections == []
    render(report)


@pytest.mark.parametrize("content", ["", '"\n\x00'])
def test_damaged_draws_are_named(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.draws.write_text(content)
    with pytest.raises(RunFolderError, match=r"draws\.csv"):
        read_csv(folder.draws, ("return",))
