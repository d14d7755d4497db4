from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gym_dr.benchmark import profile
from gym_dr.benchmark.learning import measure_learning, time_to_threshold, training_config
from gym_dr.benchmark.profile import ProfiledTraining, with_vectorization
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.training.registry import find_algorithm
from tests.benchmark.tiny import TINY

A2C = find_algorithm("a2c")


def config(num_envs: int = 16, updates: int | None = None, rollout_steps: int = 128):  # type: ignore[no-untyped-def]
    made = training_config(TINY.env, A2C, num_envs, seed=1)
    options = replace(made.options, rollout_steps=rollout_steps, updates=updates or made.options.updates)
    return replace(made, options=options)


def test_a_training_passes_once_a_hundred_episodes_are_above_the_threshold() -> None:
    run = time_to_threshold(config(64), A2C, threshold=-1e9, limit=1e9)
    assert run["passed"]
    assert run["reason"] is None
    # no lander is on the ground within 50 steps, so 100 episodes take 5000; three rollouts of 64 x 128 hold them
    assert 5_000 < run["steps"] <= 3 * 64 * 128


def test_a_training_that_does_not_pass_is_reported_with_what_it_reached() -> None:
    result = measure_learning(replace(TINY, threshold=1e9, learning_sizes=(2, 16)), A2C, lambda _: None)
    assert [(row["num_envs"], row["passed"], row["median_seconds"]) for row in result["rows"]] == [
        (2, 0, None),
        (16, 0, None),
    ]
    run = time_to_threshold(config(16), A2C, threshold=1e9, limit=0.0)
    assert run["reason"] == "not within 0 s"
    assert run["return_mean"] < 0
    assert run["steps"] <= 16 * 128  # one update is made whatever the limit


def test_all_numbers_of_environments_take_turns_within_a_seed() -> None:
    lines: list[str] = []
    measure_learning(replace(TINY, learning_sizes=(2, 4), seeds=(7, 8)), A2C, lines.append)
    assert lines == [f"learning with {n} environments, seed {seed}" for seed in (7, 8) for n in (2, 4)]


@pytest.mark.parametrize("vectorization", ["native", "sync"])
def test_looking_into_a_training_changes_nothing_in_it(vectorization: str, tmp_path: Path) -> None:
    chosen = with_vectorization(config(2, updates=3), vectorization)
    assert chosen is not None
    folder = RunFolder.create(tmp_path / "run", chosen.to_json(), overwrite=False)
    session = RunSession(folder, chosen, lambda *_: None, resume=False)
    A2C.train_function()(session, chosen.options)
    session.close()

    training = ProfiledTraining(chosen)
    assert training.compiled == (vectorization == "native")
    for _ in range(3):
        assert set(training.update()) == set(profile.PARTS)
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(path.read_text().splitlines())]
        for path in (folder.metrics, training.metrics)
    ]
    training.close()
    assert rows[0] == rows[1]


def test_the_parts_of_an_update_are_what_its_stopwatches_say(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = with_vectorization(config(2, rollout_steps=5), "sync")
    assert chosen is not None
    training = ProfiledTraining(chosen)
    clock = itertools.count()
    monkeypatch.setattr(profile, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    parts = training.update()
    training.close()
    # The clock goes on by 1 whenever it is read. A step reads it four times: outer, inner, inner, outer. So the inner
    # stopwatch has 1 a step, the outer 3, and collecting 4 a step and 1 for itself; update and log have 1 each.
    assert parts == {"environment": 5, "statistics": 5 * (3 - 1) + 1, "inference": (5 * 4 + 1) - 5 * 3, "update": 1}


def test_an_environment_without_a_native_form_has_no_native_profile() -> None:
    acrobot = training_config("Acrobot-v1", A2C, 2, seed=1)
    assert with_vectorization(acrobot, "native") is None
    assert with_vectorization(acrobot, "sync") is not None
