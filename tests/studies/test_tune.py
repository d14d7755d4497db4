"""A tuning finds the best trial, goes on after any interruption, and ends in a file that a training takes."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gym_dr
from gym_dr.errors import (
    ConfigError,
    Interrupted,
    LostRunError,
    NotFiniteError,
    RunFolderError,
    TrainingError,
)
from gym_dr.runs.configure import build_config
from gym_dr.runs.launch import Ended
from gym_dr.studies.tune import TuneResult
from gym_dr.studies.tune_file import read_tuning
from gym_dr.training.registry import find_algorithm
from tests.cli.command import gymdr
from tests.conftest import run_here
from tests.studies.stopping import Killed, stopping
from tests.studies.tune_sample import TINY, outcome, tiny
from tests.toml_text import toml_text

module = importlib.import_module("gym_dr.studies.tune")  # gym_dr.tune is the function
TRAIN = "gym_dr.studies.tune.train_run"
PAGE = "gym_dr.reports.tuning.write_tuning_page"


@pytest.fixture(autouse=True)
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pages but that of ``finished``, which is made before."""
    monkeypatch.setattr(PAGE, lambda *_: None)


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


# ---- what comes out --------------------------------------------------------------------------------------------------


def test_a_value_is_the_mean_of_the_evaluations_of_a_trials_seeds(finished: tuple[TuneResult, dict[str, str]]) -> None:
    found, _ = finished
    complete = found.trials[found.trials.state == "COMPLETE"]
    assert len(found.trials) == 2
    for row in complete.to_dict("records"):
        runs = gym_dr.load_run(found.folder / "runs" / f"trial-{row['number']}")
        returns = [run.evaluation.returns("training").mean() for run in runs]
        assert row["value"] == np.mean(returns)
        assert [row["user_attrs_seed-1001"], row["user_attrs_seed-1002"]] == returns
        assert {run.config.options.lr for run in runs} == {row["params_lr"]}
    assert (found.value, found.best) == (complete.value.max(), complete.number[complete.value.idxmax()])


def test_the_best_options_train_as_they_are_on_other_seeds_only(finished: tuple[TuneResult, dict[str, str]]) -> None:
    found, algorithm = finished[0], find_algorithm("ppo")
    row = found.trials.set_index("number").loc[found.best]
    params = {"lr": float(row.params_lr), "hidden_sizes": row.params_hidden_sizes, "epochs": int(row.params_epochs)}
    config = build_config(algorithm, {"seed": 1001, "eval_episodes": 0}, config=found.config)
    assert config == read_tuning(TINY).variant(params).config
    with pytest.raises(ConfigError, match=r"seed`?: expected seeds on which no options were tuned, got 1002"):
        gym_dr.train("ppo", config=found.config, seed=1002)


@pytest.mark.slow  # its sibling is the one above
def test_the_best_options_of_an_environment_without_parameters_train_too(tmp_path: Path) -> None:
    form = tiny(env="CartPole-v1", randomization="none", trials=1, seeds=[7])
    config = build_config(find_algorithm("ppo"), {"seed": 1}, config=tune(form, tmp_path / "out").config)
    assert (config.settings.env, config.randomization) == ("CartPole-v1", None)


def test_the_page_has_optunas_plots_and_needs_no_network(finished: tuple[TuneResult, dict[str, str]]) -> None:
    page = (finished[0].folder / "tune.html").read_text()
    assert page.count("Plotly.newPlot(") >= 4
    assert f"gymdr train ppo --config {finished[0].config}" in page
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', page)


def test_runs_of_a_tuning_are_ordinary_ones_that_reports_refuse(finished: tuple[TuneResult, dict[str, str]]) -> None:
    runs = gym_dr.load_run(finished[0].folder / "runs" / "trial-0")
    assert len(runs.metrics) == 2 * 5
    with pytest.raises(ConfigError, match=r"trial-0/seed-1001 would look too good: seed: expected seeds"):
        gym_dr.report(runs)


# ---- trials that end early -------------------------------------------------------------------------------------------


def test_a_pruned_trial_trains_no_further_and_costs_no_other_seed(tmp_path: Path) -> None:
    pruner = {
        "name": "ThresholdPruner",
        "lower": 1000.0,
        "n_warmup_steps": 4,
    }  # of reports 2, 4, ... 10
    with pytest.raises(TrainingError, match=r"(?s)no trial is complete:\npruned"):
        tune(tiny(optuna={"pruner": pruner}), tmp_path / "out")
    runs = sorted(path.name for path in (tmp_path / "out" / "runs").glob("*/seed-*"))
    assert runs == ["seed-1001", "seed-1001"]
    metrics = pd.read_csv(tmp_path / "out" / "runs" / "trial-0" / "seed-1001" / "metrics.csv")
    assert 2 <= len(metrics) < 5


def test_a_trial_that_fails_is_named_and_the_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.train_run

    def fails(run: Any, *others: Any, **kwargs: Any) -> None:
        if error := {"trial-0": NotFiniteError("the loss is nan"), "trial-1": KeyError("x")}.get(
            run.folder.path.parent.name
        ):
            raise error
        real(run, *others, **kwargs)

    monkeypatch.setattr(TRAIN, fails)
    trials = tune(tiny(trials=3, seeds=[7]), tmp_path / "out").trials
    assert trials.state.to_list() == ["PRUNED", "PRUNED", "COMPLETE"]
    assert trials.user_attrs_reason[:2].to_list() == ["the loss is nan", "KeyError: 'x'"]


