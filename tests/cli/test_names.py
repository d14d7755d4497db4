"""Names that are not UTF-8, or that steer terminals, and places that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import files, gymdr, refused, train

POLE = ("--env", "gym_dr/CartPoleDR-v1", "--hidden-sizes", "4", "--eval-episodes", "1", "--checkpoint-every", "1")
ODD = os.fsdecode(b"r\xff\x1b[31mx")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder whose name is neither UTF-8 nor harmless in a terminal."""
    try:
        (tmp_path / ODD).mkdir()
    except OSError:
        pytest.skip("names are UTF-8 here")
    return tmp_path / ODD


def shown(*args: str | Path) -> str:
    """What a command that succeeds prints, which has no control characters and can be printed."""
    result = gymdr(*args)
    assert result.code == 0, result.err
    (result.out + result.err).encode()
    assert "\x1b" not in result.out + result.err
    return result.out


def test_a_run_with_such_a_name_is_trained_resumed_evaluated_exported_and_recorded(odd: Path) -> None:
    run, name = odd / ODD, r"r\udcff"
    assert name in shown("train", "a2c", *POLE, "--updates", "2", "--num-envs", "2", "--run-dir", run)
    (run / "checkpoints/update-00000002.safetensors").unlink()
    assert name in shown("resume", run)
    assert name in shown("evaluate", run, "--episodes", "1", "--output", odd / f"E{ODD}")
    assert name in shown("plot", run, "--output", odd / f"{ODD}.png")
    assert name in shown("export", run, "--output", odd / f"{ODD}.onnx")
    assert name in shown("record", run, "--episodes", "1", "--format", "npz", "--output", odd / f"L{ODD}")
    assert b"\x1b" not in (odd / f"E{ODD}/episodes.csv").read_bytes()


def test_a_report_and_a_fit_with_such_names_are_written_without_what_steers_terminals(odd: Path) -> None:
    assert train(odd / ODD, *POLE).code == 0
    shown("report", odd / ODD, "--output", odd / f"{ODD}.html")
    assert "\x1b" not in (odd / f"{ODD}.html").read_text(encoding="utf-8")
    shown("record", odd / ODD, "--episodes", "4", "--format", "npz", "--output", odd / f"L{ODD}")
    shown("fit", odd / f"L{ODD}", *POLE[:2], "--randomize", "length=0.3:0.7", "--output", odd / f"F{ODD}.toml")
    shown("train", "a2c", *POLE, "--updates", "1", "--randomization", odd / f"F{ODD}.toml", "--run-dir", odd / "z")


def test_a_message_shows_such_a_name_as_text(odd: Path) -> None:
    for command in ("resume", "evaluate", "plot"):
        message = refused(gymdr(command, odd / "none"))
        message.encode()
        assert r"r\udcff\x1b[31mx" in message


# command -> its arguments without the output, the output's ending, and the work that must not begin
OUTPUTS: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "report": (("run",), "x.html", "gym_dr.evaluation.evaluate.evaluate_policies"),
    "plot": (("run",), "x.png", "gym_dr.reports.plots.read_metrics"),
    "export": (("run",), "x.onnx", "gym_dr.policies.export._weights_of_any"),
    "evaluate": (("run",), "x", "gym_dr.evaluation.evaluate.play_batch"),
    "record": (("run", "--episodes", "1", "--format", "npz"), "x", "gym_dr.policies.record.play_batch"),
    "fit": (("log.npz", *POLE[:2], "--randomize", "length=0.3:0.7"), "x.toml", "gym_dr.fitting.job.FitJob"),
    "bench": ((*POLE[:2], "--threshold", "1"), "x", "gym_dr.bench.measure_throughput"),
    "study": (("study.toml",), "x", "gym_dr.api.study.train_missing"),
    "tune": (("tune.toml",), "x", "gym_dr.studies.tune.try_trials"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    assert train(folder / "run", *POLE).code == 0
    (folder / "file").write_text("mine")
    np.savez(folder / "log.npz", observations=np.random.default_rng(1).normal(size=(30, 4)), actions=np.zeros(29, int))
    head = 'env = "gym_dr/CartPoleDR-v1"\nseeds = [1]\n'
    (folder / "study.toml").write_text(f'{head}[variants.v]\nalgorithm = "a2c"\nupdates = 1\n')
    search = "[a2c]\nupdates = 1\n[search]\nactor_lr = { low = 0.001, high = 0.01 }\n"
    (folder / "tune.toml").write_text(f'{head}algorithm = "a2c"\ntrials = 1\n{search}')
    return folder


@pytest.mark.parametrize("command", OUTPUTS)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: str, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args, ending, work = OUTPUTS[command]

    def begun(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"{command} has begun to work")

    monkeypatch.chdir(trained)
    monkeypatch.setattr(work, begun)
    before = files(trained)
    for place in (f"file/{ending}", f"{'x' * 300}/{ending}"):
        refused(gymdr(command, *args, "--output", place))
        assert files(trained) == before


@pytest.mark.parametrize(
    ("command", "name"),
    [("report", "report.html"), ("plot", "comparison.png"), ("fit", "fitted.npz"), ("fit", "fitted.html")],
)
def test_a_default_place_is_not_taken_from_a_file_of_the_user(
    command: str, name: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("mine")
    given = (
        [trained / "log.npz", *OUTPUTS["fit"][0][1:]] if command == "fit" else [trained / "run", "--policy", "random"]
    )
    if command == "plot":
        assert train(Path("other"), *POLE).code == 0
        given = [trained / "run", "other"]
    assert name in refused(gymdr(command, *given))
    assert Path(name).read_text() == "mine"
