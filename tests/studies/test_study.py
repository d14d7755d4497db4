"""A study trains what is missing, goes on after any interruption, and says what came out and what is missing."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gym_dr
from gym_dr.errors import (
    BusyFolderError,
    ConfigError,
    GymDrError,
    Interrupted,
    RunFolderError,
    TrainingError,
    UnknownNameError,
)
from gym_dr.runs import launch
from gym_dr.runs.folder import locked
from gym_dr.runs.launch import Ended
from gym_dr.studies.results import StudyResult
from tests.cli.command import gymdr, refused
from tests.conftest import run_here
from tests.studies.stopping import Killed, stopping
from tests.studies.study_sample import TINY, outcome, quick_page, tiny, trained_at
from tests.ways import Way, same_functions, traced

PROCESSES = "gym_dr.runs.launch.run_commands"


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[pytest.MonkeyPatch]:
    """No processes, pictures of runs, and plots in the page; the examples' studies have them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "run_commands", run_here)
        patch.setattr("gym_dr.api.run.plot_training", lambda _, path: path.touch())
        patch.setattr("gym_dr.reports.assemble.assemble", quick_page)
        yield patch


def study(form: Any, folder: Path, **options: Any) -> StudyResult:
    return gym_dr.study(form, output=folder, progress=False, **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, dict[str, Any]]:
    """A study that nothing has disturbed, and all that it has written."""
    folder = tmp_path_factory.mktemp("study") / "out"
    return study(TINY, folder), outcome(folder)


@pytest.fixture
def copied(finished: tuple[StudyResult, dict[str, Any]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished[0].folder, tmp_path / "out"))


# ---- what comes out --------------------------------------------------------------------------------------------------


def test_results_are_means_of_seeds_with_students_intervals(finished: tuple[StudyResult, dict[str, Any]]) -> None:
    found = finished[0]
    episodes = found.evaluation.episodes.query("set == 'training: wide'")
    one, two = (float(episodes[episodes["policy"] == f"asymmetric/seed-{s}"]["return"].mean()) for s in (1, 2))
    row = found.results.query("variant == 'asymmetric' and set == 'training: wide' and statistic == 'mean'").iloc[0]
    half = stats.t.ppf(0.975, 1) * abs(one - two) / 2  # standard deviation |a - b| / sqrt 2, by sqrt 2 seeds
    assert row["value"] == pytest.approx((one + two) / 2)
    assert (row["low"], row["high"]) == pytest.approx((row["value"] - half, row["value"] + half))
    assert (row["steps"], row["budgets"], row["seeds"], row["seeds_missing"]) == (384, "equal", 2, 0)


def test_the_worst_tenth_and_cell_are_those_of_each_seed_and_solved_a_share(
    finished: tuple[StudyResult, dict[str, Any]],
) -> None:
    found = finished[0]
    returns = found.evaluation.returns("grid")[:2]  # of the two seeds of nominal: (2, cells, episodes)
    rows = found.results.query("variant == 'nominal' and set == 'grid'").set_index("statistic")["value"]
    fresh = pd.read_csv(found.folder / "evaluation/worst_cells.csv").query("set == 'grid'")
    worst = [fresh.query(f"policy == 'nominal/seed-{seed}'") for seed in (1, 2)]
    assert [set(one["cell"]) for one in worst] == [{cell} for cell in returns.mean(axis=2).argmin(axis=1)]
    assert rows["worst_cell"] == pytest.approx(np.mean([one["return"].mean() for one in worst]))
    assert rows["success_rate"] == pytest.approx((returns >= -150).mean())
    ordered = np.sort(returns.reshape(2, -1), axis=1)
    assert rows["cvar_10"] == pytest.approx(ordered[:, : math.ceil(0.1 * ordered.shape[1])].mean())


def test_comparisons_are_paired_by_seed_and_corrected_in_a_family(finished: tuple[StudyResult, dict[str, Any]]) -> None:
    table = finished[0].comparisons.query("statistic == 'mean'")
    assert len(table) == 2 * 3  # two pairs on nominal, training and grid
    row = table.query("variant == 'wide' and set == 'grid'").iloc[0]
    means = finished[0].evaluation.returns("grid").mean(axis=(1, 2))  # nominal 1 and 2, wide 1 and 2, critic 1 and 2
    assert row["value"] == pytest.approx(np.mean(means[2:4] - means[:2]))
    assert row["p"] == pytest.approx(stats.ttest_rel(means[2:4], means[:2]).pvalue)
    smallest = table.sort_values("p").iloc[0]
    assert smallest["p_holm"] == pytest.approx(min(1.0, 6 * smallest["p"]))


