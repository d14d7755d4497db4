"""What a fit writes: ranges, particles and report, rounds with which one that was stopped goes on, and its logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, Interrupted
from gym_dr.experiments.fit_files import FitFiles
from gym_dr.fitting.results import Fit
from gym_dr.randomization.files import load_randomization
from gym_dr.runs.loggers import LOGGERS
from tests.experiments.fit_sample import PRIOR, fit, number
from tests.fitting.logged import CART
from tests.plugins.parts.recording import RECORDING, calls


@pytest.fixture(scope="module")
def found(short: Any, output: Path) -> Fit:
    return fit(short, output=output)


# ---- files ----


def test_randomization_particles_and_report_are_written_and_nothing_else(found: Fit, output: Path) -> None:
    assert sorted(path.name for path in output.parent.iterdir()) == ["fitted.html", "fitted.npz", "fitted.toml"]
    assert load_randomization(output) == found.randomization
    with np.load(output.with_suffix(".npz"), allow_pickle=False) as saved:
        for name in found.particles:
            np.testing.assert_array_equal(saved[name], found.particles[name])


def test_the_file_begins_with_what_was_found(found: Fit, output: Path) -> None:
    lines = output.read_text().splitlines()
    assert lines[: 1 + len(found.findings)] == ["# Found by gym_dr.fit", *(f"# {text}" for text in found.findings)]


def test_the_file_is_one_that_environments_take(found: Fit, output: Path) -> None:
    envs: Any = gym.make_vec(CART, 50, randomization=str(output))
    envs.reset(seed=0)
    particles = found.particles["length"]
    assert envs.unwrapped.params["length"].mean() == pytest.approx(particles.mean(), abs=particles.std() / 2)
    envs.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fitted.json", "expected a file that ends in .toml"),
        ("no/fitted.toml", "existing folder"),
        ("folder.toml", r"expected to write a file, got the folder '.*folder\.toml'"),
        ("particles.toml", r"expected to write a file, got the folder '.*particles\.npz'"),
        ("report.toml", r"expected to write a file, got the folder '.*report\.html'"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(name: str, message: str, short: Any, tmp_path: Path) -> None:
    folders = ["folder.toml", "particles.npz", "report.html"]
    for folder in folders:
        (tmp_path / folder).mkdir()
    with pytest.raises(ConfigError, match=message):
        fit(short, output=tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == folders


def test_an_output_neither_replaces_the_log_nor_lies_among_its_episodes(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ride = tmp_path / "rides" / "ride.npz"
    ride.parent.mkdir()
    np.savez(ride, **short[0])
    content = ride.read_bytes()
    monkeypatch.chdir(ride.parent)
    with pytest.raises(ConfigError, match=r"output: .* 'ride\.npz', a file of the log, would be replaced"):
        fit("ride.npz", output="ride.toml")
    with pytest.raises(ConfigError, match=r"output: .* 'cart\.toml' would lie among the episodes"):
        fit([tmp_path / "rides"], output="cart.toml")
    assert [path.name for path in ride.parent.iterdir()] == ["ride.npz"]
    assert ride.read_bytes() == content


def test_the_randomization_is_written_even_if_the_report_is_not(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr("gym_dr.evaluation.report.page.write_report", fail)
    with pytest.raises(OSError):  # noqa: PT011
        fit(short, output=tmp_path / "fitted.toml")
    assert list(load_randomization(tmp_path / "fitted.toml")) == ["length"]


# ---- stopping and going on ----


UNFINISHED = ".fitted.unfinished.npz"


@pytest.fixture(scope="module")
def unfinished(short: Any, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a fit leaves that was stopped, as with Ctrl-C, after it had saved its second round."""
    folder, save = tmp_path_factory.mktemp("stopped"), FitFiles.save_round

    def saved(files: FitFiles, key: str, state: Any) -> None:
        save(files, key, state)
        if state.round.number == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitFiles, "save_round", saved)
        with pytest.raises(Interrupted, match=r"Stopped\. The same command goes on from here\."):
            fit(short, output=folder / "fitted.toml")
    assert [each.name for each in folder.iterdir()] == [UNFINISHED]
    return (folder / UNFINISHED).read_bytes()


@pytest.fixture
def stopped(unfinished: bytes, tmp_path: Path) -> Path:
    """The output of a fit that was stopped."""
    (tmp_path / UNFINISHED).write_bytes(unfinished)
    return tmp_path / "fitted.toml"


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports take longer than these fits; the first tests have them."""
    monkeypatch.setattr("gym_dr.evaluation.report.fitting.fit_report", lambda *_: None)
    monkeypatch.setattr("gym_dr.evaluation.report.page.write_report", lambda _, path: path.touch())


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds that are done."""
    done_rounds: list[int] = []
    save = FitFiles.save_round

    def saved(files: FitFiles, key: str, state: Any) -> None:
        done_rounds.append(state.round.number)
        save(files, key, state)

    monkeypatch.setattr(FitFiles, "save_round", saved)
    return done_rounds


