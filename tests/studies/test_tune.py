"""A tuning finds the best trial, goes on after any interruption, and ends in a file that a training takes."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gym_dr
from gym_dr.errors import ConfigError, Interrupted, LostRunError, NotFiniteError, RunFolderError, TrainingError
from gym_dr.runs.configure import build_config
from gym_dr.runs.lock import FolderLock
from gym_dr.studies.tune import TuneResult
from gym_dr.studies.tune_file import read_tuning
from gym_dr.training.registry import find_algorithm
from tests.cli.command import gymdr, refused
from tests.studies.tune_sample import TINY, outcome, tiny
from tests.toml_text import toml_text

module = importlib.import_module("gym_dr.studies.tune")  # gym_dr.tune is the function
TRAIN = "gym_dr.experiments.one_run.train_run"


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """No pictures of runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gym_dr.experiments.one_run.plot_training", lambda _, path: path.touch())
        yield


@pytest.fixture(autouse=True)
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pages but that of ``finished``, which is made before."""
    monkeypatch.setattr("gym_dr.evaluation.report.tuning.tuning_report", lambda *_: None)
    monkeypatch.setattr("gym_dr.evaluation.report.page.write_report", lambda _, path: path.touch())


def tune(form: Any, folder: Path, **options: Any) -> TuneResult:
    return gym_dr.tune(form, output=folder, **{"workers": 1, "progress": False, **options})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[TuneResult, dict[str, str]]:
    """A tuning that nothing has disturbed, and what it has written."""
    folder = tmp_path_factory.mktemp("tune") / "out"
    return tune(TINY, folder), outcome(folder)


@pytest.fixture
def copied(finished: tuple[TuneResult, dict[str, str]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished[0].folder, tmp_path / "out"))


class Killed(BaseException):
    """In place of a signal that cannot be caught."""


def stops_after(count: int, function: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """A function that raises instead of the call after ``count`` of them."""
    calls = iter(range(count))

    def call(*args: Any, **kwargs: Any) -> Any:
        if next(calls, None) is None:
            raise error
        return function(*args, **kwargs)

    return call


def stopping(target: str, count: int, error: BaseException, patch: pytest.MonkeyPatch) -> None:
    place, _, name = target.rpartition(".")
    owner = importlib.import_module(place)
    patch.setattr(owner, name, stops_after(count, getattr(owner, name), error))


# ---- what comes out --------------------------------------------------------------------------------------------------


def test_a_value_is_the_mean_of_the_evaluations_of_a_trials_seeds(finished: tuple[TuneResult, dict[str, str]]) -> None:
    found, _ = finished
    complete = found.trials[found.trials.state == "complete"]
    assert len(found.trials) == 2
    for row in complete.to_dict("records"):
        runs = gym_dr.load_run(found.folder / "runs" / f"trial-{row['trial']}")
        returns = [run.evaluation.returns("training").mean() for run in runs]
        assert [row["seed-1001"], row["seed-1002"], row["value"]] == [*returns, np.mean(returns)]
        assert {run.config.options.lr for run in runs} == {row["lr"]}
    assert (found.value, found.best) == (complete.value.max(), complete.trial[complete.value.idxmax()])


def test_the_first_trial_has_the_values_without_a_search(finished: tuple[TuneResult, dict[str, str]]) -> None:
    first = finished[0].trials.iloc[0]
    assert (first.lr, first.hidden_sizes, first.epochs) == (0.001, "[8]", 1)


def test_the_best_options_train_as_they_are_on_other_seeds_only(finished: tuple[TuneResult, dict[str, str]]) -> None:
    found, algorithm = finished[0], find_algorithm("ppo")
    row = found.trials.set_index("trial").loc[found.best]
    params = {"lr": float(row.lr), "hidden_sizes": row.hidden_sizes, "epochs": int(row.epochs)}
    expected = read_tuning(TINY).config(params)
    config = build_config(algorithm, {"seed": 1001, "eval_episodes": 0}, config=found.config)
    assert config == expected
    with pytest.raises(ConfigError, match="seed: expected seeds on which no options were tuned, got 1002"):
        gym_dr.train("ppo", config=found.config, seed=1002)
    text = found.config.read_text()
    assert f"# gym_dr.train('ppo', config='{found.config}', seed=1)\n" in text
    assert f"{found.value:.1f}" in text


def test_the_best_options_of_an_environment_without_parameters_train_too(tmp_path: Path) -> None:
    form = tiny(env="CartPole-v1", randomization="none", trials=1, seeds=[7])
    config = build_config(find_algorithm("ppo"), {"seed": 1}, config=tune(form, tmp_path / "out").config)
    assert (config.settings.env, config.randomization) == ("CartPole-v1", None)


def test_runs_of_a_tuning_are_ordinary_ones_that_reports_refuse(finished: tuple[TuneResult, dict[str, str]]) -> None:
    runs = gym_dr.load_run(finished[0].folder / "runs" / "trial-0")
    assert len(runs.metrics) == 2 * 5
    with pytest.raises(ConfigError, match=r"trial-0/seed-1001 would look too good: seed: expected seeds"):
        gym_dr.report(runs)


def test_the_page_has_optunas_plots_and_needs_no_network(finished: tuple[TuneResult, dict[str, str]]) -> None:
    page = (finished[0].folder / "tune.html").read_text()
    titles = ("Progress", "One option at a time", "All options", "During training")
    assert all(f"<h2>{title}</h2>" in page for title in titles)
    assert "Which options matter" not in page  # two trials do not tell
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', page, re.DOTALL)[0])
    assert len(figures) == 1 + len(TINY["search"]) + 1 + 1
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', page)


# ---- trials that end early -------------------------------------------------------------------------------------------


def test_a_pruned_trial_trains_no_further_and_costs_no_other_seed(tmp_path: Path) -> None:
    pruner = {"name": "threshold", "lower": 1000.0, "n_warmup_steps": 4}  # reports are 2, 4, ... 10 with 5 updates
    with pytest.raises(TrainingError, match=r"(?s)no trial is complete.*trial 0: pruned"):
        tune(tiny(optuna={"pruner": pruner}), tmp_path / "out")
    runs = sorted(path.name for path in (tmp_path / "out" / "runs").glob("*/seed-*"))
    assert runs == ["seed-1001", "seed-1001"]
    metrics = pd.read_csv(tmp_path / "out" / "runs" / "trial-0" / "seed-1001" / "metrics.csv")
    assert 2 <= len(metrics) < 5


def test_a_trial_that_fails_is_named_and_the_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module("gym_dr.experiments.one_run").train_run

    def fails(folder: Any, *args: Any, **kwargs: Any) -> None:
        if folder.path.parent.name == "trial-1":
            raise NotFiniteError("the loss is nan")
        real(folder, *args, **kwargs)

    monkeypatch.setattr(TRAIN, fails)
    trials = tune(tiny(trials=3, seeds=[7]), tmp_path / "out").trials
    assert trials.state.to_list() == ["complete", "failed", "complete"]
    assert trials.reason.to_list() == ["", "the loss is nan", ""]
    assert np.isnan(trials.value[1])


# ---- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "count"),
    [
        pytest.param("gym_dr.studies.tune.write_atomically", 1, marks=pytest.mark.slow),  # before there is a trial
        pytest.param("gym_dr.runs.folder.write_atomically", 1, marks=pytest.mark.slow),  # while a run folder is made
        ("gym_dr.runs.session.save_checkpoint", 4),  # while a run is trained
        pytest.param("gym_dr.experiments.one_run.plot_training", 1, marks=pytest.mark.slow),  # after training
        pytest.param("gym_dr.evaluation.evaluate.write_document", 6, marks=pytest.mark.slow),  # while it evaluates
        pytest.param("optuna.Study.tell", 1, marks=pytest.mark.slow),  # before a value is saved
        ("gym_dr.evaluation.report.page.write_report", 0),  # at the end
    ],
)
def test_a_tuning_that_was_cut_goes_on_to_the_same_files_and_counts_no_trial_twice(
    target: str, count: int, finished: tuple[TuneResult, dict[str, str]], tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if target == "optuna.Study.tell":
            import optuna

            patch.setattr(optuna.Study, "tell", stops_after(count, optuna.Study.tell, Killed()))
        else:
            stopping(target, count, Killed(), patch)
        with pytest.raises(Killed):
            tune(TINY, tmp_path / "out")
    tune(TINY, tmp_path / "out")
    assert outcome(tmp_path / "out") == finished[1]


def test_a_tuning_that_is_done_trains_nothing_and_more_trials_train_only_those(
    copied: Path, finished: tuple[TuneResult, dict[str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 0, Killed(), patch)
        tune(TINY, copied)
        assert outcome(copied) == finished[1]
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 2, Killed(), patch)  # two seeds
        grown = tune(tiny(trials=3, optuna={"sampler": "random"}), copied)
    assert len(grown.trials) == 3
    pd.testing.assert_frame_equal(grown.trials[:2], finished[0].trials)


def test_a_trial_that_another_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    form = tiny(seeds=[7])
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 0, Killed(), patch)
        with pytest.raises(Killed):
            tune(form, tmp_path / "out")
    with FolderLock(tmp_path / "out" / "runs" / "trial-0").held():
        found = tune(form, tmp_path / "out")
    assert found.trials.state.to_list() == ["running", "complete"]
    assert tune(form, tmp_path / "out").trials.state.to_list() == ["complete"] * 2


def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 0, KeyboardInterrupt(15), patch)
        with pytest.raises(Interrupted, match=r"Stopped\. Call gym_dr\.tune again to continue\.") as stopped:
            tune(TINY, tmp_path / "out")
    assert stopped.value.number == 15


def test_workers_are_processes_and_a_killed_one_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []

    def call(function: Any, calls: Any, workers: int) -> Any:
        called.append((function.__name__, len(calls), workers))
        return {}, ["1"]

    monkeypatch.setattr(module, "call_in_processes", call)
    with pytest.raises(LostRunError, match=r"a worker was killed. Call gym_dr.tune again to continue"):
        tune(TINY, tmp_path / "out", workers=8)
    assert called == [("_work", 2, 2)]  # no more than trials


# ---- folder and storage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ppo": {**TINY["ppo"], "gamma": 0.5}}, r"holds another tuning, .*: ppo.gamma was 0.99 and is 0.5. Change it"),
        ({"search": {"lr": {"low": 0.1, "high": 1.0}}}, "search was changed"),
        ({"evaluation": {"episodes": 3}}, "evaluation was changed"),
        ({"seeds": [3]}, r"reserved_seeds was \[1001, 1002\] and is \[3\], seed was 1001 and is 3"),
    ],
)
def test_what_does_not_fit_the_folder_is_refused(change: dict[str, Any], message: str, copied: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        tune(tiny(**change), copied)


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="already exists and holds no tuning"):
        tune(TINY, tmp_path)
    (tmp_path / "tune.json").write_text('{"format": "gym_dr tuning", "version": 2}')
    with pytest.raises(RunFolderError, match=r"tune.json: expected a gym_dr tuning, version 1; choose"):
        tune(TINY, tmp_path)
    with pytest.raises(RunFolderError, match=r"notes.txt: cannot be written"):
        tune(TINY, tmp_path / "notes.txt")


def test_a_link_out_of_the_folder_is_refused(copied: Path, tmp_path: Path) -> None:
    (copied / "runs" / "trial-0").rename(tmp_path / "elsewhere")
    (copied / "runs" / "trial-0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="expected a plain file or folder"):
        tune(TINY, copied)


def test_trials_are_in_the_storage_that_the_file_names_one_study_a_folder(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'trials.db'}"
    form = tiny(trials=1, seeds=[7], optuna={"storage": address})
    for name in ("a", "b"):
        assert len(tune(form, tmp_path / name).trials) == 1
        assert not (tmp_path / name / "optuna.db").exists()
    with contextlib.closing(sqlite3.connect(tmp_path / "trials.db")) as trials:  # Optuna would not close it
        assert trials.execute("SELECT count(DISTINCT study_name) FROM studies").fetchone() == (2,)


@pytest.mark.parametrize("address", ["sqlite:////nowhere/trials.db", "no address", "mysql+nothing://host/name"])
def test_a_storage_that_cannot_be_used_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[optuna\]: storage: cannot be used: "):
        tune(tiny(optuna={"storage": address}), tmp_path / "out")


def test_a_run_of_another_trial_in_the_folder_is_refused(copied: Path) -> None:
    (copied / "optuna.db").unlink()  # so trials begin at 0 again
    with pytest.raises(RunFolderError, match=r"is not of this trial, whose .*lr was 0.0\d+ and is"):
        tune(tiny(optuna={"sampler": {"name": "random", "seed": 5}}), copied)


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_tells_of_each_trial_and_names_the_files(tmp_path: Path) -> None:
    done = gymdr("tune", _written(tmp_path / "tiny.toml", seeds=[7]), "--output", tmp_path / "out", "--workers", "1")
    assert done.code == 0, done.err
    assert re.search(r"trial 0: [\d.]+ \(1 of 2 done, best [\d.]+, trial 0\)\n", done.err)
    assert done.out.endswith(f"Wrote {tmp_path / 'out' / 'best.toml'} and {tmp_path / 'out' / 'tune.html'}\n")
    best = ("--config", tmp_path / "out" / "best.toml")
    again = gymdr("train", "ppo", *best, "--run-dir", tmp_path / "run", "--seed", "3", "--eval-episodes", "1")
    assert again.code == 0, again.err
    assert "storage: expected an address" in refused(
        gymdr("tune", _written(tmp_path / "bad.toml", optuna={"storage": 1}), "--output", tmp_path / "bad")
    )
    assert not (tmp_path / "bad").exists()


def _written(path: Path, **changes: Any) -> Path:
    path.write_text(toml_text(tiny(**changes)))
    return path
