from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gym_dr import Randomization
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import BusyFolderError, RunFolderError
from gym_dr.evaluation.evaluate import EpisodeTable, evaluate_policies
from gym_dr.evaluation.failures import FEWEST, FRESH_SEED
from gym_dr.evaluation.question import EVALUATION_SEED
from gym_dr.evaluation.results import COLUMNS, Evaluation, read_episodes, write_document
from gym_dr.evaluation.sets import CellSet
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.open import open_runs
from gym_dr.runs.configure import open_run
from gym_dr.runs.folder import locked
from tests.policies.tiny_run import train_tiny_run

DRAWS = CellSet.of_draws("training", Randomization({"gravity": (-11, -9)}), 3)
GRID = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -6], "wind_power": [0, 20]}, 2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, of which tests take copies."""
    folder = tmp_path_factory.mktemp("runs")
    train_tiny_run(folder / "one", "--seed", "1")
    train_tiny_run(folder / "two", "--seed", "2")
    return folder


def opened(*paths: Path) -> list[FrozenPolicy]:
    return open_runs([open_run(str(path)) for path in paths])


def play(runs: Sequence[Path], folder: Path, *sets: CellSet, **options: Any) -> Evaluation:
    return evaluate_policies(opened(*runs), sets, folder, **options)


@pytest.fixture(scope="module")
def played(runs: Path) -> Evaluation:
    return play([runs / "one", runs / "two"], runs / "out", CellSet.nominal(2), DRAWS, GRID)


@pytest.fixture(scope="module")
def hopping(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """An evaluation in an environment that reports the terms of its reward."""
    folder = tmp_path_factory.mktemp("hopping")
    run = train_tiny_run(folder / "hopper", "--env", "gym_dr/HopperDR-v5")
    weight = CellSet.of_draws("weight", Randomization({"body_mass:torso": (3.0, 4.0)}), 3)
    return play([run], folder / "out", CellSet.nominal(2), weight)


def rows(evaluation: Evaluation, **which: str) -> pd.DataFrame:
    table = evaluation.episodes
    for column, value in which.items():
        table = table[table[column] == value]
    return table.reset_index(drop=True)


def test_every_policy_meets_the_same_draws_and_seeds(played: Evaluation) -> None:
    one, two = rows(played, policy="one"), rows(played, policy="two")
    differing = ["policy", "return", "steps", "terminated", "outcome"]
    pd.testing.assert_frame_equal(one.drop(columns=differing), two.drop(columns=differing))
    assert (one["return"] != two["return"]).any()


def test_each_episode_has_its_own_seed_and_the_values_of_its_cell_its_draw_or_nominal_ones(played: Evaluation) -> None:
    table = rows(played, policy="one", set="grid")
    assert table["seed"].tolist() == [EVALUATION_SEED + k for k in range(8)]
    assert table["cell"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table["gravity"].tolist() == [-12] * 4 + [-6] * 4
    assert table["wind_power"].tolist() == [0, 0, 20, 20] * 2
    assert set(table["enable_wind"]) == {1.0}
    drawn = rows(played, policy="one", set="training")
    assert len(set(drawn["gravity"])) == 3
    assert drawn["gravity"].between(-11, -9).all()
    assert set(drawn["wind_power"]) == {15.0}
    assert set(rows(played, set="nominal")["gravity"]) == {-10.0}


def test_the_values_of_a_cell_are_in_force(runs: Path, tmp_path: Path) -> None:
    """Without gravity nothing falls: such episodes are longer than those under the strongest."""
    strong_and_none = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, 0]}, 4)
    table = play([runs / "one"], tmp_path / "out", strong_and_none).episodes
    lengths = table.groupby("gravity")["steps"].mean()
    assert lengths[0.0] > 1.3 * lengths[-12.0]


def test_files_give_the_evaluation_back(played: Evaluation) -> None:
    again = Evaluation.load(played.folder)
    assert again.document == played.document
    pd.testing.assert_frame_equal(again.episodes, played.episodes)
    assert again.returns("grid").shape == (2, 4, 2)
    assert again.returns("grid")[1, 2].tolist() == rows(played, policy="two", set="grid")["return"][4:6].tolist()


def test_the_document_sums_every_policy_and_set_up(played: Evaluation) -> None:
    document = played.document
    assert [(row["policy"], row["set"]) for row in document["results"]] == [
        (policy, cells) for cells in ("nominal", "training", "grid") for policy in ("one", "two")
    ]
    result = next(row for row in document["results"] if (row["policy"], row["set"]) == ("two", "grid"))
    returns = played.returns("grid")[1]
    assert result["statistics"]["mean"]["value"] == pytest.approx(returns.mean())
    assert result["worst_cell"]["cell"] == returns.mean(1).argmin()
    assert result["worst_cell"]["first_mean"] == pytest.approx(returns.mean(1).min())
    difference = next(row for row in document["differences"] if row["set"] == "grid")
    assert (difference["policy"], difference["other"]) == ("one", "two")
    expected = played.returns("grid")[0].mean() - returns.mean()
    assert difference["statistics"]["mean"]["value"] == pytest.approx(expected)


def test_the_worst_cell_of_each_policy_is_played_again_with_seeds_that_no_episode_had(played: Evaluation) -> None:
    fresh = pd.read_csv(played.folder / "worst_cells.csv")
    assert fresh["seed"].tolist() == [FRESH_SEED + k for k in range(FEWEST)] * 2
    assert not set(fresh["seed"]) & set(played.episodes["seed"])
    for policy, rows in fresh.groupby("policy"):
        (result,) = (r for r in played.document["results"] if (r["policy"], r["set"]) == (policy, "grid"))
        worst = result["worst_cell"]
        assert {name: set(rows[name]) for name in worst["params"]} == {n: {v} for n, v in worst["params"].items()}
        assert set(rows["cell"]) == {worst["cell"]}
        assert (worst["episodes"], worst["min"]) == (FEWEST, rows["return"].min())
        assert worst["mean"]["value"] == pytest.approx(rows["return"].mean())
        assert worst["mean"]["low"] < worst["mean"]["value"] < worst["mean"]["high"]


def test_terms_of_rewards_are_means_over_the_episodes_of_a_set_and_make_a_table(hopping: Evaluation) -> None:
    terms = ["reward_forward", "reward_ctrl", "reward_survive"]
    assert list(hopping.episodes.columns[-3:]) == terms
    assert hopping.episodes[terms].sum(axis=1).tolist() == pytest.approx(hopping.episodes["return"].tolist())
    for result in hopping.document["results"]:
        own = rows(hopping, policy=result["policy"], set=result["set"])
        assert {name: found["value"] for name, found in result["reward_terms"].items()} == pytest.approx(
            own[terms].mean().to_dict()
        )
    tables = [table for table in hopping.tables if "hopper" in table.caption]
    assert [[name for name, *_ in table.rows] for table in tables] == [terms]
    assert tables[0].columns == ["", "nominal", "weight"]


def test_an_interrupted_evaluation_with_terms_goes_on_to_the_same_rows(hopping: Evaluation, tmp_path: Path) -> None:
    def stop(title: str, done: int, total: int) -> None:
        if done:
            raise StopError

    run = hopping.folder.parent / "hopper"
    with pytest.raises(StopError):
        play([run], tmp_path / "out", *hopping.sets, progress=stop)
    pd.testing.assert_frame_equal(play([run], tmp_path / "out", *hopping.sets).episodes, hopping.episodes)


def test_a_term_that_later_episodes_do_not_report_is_0_there(tmp_path: Path) -> None:
    table = EpisodeTable(tmp_path / "episodes.csv")
    row = dict(zip(COLUMNS, ["one", "nominal", 0, 0, 7, 1.0, 2, 0, ""], strict=True))
    with table.growing() as add:
        add({**row, "reward_far": 3.0})
        add({**row, "episode": 1, "reward_odd": 4.0})
    assert table.rows["reward_far"].tolist() == read_episodes(table.path)["reward_far"].tolist() == [3.0, 0.0]
    assert "reward_odd" not in table.rows


def test_a_single_cell_that_nobody_chose_is_not_played_again(runs: Path, tmp_path: Path) -> None:
    found = play([runs / "one"], tmp_path / "out", CellSet.nominal(2), DRAWS)
    assert [row["worst_cell"] for row in found.document["results"]] == [None, None]
    assert not (tmp_path / "out/worst_cells.csv").exists()


def test_a_worst_cell_that_is_another_one_than_before_is_played_anew(runs: Path, tmp_path: Path) -> None:
    before = play([runs / "one"], tmp_path / "out", GRID)
    path = tmp_path / "out/worst_cells.csv"
    table, worst = pd.read_csv(path), before.document["results"][0]["worst_cell"]["cell"]
    table.assign(cell=(worst + 1) % 4).to_csv(path, index=False)
    write_document(tmp_path / "out", {**before.document, "complete": False})
    again = play([runs / "one"], tmp_path / "out", GRID)
    assert again.document == before.document
    assert set(pd.read_csv(path)["cell"]) == {worst}


def test_the_nearest_cells_that_seem_to_fail_are_played_again_even_if_they_are_not_the_worst(
    runs: Path, tmp_path: Path
) -> None:
    cells = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -6], "wind_power": [10, 20]}, 5)
    never: dict[str, Any] = {"success": 1e6}

    def stop(title: str, done: int, total: int) -> None:
        if done == 20 + FEWEST + 3:
            raise StopError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gym_dr.policies.frozen.NATIVE_ENVS", 1)
        with pytest.raises(StopError):
            play([runs / "one"], tmp_path / "out", cells, progress=stop, **never)
    (result,) = play([runs / "one"], tmp_path / "out", cells, **never).document["results"]
    worst, nearest = result["worst_cell"]["cell"], result["least_perturbation"]
    # gravity is nominal at -10, wind power at 15: cell 0 moves them by 2 of 6 and 5 of 10, cell 1 as much the other way
    assert (nearest["cell"], nearest["distance"], nearest["success_rate"]) == (0, 0.5, 0.0)
    assert worst != 0
    fresh = pd.read_csv(tmp_path / "out/worst_cells.csv")
    assert fresh["cell"].tolist() == sorted([0, 1, 2, 3] * FEWEST)
    assert fresh["seed"].tolist() == [FRESH_SEED + k for k in range(FEWEST)] * 4
    assert result["worst_cell"]["mean"]["value"] == pytest.approx(fresh[fresh["cell"] == worst]["return"].mean())


def play_with_reference(runs: Path, folder: Path, *sets: CellSet) -> Evaluation:
    one, two = opened(runs / "one", runs / "two")
    return evaluate_policies([one, dataclasses.replace(two, reference=True)], sets, folder)


def test_a_reference_plays_the_same_episodes_and_gives_regret(runs: Path, tmp_path: Path, played: Evaluation) -> None:
    found = play_with_reference(runs, tmp_path / "out", CellSet.nominal(2), DRAWS, GRID)
    pd.testing.assert_frame_equal(found.episodes, played.episodes)
    assert found.document["references"] == ["two"]
    assert [entry["set"] for entry in found.document["best_known"]] == ["nominal", "training", "grid"]
    table = found.regret.query("policy == 'one' and set == 'grid'")
    assert table["return"].tolist() == pytest.approx(found.returns("grid")[0].mean(1).tolist())
    assert (table["best_known"] - table["return"]).tolist() == pytest.approx(table["regret"].tolist())
    best = [found.policies[k] for k in found.returns("grid").mean(2).argmax(0)]
    assert table["best"].tolist() == best
    assert table["gravity"].tolist() == [-12, -12, -6, -6]
    regret = found.summary.query("policy == 'one' and set == 'grid' and statistic == 'regret'").iloc[0]
    assert regret["value"] == pytest.approx(table["regret"].mean())
    assert regret["low"] < regret["value"] < regret["high"]
    assert len(found.regret) == 2 * (1 + 1 + 4)


def test_regret_is_the_same_after_evaluating_again_and_gone_without_references(runs: Path, tmp_path: Path) -> None:
    play_with_reference(runs, tmp_path / "out", GRID)
    before = content(tmp_path / "out")
    play_with_reference(runs, tmp_path / "out", GRID)
    assert content(tmp_path / "out") == before
    plain = play([runs / "one", runs / "two"], tmp_path / "out", GRID)
    assert plain.document["best_known"] == []
    assert "regret" not in plain.document["results"][0]["statistics"]
    assert len(plain.regret) == 0


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class StopError(Exception):
    """In place of Ctrl-C."""


@pytest.mark.parametrize(
    "after", [5, 12, *(pytest.param(more, marks=pytest.mark.slow) for more in (1, 11, 20))]
)  # from 12 on in the worst cell
def test_an_interrupted_evaluation_goes_on_to_the_same_result(
    runs: Path, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.policies.frozen.NATIVE_ENVS", 3)  # several waves a set
    sets = (CellSet.nominal(4), GRID)
    whole = play([runs / "one"], tmp_path / "whole", *sets)
    counted: list[int] = []

    def stop(title: str, done: int, total: int) -> None:
        counted.append(done)
        if done >= after:
            raise StopError

    with pytest.raises(StopError):
        play([runs / "one"], tmp_path / "cut", *sets, progress=stop)
    with pytest.raises(RunFolderError, match="was interrupted"):
        Evaluation.load(tmp_path / "cut")
    files = [tmp_path / "cut/episodes.csv", tmp_path / "cut/worst_cells.csv"]
    kept = sum(len(pd.read_csv(path)) for path in files if path.exists())
    assert kept % 3 in (0, 1)  # whole waves: of 3 episodes, and one of 1 at the end of four
    assert kept == counted[-1] >= after
    counted.clear()
    play([runs / "one"], tmp_path / "cut", *sets, progress=lambda title, done, total: counted.append(done))
    assert counted[0] == kept
    assert counted[-1] == 12 + FEWEST
    assert content(tmp_path / "cut") == content(tmp_path / "whole") | {
        "evaluation.json": (whole.folder / "evaluation.json").read_bytes()
    }


def test_an_evaluation_killed_before_its_first_episodes_were_written_goes_on(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr("gym_dr.evaluation.evaluate.write_episodes", stop)
        with pytest.raises(StopError):
            play([runs / "one"], tmp_path / "out", GRID)
    assert len(play([runs / "one"], tmp_path / "out", GRID).episodes) == 8


def test_rows_that_a_crash_cut_short_are_played_again(runs: Path, tmp_path: Path) -> None:
    before = play([runs / "one"], tmp_path / "out", GRID).episodes
    path = tmp_path / "out/episodes.csv"
    path.write_bytes(path.read_bytes()[:-9])  # within the last row's last number
    with pytest.raises(RunFolderError, match="expected each of 8 episodes once, in order; got 7 rows"):
        Evaluation.load(tmp_path / "out")
    pd.testing.assert_frame_equal(play([runs / "one"], tmp_path / "out", GRID).episodes, before)


@pytest.mark.parametrize("damage", [("cell", 4), ("cell", -1), ("episode", 2), ("episode", -1)], ids=str)
@pytest.mark.parametrize("name", ["episodes.csv", "worst_cells.csv"])
def test_a_row_of_no_cell_is_refused_and_nothing_changes(
    runs: Path, tmp_path: Path, name: str, damage: tuple[str, int]
) -> None:
    (column, value), path = damage, tmp_path / "out" / name
    play([runs / "one"], tmp_path / "out", GRID)
    table = pd.read_csv(path)
    table.loc[len(table) - 1, column] = value if name == "episodes.csv" or column == "cell" else value * FEWEST
    table.to_csv(path, index=False)
    before = content(tmp_path / "out")
    with pytest.raises(RunFolderError, match=name):
        play([runs / "one"], tmp_path / "out", GRID)
    assert content(tmp_path / "out") == before
    if name == "episodes.csv":
        with pytest.raises(RunFolderError):
            Evaluation.load(tmp_path / "out")


def test_rows_twice_or_out_of_order_are_not_taken_for_others(runs: Path, tmp_path: Path) -> None:
    before = play([runs / "one"], tmp_path / "out", GRID).episodes
    path = tmp_path / "out/episodes.csv"
    for table in (before.iloc[::-1], before.iloc[[0, *range(7)]]):
        table.to_csv(path, index=False)
        with pytest.raises(RunFolderError):
            Evaluation.load(tmp_path / "out")
        pd.testing.assert_frame_equal(play([runs / "one"], tmp_path / "out", GRID).episodes, before)


def total_played(runs: Sequence[Path], folder: Path, *sets: CellSet, **options: Any) -> int:
    """How many episodes an evaluation plays, beside those that are there."""
    counted: list[int] = []
    play(runs, folder, *sets, progress=lambda title, done, total: counted.append(done), **options)
    return counted[-1] - counted[0] if counted else 0


def test_evaluating_again_plays_nothing_and_another_set_is_added(runs: Path, tmp_path: Path) -> None:
    one = [runs / "one"]
    assert total_played(one, tmp_path / "out", CellSet.nominal(2)) == 2
    assert total_played(one, tmp_path / "out", CellSet.nominal(2)) == 0
    assert total_played(one, tmp_path / "out", CellSet.nominal(2), DRAWS) == 3
    assert total_played(one, tmp_path / "out", CellSet.nominal(2)) == 0
    assert [c.name for c in Evaluation.load(tmp_path / "out").sets] == ["nominal", "training"]


def test_a_set_of_another_definition_replaces_the_old_one(runs: Path, tmp_path: Path) -> None:
    other = CellSet.grid(LUNAR_LANDER, {"lander_density": [4, 6]}, 2)
    play([runs / "one"], tmp_path / "out", GRID)
    evaluation = play([runs / "one"], tmp_path / "out", other)
    assert list(evaluation.document["parameters"]) == ["lander_density"]
    assert evaluation.returns("grid").shape == (1, 2, 2)


def test_a_second_evaluation_into_a_folder_is_refused_until_the_first_has_ended(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.runs.folder.GRACE", 0.0)
    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"), pytest.raises(BusyFolderError, match="is in use by another process"):
        play([runs / "one"], tmp_path / "out", GRID)
    assert len(play([runs / "one"], tmp_path / "out", GRID).episodes) == 8


def test_episodes_of_an_interrupted_evaluation_are_not_dropped_for_those_of_another(runs: Path, tmp_path: Path) -> None:
    def stop(title: str, done: int, total: int) -> None:
        if done > 5:  # 2 nominal ones and a wave of 3 are written
            raise StopError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gym_dr.policies.frozen.NATIVE_ENVS", 3)
        with pytest.raises(StopError):
            play(
                [runs / "one"], tmp_path / "out", CellSet.nominal(2), GRID, progress=stop, command="gymdr evaluate one"
            )
        before = content(tmp_path / "out")
        with pytest.raises(
            RunFolderError, match=r"on grid that was interrupted. Finish it with: gymdr evaluate one\nOr choose"
        ):
            play([runs / "one"], tmp_path / "out", CellSet.nominal(2), DRAWS)
        assert content(tmp_path / "out") == before
        assert total_played([runs / "one"], tmp_path / "out", CellSet.nominal(2), GRID) < 2 + 8 + FEWEST


def test_fewer_episodes_of_a_cell_than_there_are_replace_none(runs: Path, tmp_path: Path) -> None:
    play([runs / "one"], tmp_path / "out", CellSet.nominal(4), DRAWS, GRID)
    other = CellSet.of_draws("training", Randomization({"gravity": (-11, -10)}), 2)
    few_of_each = CellSet.grid(LUNAR_LANDER, {"gravity": [-12, -6], "wind_power": [0, 20]}, 1)
    found = play([runs / "one"], tmp_path / "out", CellSet.nominal(2), other, few_of_each)
    assert [chosen.episodes for chosen in found.sets] == [4, 2, 1]  # other draws, and fewer of each cell, are as asked
    found = play([runs / "one", runs / "two"], tmp_path / "out", CellSet.nominal(2), other, few_of_each)
    assert found.sets[0].episodes == 2  # which both have played


def test_a_folder_may_be_made_to_hold_what_is_asked_for_alone(runs: Path, tmp_path: Path) -> None:
    play([runs / "one", runs / "two"], tmp_path / "out", CellSet.nominal(4), DRAWS, success=-1e6)
    found = play([runs / "two"], tmp_path / "out", CellSet.nominal(2), only=True)
    assert (found.policies, [chosen.num_episodes for chosen in found.sets]) == (["two"], [2])
    assert found.document["success"] == 200


def test_another_threshold_changes_outcomes_and_plays_nothing(runs: Path, tmp_path: Path) -> None:
    play([runs / "one"], tmp_path / "out", CellSet.nominal(2))
    assert total_played([runs / "one"], tmp_path / "out", CellSet.nominal(2), success=-1e6) == 0
    assert set(Evaluation.load(tmp_path / "out").episodes["outcome"]) == {"success"}


def test_a_policy_that_is_added_meets_what_the_others_met(runs: Path, tmp_path: Path, played: Evaluation) -> None:
    play([runs / "one"], tmp_path / "out", CellSet.nominal(2), DRAWS, GRID)
    added = play([runs / "one", runs / "two"], tmp_path / "out", CellSet.nominal(2))
    pd.testing.assert_frame_equal(added.episodes, played.episodes)


def test_a_run_that_was_trained_on_is_played_again(tmp_path: Path) -> None:
    train_tiny_run(tmp_path / "run")
    folder = tmp_path / "run/evaluation"
    play([tmp_path / "run"], folder, CellSet.nominal(2), DRAWS)
    shutil.rmtree(tmp_path / "run/checkpoints")
    train_tiny_run(tmp_path / "longer", "--updates", "3")
    shutil.copytree(tmp_path / "longer/checkpoints", tmp_path / "run/checkpoints")
    assert total_played([tmp_path / "run"], folder, CellSet.nominal(2)) == 2
    assert [c.name for c in Evaluation.load(folder).sets] == ["nominal"]


def test_a_run_folder_that_was_renamed_keeps_its_evaluation(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "one", tmp_path / "one")
    play([tmp_path / "one"], tmp_path / "one/evaluation", CellSet.nominal(2))
    (tmp_path / "one").rename(tmp_path / "best")
    assert total_played([tmp_path / "best"], tmp_path / "best/evaluation", CellSet.nominal(2)) == 0
    assert Evaluation.load(tmp_path / "best/evaluation").policies == ["best"]


def test_an_evaluation_of_other_runs_is_not_replaced(runs: Path, tmp_path: Path) -> None:
    play([runs / "one"], tmp_path / "out", CellSet.nominal(2))
    before = content(tmp_path / "out")
    with pytest.raises(RunFolderError, match="holds an evaluation of one; evaluate it too"):
        play([runs / "two"], tmp_path / "out", CellSet.nominal(2))
    assert content(tmp_path / "out") == before


def test_an_environment_without_parameters_is_evaluated(tmp_path: Path) -> None:
    train_tiny_run(tmp_path / "run", "--env", "CartPole-v1", "--randomization", "none")
    evaluation = play([tmp_path / "run"], tmp_path / "run/evaluation", CellSet.nominal(12))
    assert evaluation.document["parameters"] == {}
    assert evaluation.document["success"] == 475.0
    assert (evaluation.episodes["steps"] == evaluation.episodes["return"]).all()
