"""Loggers: what they get of a run, and that they cannot harm a training."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr import Run
from gym_dr.errors import (
    ConfigError,
    PluginError,
    PluginWarning,
    UnknownNameError,
)
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.loggers import LOGGERS, Logger
from gym_dr.runs.session import RunLoggers
from tests.api.test_interface import metrics_of
from tests.plugins.parts.recording import RECORDING, RecordingWriter, calls

OPTIONS: dict[str, Any] = {
    "env": "gym_dr/CartPoleDR-v1",
    "updates": 5,
    "num_envs": 2,
    "rollout_steps": 64,
    "hidden_sizes": [4],
    "checkpoint_every": 2,
    "eval_episodes": 0,
    "randomization": "wide",
    "progress": False,
}
ADAPTIVE: dict[str, Any] = {"sampler": "doraemon", "cohort": 10}
EVALUATED: dict[str, Any] = {**ADAPTIVE, "eval_episodes": 2}


class StoppedError(Exception):
    """Ends a training as a kill does: between two updates."""


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    load = gym_dr.load_plugins()
    assert load
    LOGGERS.add(RECORDING.name, RECORDING, "tests")
    yield
    LOGGERS.remove(RECORDING.name)


def train(path: Path, **options: Any) -> Run:
    run = gym_dr.train("a2c", run_dir=path, **{**OPTIONS, **options})
    assert isinstance(run, Run)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with loggers, an adaptive sampler and an evaluation."""
    path = tmp_path_factory.mktemp("loggers") / "run"
    return train(path, loggers=["recording"], **EVALUATED)


def opened(path: Path) -> Run:
    found = gym_dr.load_run(path)
    assert isinstance(found, Run)
    return found


def cut(update: int) -> Any:
    """A callback that stops a training as a kill would, before an update is saved."""

    def stop(row: dict[str, float]) -> None:
        if row["update"] == update:
            raise StoppedError

    return stop


@contextlib.contextmanager
def added(logger: Logger) -> Iterator[None]:
    LOGGERS.add(logger.name, logger, "tests")
    try:
        yield
    finally:
        LOGGERS.remove(logger.name)


def refuse(path: Path, config: Mapping[str, Any]) -> RecordingWriter:
    raise ConnectionError("no route to host")


REFUSING = Logger(name="refusing", summary="", open=refuse)


def got(run: Run, kind: str) -> list[dict[str, Any]]:
    return [call for call in calls(run.folder.loggers / "recording") if call["kind"] == kind]


def points(run: Run) -> list[dict[str, Any]]:
    """Without the seconds, in which runs differ."""
    found = got(run, "write")
    for call in found:
        call["scalars"].pop("training/seconds")
    return found


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---- what they get ----


def test_a_logger_gets_the_metrics_of_every_update_at_their_steps(run: Run) -> None:
    expected = [
        (
            int(row["steps"]),
            {
                f"training/{name}": float(value)
                for name, value in row.items()
                if name not in ("update", "steps") and math.isfinite(float(value))
            },
        )
        for row in rows(run.folder.metrics)
    ]
    found = [
        (call["step"], {name: v for name, v in call["scalars"].items() if not name.startswith("sampler/")})
        for call in got(run, "write")
    ]
    assert found == expected


def test_it_gets_the_draws_of_a_segment_at_its_end(run: Run) -> None:
    draws = rows(run.folder.draws)
    assert run.config.randomization is not None
    segments = [(0, 1), (2, 3), (4,)]  # a checkpoint after every second update, and the last one
    expected = [
        {
            f"draws/{name}": [float(row[name]) for row in draws if int(row["update"]) in updates]
            for name in run.config.randomization
        }
        for updates in segments
    ]
    assert [call["histograms"] for call in got(run, "write") if call["histograms"]] == expected


def test_it_gets_the_states_of_a_sampler_at_the_step_of_its_update(run: Run) -> None:
    steps = {row["update"]: int(row["steps"]) for row in rows(run.folder.metrics)}
    states = {steps[row["update"]]: float(row["version"]) for row in rows(run.folder.sampler)}
    assert states
    found = {call["step"]: call["scalars"].get("sampler/version") for call in got(run, "write")}
    assert {step: version for step, version in found.items() if version is not None} == states


def test_it_gets_the_evaluation_at_the_end_and_is_closed_once(run: Run) -> None:
    (call,), (_,) = got(run, "results"), got(run, "close")
    assert calls(run.folder.loggers / "recording")[-1]["kind"] == "close"
    assert run.evaluation is not None
    table = run.evaluation.summary
    expected = {
        f"evaluation/{row['set']}/{row['statistic']}": row["value"]
        for _, row in table.iterrows()
        if math.isfinite(row["value"])
    }
    assert call["values"] == pytest.approx(expected)
    assert call["step"] == got(run, "write")[-1]["step"]


def test_it_gets_the_configuration_when_it_is_opened(tmp_path: Path) -> None:
    opened: list[Mapping[str, Any]] = []

    def note(path: Path, config: Mapping[str, Any]) -> RecordingWriter:
        opened.append(json.loads(json.dumps(config)))
        return RecordingWriter(path, config)

    with added(Logger(name="noting", summary="", open=note)):
        run = train(tmp_path / "run", loggers=["noting"], updates=1)
    assert opened == [run.folder.read_config()]


def test_loggers_change_nothing_of_a_run(run: Run, tmp_path: Path) -> None:
    plain = train(tmp_path / "run", **ADAPTIVE)
    assert metrics_of(plain.path) == metrics_of(run.path)
    assert not plain.folder.loggers.exists()


