"""``gymdr play`` and ``gymdr evaluate`` under physics that the user chooses."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gym_dr.evaluation.results import Evaluation
from gym_dr.policies import play
from tests.cli.command import files, gymdr, refused, train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert train(folder, "--randomize", "gravity=uniform:-11:-9").code == 0
    return folder


@pytest.fixture
def captions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The caption of every frame; drawing the frames takes most of the time."""
    written: list[list[str]] = []

    def captioned(picture: Any, lines: Any) -> Any:
        written.append(list(lines))
        return picture

    monkeypatch.setattr(play, "_picture", lambda envs: np.zeros((16, 16, 3), np.uint8))
    monkeypatch.setattr(play, "captioned", captioned)
    monkeypatch.chdir(tmp_path)
    return written


def watch(run: Path, *args: str | Path) -> Any:
    return gymdr("play", run, "--episodes", "2", "--video", "out.gif", *args)


# gymdr play


def test_a_folder_of_seeds_is_refused_with_a_run_to_play(run: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        shutil.copytree(run, tmp_path / f"seeds/seed-{seed}")
    err = refused(gymdr("play", tmp_path / "seeds", "--video", tmp_path / "out.gif"))
    assert f"holds several runs: expected one, such as {tmp_path / 'seeds/seed-1'}." in err


def test_values_are_played_printed_and_stand_in_the_picture(run: Path, captions: list[list[str]]) -> None:
    result = watch(run, "--set", "gravity=-3", "--set", "wind_power=15")
    assert result.code == 0, result.err
    assert "enable_wind is on, since a parameter has no effect without it" in result.err
    assert result.out.count("(gravity -3, wind_power 15, enable_wind 1)") == 2  # in both episodes
    assert {tuple(lines) for lines in captions} == {("gravity -3 m/s^2", "wind_power 15 N", "enable_wind 1")}


def test_what_an_off_switch_makes_idle_is_neither_printed_nor_in_the_picture(
    run: Path, captions: list[list[str]]
) -> None:
    result = watch(
        run, "--randomize", "enable_wind=bernoulli:1e-6", "--randomize", "gravity=-3", "--randomization", "default"
    )
    assert result.out.count("(enable_wind 0, gravity -3)") == 2, result.out + result.err
    assert {tuple(lines) for lines in captions} == {("enable_wind 0", "gravity -3 m/s^2")}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--set", "gravty=-3"], "Did you mean 'gravity'"),
        (["--set", "gravity"], "--set: expected NAME=VALUE such as gravity=-3, got 'gravity'"),
        (["--set", "gravity=uniform:-3:-2"], "For draws: --randomize gravity=DISTRIBUTION"),
        (["--set", "gravity=-3", "--set", "gravity=-4"], "--set: parameter 'gravity' is given twice"),
        (["--randomize", "gravity=-40"], "'gravity': expected a value from -12 to 0"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["play", "evaluate"])
def test_impossible_physics_is_refused_before_anything_is_played(
    run: Path, command: str, args: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files(run)
    assert expected in refused(gymdr(command, run, *args, *(["--video", "out.gif"] if command == "play" else [])))
    assert files(run) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("command", "--steer: expected NAME=NUMBERS such as command=1,0,0.5, got 'command'"),
        ("command=fast", "--steer: expected NAME=NUMBERS such as command=1,0,0.5, got 'command=fast'"),
        ("command=1", "Unknown memory to steer in gym_dr/LunarLanderDR-v3: 'command'"),
    ],
)
def test_what_cannot_be_steered_is_refused_and_no_video_is_begun(
    run: Path, text: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in refused(watch(run, "--steer", text))
    assert not list(tmp_path.iterdir())


def test_a_hand_plays_under_chosen_values_too(monkeypatch: pytest.MonkeyPatch, captions: list[list[str]]) -> None:
    seen: list[Any] = []

    def played(env: Any, **_: Any) -> None:
        _, info = env.reset(seed=1)
        env.render()
        seen.append(info["params"])

    module: Any = ModuleType("gymnasium.utils.play")  # the real one asks matplotlib for a window toolkit
    module.play = played
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for args in ((), ("--set", "gravity=-3"), ("--randomization", "wide", "--set", "obs_noise=0.1")):
        result = gymdr("play", "--human", "gym_dr/LunarLanderDR-v3", *args)
        assert result.code == 0, result.err
    assert seen[1]["gravity"] == -3.0
    assert seen[1]["lander_density"] == 5.0
    assert seen[2]["obs_noise"] == 0.1
    assert captions[1] == ["gravity -3 m/s^2"]
    assert captions[0][0] == f"enable_wind {seen[0]['enable_wind']:g}"  # the default draw


def test_options_of_policies_are_refused_for_a_hand() -> None:
    message = refused(gymdr("play", "--human", "gym_dr/LunarLanderDR-v3", "--episodes", "3", "--stochastic"))
    assert "--episodes, --stochastic" in message


# gymdr evaluate


def sets_of(run: Path, *args: str | Path, output: Path) -> Evaluation:
    result = gymdr("evaluate", run, "--episodes", "2", "--output", output, *args)
    assert result.code == 0, result.err
    return Evaluation.load(output)


def test_chosen_values_are_a_set_beside_the_usual_ones_and_are_kept(run: Path, tmp_path: Path) -> None:
    found = sets_of(run, "--set", "wind_power=15", "--set", "gravity=-3", output=tmp_path / "out")
    name = "gravity=-3, wind_power=15"
    assert [cells.name for cells in found.sets] == ["nominal", "training", name]
    rows = found.episodes[found.episodes["set"] == name]
    assert set(rows["gravity"]) == {-3.0}
    assert set(rows["wind_power"]) == {15.0}
    assert set(rows["enable_wind"]) == {1.0}
    nominal = found.episodes[found.episodes["set"] == "nominal"]
    assert set(nominal["enable_wind"]) == {0.0}
    assert nominal["return"].tolist() != rows["return"].tolist()
    again = sets_of(run, "--set", "gravity=-4", output=tmp_path / "out")
    assert [cells.name for cells in again.sets] == ["nominal", "training", "gravity=-4", name]


def test_a_file_named_like_a_preset_does_not_replace_the_presets_set(run: Path, tmp_path: Path) -> None:
    (tmp_path / "wide.toml").write_text("gravity = [-4, -3]\n")
    for given in ("wide", tmp_path / "wide.toml"):
        found = sets_of(run, "--randomization", given, output=tmp_path / "out")
    assert {cells.name for cells in found.sets} == {"nominal", "training", "wide", "wide.toml"}
    assert found.episodes_of("wide.toml")["gravity"].between(-4, -3).all()