def test_everything_is_in_the_folder(finished: tuple[StudyResult, dict[str, Any]]) -> None:
    folder = finished[0].folder
    pd.testing.assert_frame_equal(pd.read_csv(folder / "results.csv"), finished[0].results.reset_index(drop=True))
    assert list(pd.read_csv(folder / "times.csv")["seconds"] > 0) == [True] * 6
    assert json.loads((folder / "study.json").read_text())["variants"]["asymmetric"]["config"]["a2c"]["critic_context"]
    assert isinstance(gym_dr.load_run(folder / "runs" / "wide"), gym_dr.Runs)  # ordinary run folders
    page = (folder / "report.html").read_text()
    for text in ("Study: 3 variants", "wide minus nominal", "Holm"):
        assert text in page


def test_contrasts_of_factors_are_differences_of_means_over_the_seeds_that_all_have(tmp_path: Path) -> None:
    form = {key: value for key, value in TINY.items() if key not in ("variants", "evaluation")}
    draws = {"wide": {"randomization": "wide"}, "none": {"randomization": "none", "seeds": 1}}
    form["factors"] = {"draws": draws, "sees": {"nobody": {}, "critic": {"critic_context": True}}}
    found = study(form | {"evaluation": {"episodes": 2, "success": -150.0}}, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.glob("out/runs/*/*")) == ["seed-1"] * 3 + ["seed-2"] * 2
    assert list(found.results.query("variant == 'none'")["seeds_missing"].unique()) == [0]  # none were asked for
    means = found.evaluation.returns("training: wide").mean(axis=(1, 2))  # baseline 1 and 2, none 1, critic 1 and 2
    table = found.comparisons.query("set == 'training: wide' and statistic == 'mean'").set_index("variant")
    critic, none = table.loc["sees=critic"], table.loc["draws=none"]
    assert (none["value"], none["seeds"]) == (pytest.approx(means[2] - means[0]), 1)
    assert critic["value"] == pytest.approx(np.mean(means[3:] - means[:2]))
    assert critic["p"] == pytest.approx(stats.ttest_rel(means[3:], means[:2]).pvalue)
    lowest = found.comparisons.query("statistic == 'mean'")["p"].min()
    assert found.comparisons.query("p == @lowest")["p_holm"].iloc[0] == pytest.approx(min(1.0, 2 * lowest))  # 2 tests
    assert "  none (1 seed)  " in found.text
    assert "  sees=critic minus sees=nobody  " in found.text