def test_a_fit_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been(
    short: Any, found: Fit, stopped: Path, rounds: list[int]
) -> None:
    gone_on = fit(short, output=stopped)
    assert rounds[0] == 3
    np.testing.assert_array_equal(gone_on.particles, found.particles)
    assert gone_on.randomization == found.randomization
    assert sorted(path.name for path in stopped.parent.iterdir()) == ["fitted.html", "fitted.npz", "fitted.toml"]


@pytest.mark.usefixtures("no_report")
def test_a_fit_that_was_stopped_after_its_last_round_makes_no_more(
    short: Any, tmp_path: Path, rounds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gym_dr.fitting.misfit.find_misfit", interrupt)
        with pytest.raises(Interrupted):
            fit(short, output=tmp_path / "fitted.toml", randomize=PRIOR)
    last = rounds[-1]
    rounds.clear()
    gone_on = fit(short, output=tmp_path / "fitted.toml", randomize=PRIOR)
    assert rounds == [last]
    np.testing.assert_array_equal(gone_on.particles, fit(short, randomize=PRIOR).particles)


@pytest.mark.usefixtures("no_report")
def test_an_unfinished_fit_of_another_log_is_ignored(short: Any, stopped: Path, rounds: list[int]) -> None:
    found = fit(short[1:], output=stopped)
    assert rounds[0] == 1
    np.testing.assert_array_equal(found.particles, fit(short[1:]).particles)


@pytest.mark.usefixtures("no_report")
def test_an_unfinished_fit_of_another_prior_is_ignored(short: Any, stopped: Path, rounds: list[int]) -> None:
    fit(short, output=stopped, randomize={"length": (0.25, 1.1)})
    assert rounds[0] == 1


@pytest.mark.usefixtures("no_report")
def test_an_unfinished_fit_with_other_columns_of_states_is_ignored(
    short: Any, stopped: Path, rounds: list[int]
) -> None:
    exact = [{**episode, "state/theta": episode["observations"][:, 2] + 0.02} for episode in short]
    fit(exact, output=stopped)
    assert rounds[0] == 1


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no archive"])
def test_a_damaged_unfinished_fit_is_ignored(
    damage: str, short: Any, stopped: Path, unfinished: bytes, rounds: list[int]
) -> None:
    middle = len(unfinished) // 2
    flipped = bytes(byte ^ 255 for byte in unfinished[middle : middle + 40])
    changed = unfinished[:middle] + flipped + unfinished[middle + 40 :]
    spoiled_content = {"cut": unfinished[:middle], "changed": changed, "empty": b"", "no archive": b"hello"}
    (stopped.parent / UNFINISHED).write_bytes(spoiled_content[damage])
    fit(short, output=stopped)
    assert rounds[0] == 1


def test_without_an_output_a_stopped_fit_is_lost_and_says_nothing_else(
    short: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gym_dr.fitting.misfit.find_misfit", interrupt)
    with pytest.raises(Interrupted, match=r"^Stopped\.$"):
        fit(short)


# ---- loggers ----


@pytest.fixture
def recording() -> Iterator[None]:
    """A logger that goes on from what it has."""
    gym_dr.load_plugins()
    LOGGERS.add(RECORDING.name, RECORDING, "tests")
    yield
    LOGGERS.remove(RECORDING.name)


def shown(output: Path) -> list[dict[str, Any]]:
    return calls(output.with_suffix(".loggers") / "recording")


@pytest.mark.usefixtures("recording", "no_report")
def test_loggers_get_the_rounds_the_posterior_and_what_came_out(short: Any, tmp_path: Path) -> None:
    output = tmp_path / "fitted.toml"
    found = fit(short, output=output, loggers=["recording"])
    *rounds, posterior, results, closed = shown(output)
    assert [call["step"] for call in rounds] == list(range(1, len(rounds) + 1))
    assert all(call["scalars"].keys() == {"fit/moved", "fit/length"} for call in rounds)
    assert posterior["histograms"]["posterior/length"] == found.particles["length"].tolist()
    assert results["values"]["posterior/length/mean"] == number(found, "length", "mean")
    assert closed["kind"] == "close"


@pytest.mark.usefixtures("recording", "no_report")
def test_loggers_of_a_fit_that_goes_on_get_every_round_once(
    short: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "fitted.toml"
    saved, stop_after = FitFiles.save_round, 2

    def stop(self: FitFiles, key: str, unfinished: Any) -> None:
        saved(self, key, unfinished)
        if unfinished.round.number == stop_after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FitFiles, "save_round", stop)
        with pytest.raises(Interrupted):
            fit(short, output=output, loggers=["recording"])
    fit(short, output=output, loggers=["recording"])
    steps = [call["step"] for call in shown(output) if call["kind"] == "write"]
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.usefixtures("recording", "no_report")
def test_loggers_of_another_fit_begin_anew(short: Any, tmp_path: Path) -> None:
    output = tmp_path / "fitted.toml"
    fit(short, output=output, loggers=["recording"])
    fit(short, output=output, loggers=["recording"], randomize={"masspole": (0.05, 0.2)})
    first, *_ = shown(output)
    assert (first["step"], first["scalars"].keys()) == (1, {"fit/moved", "fit/masspole"})


def test_loggers_without_an_output_are_refused(short: Any) -> None:
    with pytest.raises(ConfigError, match="loggers: expected with output"):
        fit(short, loggers=["tensorboard"])