# ---- when a run goes on ----


def test_a_run_that_was_cut_and_resumed_repeats_the_points_after_its_checkpoint(run: Run, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        train(tmp_path / "run", loggers=["recording"], **EVALUATED, callback=cut(3))
    resumed = opened(tmp_path / "run").resume(progress=False)
    found, whole = points(resumed), points(run)
    assert found == [*whole[:3], *whole[2:]]  # the third update had been shown, and not been saved
    assert got(resumed, "results") == got(run, "results")


def test_a_logger_that_is_added_later_shows_what_comes(run: Run, tmp_path: Path) -> None:
    late = train(tmp_path / "run", **EVALUATED)
    late.resume(loggers=["recording"], progress=False)
    assert (points(late), got(late, "results")) == ([], got(run, "results"))
    assert json.loads(late.folder.config.read_text())["loggers"] == ["recording"]


def test_a_run_that_a_callback_ended_shows_the_draws_until_there(tmp_path: Path) -> None:
    ended = train(tmp_path / "run", loggers=["recording"], callback=lambda row: row["update"] == 2)
    assert [bool(call["histograms"]) for call in got(ended, "write")] == [False, True, True]
    ended.resume(progress=False)
    assert [call["step"] for call in got(ended, "write")] == [int(row["steps"]) for row in rows(ended.folder.metrics)]


def test_a_run_that_replaces_another_one_begins_its_points_anew(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    fresh = train(tmp_path / "run", loggers=["recording"], **ADAPTIVE, overwrite=True)
    assert points(fresh) == points(run)


# ---- mistakes and failures ----


@pytest.mark.parametrize(
    ("loggers", "error", "message"),
    [
        (["tensorbord"], UnknownNameError, "Unknown logger 'tensorbord'. Did you mean 'tensorboard'?"),
        (["recording", "recording"], ConfigError, "`loggers`: expected distinct names, got recording, recording"),
        ("recording", ConfigError, "loggers: expected a list, got 'recording'"),
        (["lacking"], ConfigError, "needs no_such.module: pip install no_such.module"),
    ],
)
def test_a_logger_that_cannot_be_used_is_refused_and_leaves_no_folder(
    loggers: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    lacking = Logger(name="lacking", summary="", open="no_such.module:Writer", module="no_such.module")
    with added(lacking), pytest.raises(error, match=message):
        train(tmp_path / "run", loggers=loggers)
    assert not (tmp_path / "run").exists()


def test_a_logger_that_cannot_be_opened_is_named_and_leaves_no_folder(tmp_path: Path) -> None:
    said = "Logger 'refusing' cannot be opened: ConnectionError: no route to host"
    with added(REFUSING), pytest.raises(PluginError, match=said):
        train(tmp_path / "run", loggers=["refusing"])
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_without_a_logger_that_cannot_be_opened_any_more(tmp_path: Path) -> None:
    train(tmp_path / "run", updates=1)
    with added(REFUSING), pytest.warns(PluginWarning, match="Logger 'refusing' cannot be opened"):
        opened(tmp_path / "run").resume(loggers=["refusing", "recording"], progress=False)
    with pytest.warns(PluginWarning, match="'refusing' cannot be opened: UnknownNameError: Unknown logger 'refusing'"):
        opened(tmp_path / "run").resume(progress=False)  # its plugin is gone
    opened(tmp_path / "run").resume(loggers=[], progress=False)
    opened(tmp_path / "run").resume(progress=False)


@pytest.mark.parametrize("loggers", ["recording", [["recording"]]])
def test_what_is_no_list_of_names_is_refused_by_resume_too(loggers: Any, run: Run) -> None:
    with pytest.raises(ConfigError, match="`loggers`: expected a list of names"):
        run.resume(loggers=loggers, progress=False)


@pytest.mark.parametrize("name", ["../evil", "a,b", "", "Tool"])
def test_a_name_that_cannot_name_a_folder_is_refused(name: str) -> None:
    with pytest.raises(PluginError, match="expected a name of lower-case letters"):
        Logger(name=name, summary="", open=RecordingWriter)


def test_a_logger_that_fails_later_is_left_out_and_the_training_goes_on(run: Run, tmp_path: Path) -> None:
    class FailingWriter(RecordingWriter):
        def write(self, step: int, scalars: Mapping[str, float], histograms: Mapping[str, Any]) -> None:
            raise TimeoutError("gone")

    failing = Logger(name="failing", summary="", open=FailingWriter)
    with (
        added(failing),
        pytest.warns(PluginWarning, match="Logger 'failing' failed: TimeoutError: gone. It is disabled"),
    ):
        made = train(tmp_path / "run", loggers=["failing", "recording"], **ADAPTIVE)
    assert points(made) == points(run)


def test_numbers_that_are_not_finite_are_left_out(run: Run, tmp_path: Path) -> None:
    loggers = RunLoggers(RunFolder(tmp_path), run.config, required=True)
    loggers.open()
    loggers.update({"update": 0, "steps": 1, "a": math.nan, "b": math.inf, "c": 1.0}, saved=False)
    loggers.evaluated({("nominal", "a"): math.nan, ("nominal", "c"): 2.0})
    loggers.close()
    written, results, _ = calls(RunFolder(tmp_path).loggers / "recording")
    assert written["scalars"] == {"training/c": 1.0}
    assert results["values"] == {"evaluation/nominal/c": 2.0}
