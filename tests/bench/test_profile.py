from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gym_dr.bench import profile
from gym_dr.bench.learning import temporary_session, training_config
from gym_dr.bench.profile import PARTS, ProfiledSession, measure_profile
from gym_dr.runs.config import RunConfig
from gym_dr.runs.session import RunSession
from tests.bench.algorithms import ALGORITHMS
from tests.bench.tiny import TINY

BUDGETS: dict[str, dict[str, Any]] = {
    "a2c": {"rollout_steps": 32},
    "reinforce": {},
    "cem": {"population": 4, "elite": 2, "episode_steps": 50},
}
MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 4, "sequence_length": 8}


def config(name: str, vectorization: str = "sync", **options: Any) -> RunConfig:
    made = training_config(TINY.env, ALGORITHMS[name], 2, seed=1)
    settings = replace(made.settings, vectorization=vectorization)
    return replace(made, settings=settings, options=replace(made.options, updates=3, **BUDGETS[name], **options))


def metrics_of(kind: type[RunSession], name: str, made: RunConfig) -> tuple[Any, list[dict[str, str]]]:
    with temporary_session(kind, made) as session:
        ALGORITHMS[name].train_function()(session, made.options)
        rows = list(csv.DictReader(session.folder.metrics.read_text().splitlines()))
    return session, [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.mark.parametrize("vectorization", ["native", "sync"])
@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in ALGORITHMS), pytest.param("a2c", MEMORY, id="a2c with memory")]
)
def test_looking_into_a_training_changes_nothing_in_it(name: str, options: dict[str, Any], vectorization: str) -> None:
    made = config(name, vectorization, **options)
    _, expected = metrics_of(RunSession, name, made)
    session, rows = metrics_of(ProfiledSession, name, made)
    assert rows == expected
    assert [update["steps"] for update in session.updates] == [int(row["steps"]) for row in rows][:1] + [
        int(after["steps"]) - int(before["steps"]) for before, after in itertools.pairwise(rows)
    ]
    # the example acts by numpy, step by step
    assert session.compiled == (vectorization == "native" and name != "cem")


def test_the_parts_of_an_update_are_what_its_stopwatches_say(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(profile, "time", SimpleNamespace(perf_counter=lambda: next(clock)))

    def train(session: ProfiledSession, _: Any) -> None:
        envs = session.make_envs(None)
        for update in range(2):
            with session.guard_update(update):
                envs.reset(seed=1)
                for _ in range(5):
                    envs.step(envs.action_space.sample())
                for _ in range(7):
                    next(clock)  # what the algorithm learns takes as long
            session.log(update, steps=10)
            session.save(update, dict)

    with temporary_session(ProfiledSession, config("a2c")) as session:
        train(session, None)
    # The clock goes on by 1 whenever it is read. Each of the six calls reads it four times: outer, inner, inner, outer.
    # So the inner stopwatch has 1 a call, the outer one 3, and 4 pass from the end of one call to that of the next;
    # writing a row takes 1, and from the last call to the row 7 and 1 for reading the clock.
    expected = {"environment": 6, "statistics": 6 * (3 - 1) + 1, "inference": 6 * 4 - 6 * 3, "update": 8, "steps": 10}
    assert session.updates == [expected, expected]


def test_a_profile_has_a_row_for_each_kind_of_vector_environment() -> None:
    lines: list[str] = []
    found = measure_profile(config("a2c"), ALGORITHMS["a2c"], 1, lines.append)
    assert [(row["mode"], row["num_envs"], row["compiled"]) for row in found["rows"]] == [
        ("native", 2, True),
        ("sync", 2, False),
    ]
    # a difference of two times may be negative where others use the processor
    assert all(np.isfinite(row[part]) for row in found["rows"] for part in PARTS)
    assert len(lines) == 1


def test_an_environment_without_a_native_form_has_no_native_profile() -> None:
    made = training_config("Acrobot-v1", ALGORITHMS["a2c"], 2, seed=1)
    found = measure_profile(made, ALGORITHMS["a2c"], 1, lambda _: None)
    assert [row["mode"] for row in found["rows"]] == ["sync"]
