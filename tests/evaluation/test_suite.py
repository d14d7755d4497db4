from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gym_dr.evaluation import suite
from gym_dr.evaluation.evaluate import ProgressCallback, evaluate_policies
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.sets import CellSet
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.open import open_runs
from gym_dr.reports.comparison import Comparison, group_policies
from gym_dr.reports.tables import findings, sensitivity_tables
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import param_space_of
from tests.policies.tiny_run import train_tiny_run


@pytest.fixture(scope="module", autouse=True)
def few_episodes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("REPORT_EPISODES", 2), ("REPORT_POINTS", 4), ("POINT_EPISODES", 2)):
            patch.setattr(suite, name, value)
        yield


def complete_evaluation(
    policies: list[FrozenPolicy], folder: Path, command: str, progress: ProgressCallback
) -> Evaluation:
    return evaluate_policies(policies, suite.report_suite(policies), folder, command=command, progress=progress)


def silent(title: str, done: int, total: int) -> None:
    pass


def sets(document: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {entry["name"]: (entry["cells"], entry["episodes"]) for entry in document["sets"]}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, on nominal physics, and its complete evaluation ``run/evaluation``."""
    run = train_tiny_run(tmp_path_factory.mktemp("evaluated") / "run", "--randomization", "none")
    complete_evaluation(opened(run), run / "evaluation", "gymdr report", silent)
    return run


@pytest.fixture
def run(evaluated: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return Path(shutil.copytree(evaluated, tmp_path / "run"))


def opened(*runs: Path) -> list[FrozenPolicy]:
    return open_runs([open_run(str(run)) for run in runs])


def test_a_run_that_was_not_evaluated_is(tmp_path: Path) -> None:
    policies = opened(train_tiny_run(tmp_path / "wide", "--randomization", "wide"))
    found = complete_evaluation(policies, tmp_path / "e", "gymdr report", silent)
    # 4 points of 4 parameters: 4 x (4 + 2) cells
    assert sets(found.document) == {"nominal": (1, 2), "training": (1, 2), "sobol": (24, 2)}


def test_each_training_distribution_is_filled_and_played_by_all(tmp_path: Path) -> None:
    runs = [
        train_tiny_run(tmp_path / "a", "--randomization", "none", "--randomize", "gravity=normal:-8:1:-12:0"),
        train_tiny_run(tmp_path / "b", "--randomization", "wide"),
        train_tiny_run(tmp_path / "c", "--randomization", "none", "--randomize", "gravity=-9.0"),  # nothing varies
    ]
    policies = opened(*runs)
    found = complete_evaluation(policies, tmp_path / "e", "gymdr report", silent)
    filled = {name: count for name, count in sets(found.document).items() if name.startswith("sobol")}
    assert filled == {"sobol: a": (4 * 3, 2), "sobol: wide": (4 * 6, 2)}
    comparison = Comparison(groups=group_policies(policies), evaluation=found)
    assert [comparison.main_set(group) for group in range(3)] == ["sobol: a", "sobol: wide", "sobol: a"]
    assert comparison.place("sobol: a") == "Over the distribution of 'a'"
    assert comparison.place("training: a") == "On the training draws of 'a'"
    said = " ".join(findings(comparison))
    assert "Over the distribution of 'a', 'a' achieves" in said
    assert "Over the distribution of 'wide', 'b' achieves" in said
    captions = [table.caption for table in sensitivity_tables(comparison)]
    assert [caption.split(", ")[1] for caption in captions] == [
        f"over the distribution of '{n}'" for n in ("a", "wide")
    ]


def test_what_is_there_is_kept_and_only_what_is_missing_played(run: Path, tmp_path: Path) -> None:
    policies = opened(run)
    space = param_space_of(policies[0].env)
    assert space is not None
    asked = [CellSet.nominal(3), CellSet.grid(space, {"gravity": [-9.0, -3.0]}, 1)]
    before = evaluate_policies(policies, asked, tmp_path / "e", success=77.0, command="gymdr evaluate --grid ...")
    found = complete_evaluation(policies, tmp_path / "e", "gymdr report", silent)
    # nothing was randomized: the distribution is that of the preset "default"
    assert sets(found.document) == {"nominal": (1, 3), "grid": (2, 1), "sobol: default": (24, 2)}
    assert found.returns("grid").tolist() == before.returns("grid").tolist()
    assert found.document["success"] == 77.0
    assert found.document["command"] == "gymdr evaluate --grid ... && gymdr report"


def test_a_complete_evaluation_is_read_and_not_touched(run: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in (run / "evaluation").iterdir()}

    def fail(title: str, done: int, total: int) -> None:
        raise AssertionError("played again")

    complete_evaluation(opened(run), run / "evaluation", "gymdr report again", fail)
    assert {path.name: path.stat().st_mtime_ns for path in (run / "evaluation").iterdir()} == before


def test_a_run_that_was_trained_anew_on_other_draws_is_played_on_these(tmp_path: Path) -> None:
    train_tiny_run(tmp_path / "run", "--randomization", "default")
    complete_evaluation(opened(tmp_path / "run"), tmp_path / "e", "gymdr report", silent)
    train_tiny_run(tmp_path / "run", "--randomization", "wide", "--overwrite")
    policies = opened(tmp_path / "run")
    (tmp_path / "e").rename(tmp_path / "run/evaluation")  # where another policy's may be
    found = complete_evaluation(policies, tmp_path / "run/evaluation", "gymdr report", silent)
    drawn = {form["name"]: form.get("randomization") for form in found.document["sets"]}
    assert policies[0].randomization is not None
    assert drawn["training"] == drawn["sobol"] == policies[0].randomization.to_dict()