# ---- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "count"),
    [
        pytest.param("gym_dr.runs.folder.write_atomically", 3, marks=pytest.mark.slow),  # while run folders are made
        ("gym_dr.cli.resume.load_run", 2),  # while runs are trained
        # while episodes are played, as in tests/evaluation/test_evaluate.py
        pytest.param("gym_dr.evaluation.evaluate.play_batch", 9, marks=pytest.mark.slow),
        pytest.param("gym_dr.studies.results.write_atomically", 2, marks=pytest.mark.slow),  # while tables are written
    ],
)
def test_a_study_that_was_cut_goes_on_to_the_same_files_and_trains_nothing_twice(
    target: str, count: int, finished: tuple[StudyResult, dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping(target, count, Killed(), patch)
        with pytest.raises(Killed):
            study(TINY, tmp_path / "out")
    before = trained_at(tmp_path / "out")
    study(TINY, tmp_path / "out")
    assert before.items() <= trained_at(tmp_path / "out").items()
    assert outcome(tmp_path / "out") == finished[1]


def test_a_study_that_is_done_plays_and_trains_nothing(
    copied: Path, finished: tuple[StudyResult, dict[str, Any]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping("gym_dr.evaluation.evaluate.play_batch", 0, Killed(), patch)
        stopping(PROCESSES, 0, Killed(), patch)
        study(TINY, copied)
    assert outcome(copied) == finished[1]


@same_functions
def test_a_variant_passes_through_at_most_nine_files_which_contributing_names(copied: Path) -> None:
    way = Way(lambda value: isinstance(value, str) and value == "asymmetric", "StudyResult.results")
    with traced(way):
        study(TINY, copied)
    way.check("gymdr study FILE", most=9)


def test_another_variant_or_seed_trains_and_plays_only_that(copied: Path) -> None:
    before, played = trained_at(copied), pd.read_csv(copied / "evaluation" / "episodes.csv")
    grown = study(tiny(seeds=[1, 2, 3], variants={"random": {"randomization": "random"}}), copied)
    after = trained_at(copied)
    assert len(after) == 4 * 3
    assert {run: after[run] for run in before} == before
    same = grown.evaluation.episodes.merge(played[["policy", "set", "cell", "episode", "return"]], validate="1:1")
    assert len(same) == len(played)
    assert set(grown.results["seeds"]) == {3}


def test_with_references_the_tables_have_the_regret_of_the_evaluation_until_the_file_names_none(copied: Path) -> None:
    form = tiny(evaluation=TINY["evaluation"] | {"references": ["asymmetric"]})
    found = study(form, copied)
    assert found.evaluation.document["references"] == ["asymmetric/seed-1", "asymmetric/seed-2"]
    regret = found.evaluation.regret.query("set == 'training: wide'").set_index("policy")["regret"]
    row = found.results.query("variant == 'nominal' and set == 'training: wide' and statistic == 'regret'").iloc[0]
    assert row["value"] == pytest.approx(regret[["nominal/seed-1", "nominal/seed-2"]].mean())
    assert "\nRegret: how much more the best known policy returns\n" in (copied / "tables.txt").read_text()
    assert "regret" not in set(study(tiny(), copied).results["statistic"])


def test_a_variant_that_left_the_file_stays_in_its_folder_and_out_of_the_tables(copied: Path) -> None:
    form = tiny()
    del form["variants"]["asymmetric"]
    found = study(form, copied)
    assert set(found.results["variant"]) == {"nominal", "wide"}
    assert len(found.evaluation.policies) == 4
    assert (copied / "runs" / "asymmetric" / "seed-1" / "actor.pt").exists()
    assert set(study(TINY, copied).results["variant"]) == {"nominal", "wide", "asymmetric"}


def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping("gym_dr.studies.folder.train_folders", 0, KeyboardInterrupt(), patch)
        with pytest.raises(Interrupted, match="Run the same command, or make the same call, to go on"):
            study(TINY, tmp_path / "out")


# ---- runs that fail --------------------------------------------------------------------------------------------------


def test_a_run_that_fails_is_named_and_the_others_are_in_the_tables(copied: Path, tmp_path: Path) -> None:
    def fail(commands: Any, *_: Any) -> dict[str, Ended]:
        assert [Path(path).parts[-2:] for path in commands] == [("wide", "seed-2")]
        return {path: Ended(code=2, message="Update 1: the loss is NaN.") for path in commands}

    shutil.rmtree(copied / "runs" / "wide" / "seed-2")  # so that it is trained, as the only one
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "run_commands", fail)
        found = study(TINY, copied)
        (tmp_path / "study.json").write_text(json.dumps(TINY))
        result = gymdr("study", tmp_path / "study.json", "--output", copied)
    assert found.missing == {"wide/seed-2": "Update 1: the loss is NaN."}
    assert found.results.query("variant == 'wide'")["seeds_missing"].unique() == [1]
    assert found.comparisons.query("variant == 'wide'")["seeds"].unique() == [1]
    assert "Missing: wide/seed-2 (Update 1: the loss is NaN.)" in found.text
    assert "  wide (1 of 2 seeds)  " in found.text
    assert result.out.startswith(found.text)  # tables, the same for a terminal and a pipe
    assert "Missing runs: wide/seed-2" in refused(result)
    assert study(TINY, copied).missing == {}  # what was wrong is right now


def test_a_study_of_which_no_run_can_be_trained_is_an_error(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            launch, "run_commands", lambda runs, *_: dict.fromkeys(runs, Ended(code=2, message="the loss is NaN"))
        )
        with pytest.raises(TrainingError, match=r"No run could be trained:\n  nominal/seed-1: the loss is NaN"):
            study(TINY, tmp_path / "out")


# ---- refused before anything is trained ------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_trained() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        stopping(PROCESSES, 0, Killed(), patch)
        yield


@pytest.mark.usefixtures("nothing_is_trained")
def test_a_variant_that_was_edited_is_refused_with_what_differs_and_how_to_go_on(copied: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        study(tiny(variants={"wide": {"randomization": "wide", "gamma": 0.5}}), copied)
    assert "wide: a2c.gamma was 0.996 and is 0.5" in str(refusal.value)
    assert "Give it another name, or train it again: `overwrite=['wide']`" in str(refusal.value)


def test_a_variant_that_is_overwritten_is_trained_again_once(copied: Path) -> None:
    form = tiny(variants={"wide": {"randomization": "wide", "gamma": 0.5}})
    before = trained_at(copied)
    study(form, copied, overwrite=["wide"])
    after = trained_at(copied)
    assert {run for run in before if before[run] != after[run]} == {"wide/seed-1", "wide/seed-2"}
    study(form, copied, overwrite=["wide"])
    assert trained_at(copied) == after


@pytest.mark.usefixtures("nothing_is_trained")
@pytest.mark.parametrize(
    ("form", "options", "error", "message"),
    [
        (tiny(env="gym_dr/LunarLanderContinuousDR-v3"), {}, RunFolderError, "holds another study"),
        ({**TINY, "variants": {"other": {}}}, {}, RunFolderError, "holds another study, asymmetric, nominal, wide on"),
        (TINY, {"overwrite": ["wyde"]}, UnknownNameError, "Did you mean 'wide'"),
        (TINY, {"launcher": "rey"}, UnknownNameError, "Did you mean 'ray'"),
        (TINY, {"ray_address": "here"}, ConfigError, "expected with `launcher='ray'`"),
        (tiny(settings={"device": "meta"}), {}, ConfigError, "device"),
    ],
)
def test_what_does_not_fit_the_folder_is_refused(
    form: dict[str, Any], options: dict[str, Any], error: type[GymDrError], message: str, copied: Path
) -> None:
    before = outcome(copied)
    with pytest.raises(error, match=message):
        study(form, copied, **options)
    assert outcome(copied) == before


@pytest.mark.usefixtures("nothing_is_trained")
def test_a_folder_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="already exists and holds no study; choose another `output`"):
        study(TINY, tmp_path)
    with pytest.raises(RunFolderError, match=r"notes.txt: cannot be read"):
        study(TINY, tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "study.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"study.json: expected a table"):
        study(TINY, tmp_path / "other")


@pytest.mark.usefixtures("nothing_is_trained")
def test_a_folder_in_use_is_refused(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_dr.runs.folder.GRACE", 0.0)
    with locked(copied), pytest.raises(BusyFolderError, match="is in use by another process"):
        study(TINY, copied)
    with locked(copied):  # it is free again
        pass


# ---- real processes --------------------------------------------------------------------------------------------------


@pytest.mark.slow  # its siblings are those that are cut, above
@pytest.mark.parametrize("seed", [1, 2])
def test_a_study_that_is_killed_at_random_points_ends_with_the_same_files(seed: int, tmp_path: Path) -> None:
    arguments = ["10", str(seed), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.studies.kill_study", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # its sibling is the one above
def test_processes_that_train_end_with_the_study_and_the_same_command_goes_on(tmp_path: Path) -> None:
    form = tiny(a2c={"updates": 400, "rollout_steps": 64, "hidden_sizes": [8]}, seeds=[1])
    (tmp_path / "study.json").write_text(json.dumps(form | {"settings": {"num_envs": 2, "checkpoint_every": 50}}))
    command = [sys.executable, "-c", "from gym_dr.cli.main import main; main()", "study", tmp_path / "study.json"]
    command += ["--output", tmp_path / "out", "--workers", "2"]
    subprocess.run(command, check=True, capture_output=True)
    expected = outcome(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not trained_at(tmp_path / "out"):
            assert process.poll() is None, "it has ended already"
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) >= 2
        process.kill()
    until = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until, "a process goes on without the study"
        time.sleep(0.1)
    subprocess.run(command, check=True, capture_output=True)
    assert outcome(tmp_path / "out") == expected


# Ray leaves sockets and processes to the garbage collector
@pytest.mark.slow  # its sibling is test_what_a_task_elsewhere_sends_back_is_the_run
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_ray_gives_the_same_files_as_processes(finished: tuple[StudyResult, dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra gym-dr[ray] is not installed")
    study(TINY, tmp_path / "out", launcher="ray")
    assert outcome(tmp_path / "out") == finished[1]
