from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, RunFolderError, UnknownNameError
from gym_dr.evaluation.results import (
    COLUMNS,
    Evaluation,
    check_folder,
    evaluation_folder,
    read_document,
    read_episodes,
    write_document,
)


def test_the_episodes_of_a_grid_are_without_those_of_nominal_values_and_training_draws(tmp_path: Path) -> None:
    policy = gym_dr.open_policy(
        lambda observations: np.zeros(len(observations), np.int64),
        env="gym_dr/LunarLanderDR-v3",
        randomization={"wind_power": (0, 20)},  # gravity is nominal in the other sets, -10
    )
    grid = gym_dr.grid(gravity=(-11, -3, 3))
    found = gym_dr.evaluate({"coast": policy}, grid, episodes=1, output=tmp_path / "out", progress=False)
    assert set(found.episodes["gravity"]) == {-11.0, -10.0, -7.0, -3.0}
    assert found.episodes_of("grid").groupby("gravity")["return"].mean().index.tolist() == [-11.0, -7.0, -3.0]
    assert len(found.episodes_of("nominal")) == 1
    with pytest.raises(UnknownNameError, match=r"Unknown set of the evaluation 'gird'\. Did you mean 'grid'"):
        found.episodes_of("gird")


def test_a_parameter_has_no_value_in_episodes_in_which_it_has_no_effect(tmp_path: Path) -> None:
    policy = gym_dr.open_policy(
        lambda observations: np.zeros(len(observations), np.int64),
        env="gym_dr/LunarLanderDR-v3",
        randomization={"enable_wind": gym_dr.Bernoulli(0.5), "wind_power": (0, 20), "gravity": (-11, -9)},
    )
    found = gym_dr.evaluate({"coast": policy}, episodes=32, output=tmp_path / "out", progress=False)
    values = found.varied("training")
    assert set(values) == {"enable_wind", "gravity", "wind_power"}
    assert np.array_equal(np.isnan(values["wind_power"]), values["enable_wind"] == 0)
    assert not np.isnan([values["gravity"], values["enable_wind"]]).any()
    again = Evaluation.load(tmp_path / "out").varied("training")["wind_power"]
    np.testing.assert_array_equal(again, values["wind_power"])


def test_what_is_evaluated_alone_has_a_folder_of_its_own() -> None:
    default, other = Path("runs/first/evaluation"), Path("act-evaluation")
    assert evaluation_folder([default], None) == default
    assert evaluation_folder([default], "out") == Path("out")
    assert evaluation_folder([default, other], "out") == Path("out")


def test_several_policies_need_an_output() -> None:
    with pytest.raises(ConfigError, match="Expected `output` for"):
        evaluation_folder([Path("a"), Path("b")], None)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    check_folder(tmp_path)  # an empty one, and one to be made, will do
    check_folder(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="holds no evaluation"):
        check_folder(tmp_path)
    with pytest.raises(RunFolderError, match="is a file"):
        check_folder(tmp_path / "notes.txt")
    with pytest.raises(RunFolderError, match="there is no folder"):
        check_folder(tmp_path / "no" / "where")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunFolderError, match="is a run folder"):
        check_folder(tmp_path)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "is not a gym_dr evaluation"),
        ('{"nominal": {}}', "is not a gym_dr evaluation"),
        ('{"format": "gym_dr evaluation", "references": []}', r"was written by gym_dr 0\.3"),
        (
            '{"format": "gym_dr evaluation", "gym_dr": "0.4.0", "complete": true}',
            "lacks env, policies, results, sets, success",
        ),
    ],
)
def test_a_damaged_document_is_named(tmp_path: Path, document: str, message: str) -> None:
    (tmp_path / "evaluation.json").write_text(document)
    with pytest.raises(RunFolderError, match=rf"evaluation\.json: {message}"):
        read_document(tmp_path)


def test_numbers_that_json_does_not_know_become_null(tmp_path: Path) -> None:
    write_document(tmp_path, {"low": -math.inf, "high": [1.5, math.nan]})
    assert json.loads((tmp_path / "evaluation.json").read_text()) == {"low": None, "high": [1.5, None]}


def test_no_evaluation_is_named(tmp_path: Path) -> None:
    assert read_document(tmp_path) is None
    with pytest.raises(RunFolderError, match=r"holds no evaluation\. Make one with gymdr evaluate"):
        Evaluation.load(tmp_path)


def write(path: Path, *rows: str, columns: tuple[str, ...] = COLUMNS) -> Path:
    path.write_text(",".join([*columns, "gravity"]) + "\n" + "".join(rows))
    return path


ROW = "007,nominal,0,0,3027079406020079855,0.1,5,1,,-10.000000000000002\n"


def test_numbers_and_names_come_back_as_they_were(tmp_path: Path) -> None:
    table = read_episodes(write(tmp_path / "episodes.csv", ROW))
    row: dict[Any, Any] = table.iloc[0].to_dict()
    assert (row["policy"], row["outcome"]) == ("007", "")
    assert (row["seed"], row["gravity"], row["return"]) == (3027079406020079855, -10.000000000000002, 0.1)


def test_a_row_without_its_end_is_left_out(tmp_path: Path) -> None:
    assert len(read_episodes(write(tmp_path / "episodes.csv", ROW, ROW[:-3]))) == 1


def test_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="expected the columns policy, set"):
        read_episodes(write(tmp_path / "episodes.csv", columns=COLUMNS[::-1]))


@pytest.mark.parametrize("row", [ROW.replace("0.1", "x"), ROW.replace(",5,", ",5.5,"), "a,b\n"])
def test_rows_of_something_else_are_named(tmp_path: Path, row: str) -> None:
    with pytest.raises(RunFolderError, match=r"episodes\.csv: cannot be read as CSV"):
        read_episodes(write(tmp_path / "episodes.csv", row))


def test_an_interrupted_evaluation_tells_how_to_go_on_and_repeats_no_strangers_command(tmp_path: Path) -> None:
    document = {"format": "gym_dr evaluation", "gym_dr": "0.4.0", "complete": False, "policies": [], "sets": []}
    document |= {"env": "CartPole-v1", "success": None, "results": []}
    document["command"] = "gymdr evaluate --policy sb3:evil.zip --env CartPole-v1 --trust evil.zip"
    (tmp_path / "evaluation.json").write_text(json.dumps(document))
    with pytest.raises(RunFolderError, match=r"interrupted\. The same command, or the same call .*, continues it\.$"):
        Evaluation.load(tmp_path)