# ---- going on --------------------------------------------------------------------------------------------------------


def told(folder: Path) -> pd.DataFrame:
    """What is known of the trials that count, but for their numbers."""
    trials = pd.read_csv(folder / "trials.csv")
    return trials[trials.state != "FAIL"].drop(columns="number").reset_index(drop=True)


@pytest.mark.parametrize(
    ("target", "count"),
    [
        pytest.param("gym_dr.runs.folder.write_atomically", 1, marks=pytest.mark.slow),  # while a run folder is made
        ("gym_dr.runs.session.save_checkpoint", 8),  # while the second trial is trained
        pytest.param("gym_dr.evaluation.evaluate.write_document", 6, marks=pytest.mark.slow),  # while it evaluates
        pytest.param(PAGE, 0, marks=pytest.mark.slow),  # at the end
    ],
)
def test_a_tuning_that_was_cut_tries_the_trial_again_and_ends_with_the_same_trials(
    target: str, count: int, finished: tuple[TuneResult, dict[str, str]], tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping(target, count, Killed(), patch)
        with pytest.raises(Killed):
            tune(TINY, tmp_path / "out")
    tune(TINY, tmp_path / "out")
    pd.testing.assert_frame_equal(told(tmp_path / "out"), told(finished[0].folder))
    assert (tmp_path / "out" / "best.json").read_text() == (finished[0].folder / "best.json").read_text()


def test_a_tuning_that_is_done_trains_nothing_and_more_trials_train_only_those(
    copied: Path, finished: tuple[TuneResult, dict[str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 0, Killed(), patch)
        tune(TINY, copied)
        assert outcome(copied) == finished[1]
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 2, Killed(), patch)  # two seeds
        grown = tune(tiny(trials=3, optuna={"sampler": "RandomSampler"}), copied)
    assert len(grown.trials) == 3
    pd.testing.assert_frame_equal(grown.trials[:2], finished[0].trials)


def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stopping(TRAIN, 0, KeyboardInterrupt(15), patch)
        with pytest.raises(Interrupted, match=r"Stopped\. Run the same command, or make") as stopped:
            tune(TINY, tmp_path / "out")
    assert stopped.value.number == 15


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
    with pytest.raises(RunFolderError, match=r"notes.txt: cannot be read"):
        tune(TINY, tmp_path / "notes.txt")


ALTERED = {
    "no parameters": "DELETE FROM trial_params",
    "no table": "DROP TABLE trial_params",
    "another direction": "UPDATE study_directions SET direction = 'MINIMIZE'",
    "no direction": "DELETE FROM study_directions",
    "a range that is no range": "UPDATE trial_params SET distribution_json = '{}'",
    "a state that is none": "UPDATE trials SET state = 'MINE'",
    "a parameter that is none": "UPDATE trial_params SET param_name = param_name || 'x'",
}


@pytest.mark.parametrize(
    "kind", ["text", "no parameters", *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(ALTERED)[1:])]
)
def test_an_altered_study_of_optuna_is_refused(kind: str, copied: Path) -> None:
    if kind == "text":
        (copied / "optuna.db").write_text("hello, I am no data base")
    else:
        with contextlib.closing(sqlite3.connect(copied / "optuna.db")) as file, file:
            file.execute(ALTERED[kind])
    with pytest.raises(RunFolderError, match=r"optuna\.db"):
        tune(tiny(trials=TINY["trials"] + 1), copied)


def test_a_link_out_of_the_folder_is_refused(copied: Path, tmp_path: Path) -> None:
    (copied / "runs" / "trial-0").rename(tmp_path / "elsewhere")
    (copied / "runs" / "trial-0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="expected a plain file or folder"):
        tune(TINY, copied)


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_tells_of_each_trial_and_names_the_files(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(toml_text(tiny(seeds=[7])))
    done = gymdr("tune", tmp_path / "tiny.toml", "--output", tmp_path / "out", "--workers", "1")
    assert done.code == 0, done.err
    assert re.search(r"trial 0: [\d.]+ \(1 of 2 done\)\n", done.err)
    assert done.out.endswith(f"Wrote {tmp_path / 'out' / 'best.json'} and {tmp_path / 'out' / 'tune.html'}\n")
    best = ("--config", tmp_path / "out" / "best.json")
    again = gymdr("train", "ppo", *best, "--run-dir", tmp_path / "run", "--seed", "3", "--eval-episodes", "1")
    assert again.code == 0, again.err


def test_workers_are_processes_with_shares_of_the_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[tuple[int, int]] = []

    def run(commands: Any, workers: int, num_threads: int) -> Any:
        assert (workers, num_threads) == (2, 3)
        for command in commands.values():
            share = json.loads(command[command.index("--share") + 1])
            shares.append((share["worker"], share["count"]))
        return run_here(commands)

    monkeypatch.setattr(module, "run_commands", run)
    found = tune(tiny(trials=3, seeds=[7]), tmp_path / "out", workers=2, num_threads=3)
    assert shares == [(0, 2), (1, 1)]
    assert found.trials.params_lr.nunique() == 3  # they draw numbers of their own
    monkeypatch.setattr(module, "run_commands", lambda commands, *_, **__: dict.fromkeys(commands, Ended(code=-9)))
    with pytest.raises(LostRunError, match=r"a worker was killed\. Run the same command"):
        tune(tiny(trials=5, seeds=[7]), tmp_path / "out", workers=2)
