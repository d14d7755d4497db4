from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import bench
from gym_dr.bench import Stepper, alternate, measure_throughput
from gym_dr.compiled.processors import usable_threads


def scripted(done: list[list[bool]], monkeypatch: pytest.MonkeyPatch) -> Stepper:
    """Environments whose episodes end as told, one row a step, again and again; every step takes a second."""
    clock = itertools.count()
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    rows = itertools.cycle(np.array(done))
    envs: Any = SimpleNamespace(reset=lambda: None, step=lambda actions: (None, None, next(rows), np.False_, {}))
    envs.num_envs, envs.action_space = len(done[0]), gym.spaces.Discrete(2)
    return Stepper(envs)


def test_steps_that_only_reset_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    done = [[True, False, False], [False, False, False], [False, True, True], [False, False, False]]
    # of 4 steps of 3, the second has one reset and the fourth two: 3 + 2 + 3 + 1
    assert scripted(done, monkeypatch).rate(4.0) == 9 / 4


def test_a_reset_that_is_due_is_remembered_from_round_to_round(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = scripted([[False, True]], monkeypatch)
    assert stepper.rate(1.0) == 2.0
    assert stepper.rate(1.0) == 1.0


def test_a_round_goes_on_until_a_step_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = scripted([[True], [False]], monkeypatch)
    assert stepper.rate(0.5) == 1.0
    assert stepper.rate(0.5) == 0.5  # a reset, then a step: one that counts in two seconds


def test_what_cannot_take_part_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_MOST_PROCESSES", 0)
    monkeypatch.setattr(bench, "usable_threads", lambda: 0)
    rates, left_out = measure_throughput("Acrobot-v1", 1, rounds=2, seconds=0.0)
    assert [(mode, len(own)) for mode, own in rates.items()] == [("sync", 2)]
    assert left_out.pop("native").startswith("Acrobot-v1 has no native vector environment")
    assert left_out == {"async": "a process for each environment, of at most 0 here."}


def test_environments_are_made_for_the_threads_on_which_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, int]] = []

    @contextlib.contextmanager
    def opened(mode: str, env_id: str, num_envs: int) -> Iterator[Any]:
        made.append((mode, usable_threads()))
        yield SimpleNamespace(rate=float)

    monkeypatch.setattr(bench, "_opened", opened)
    rates, _ = measure_throughput("any", 4, 2, 5.0, {"one": ("native", 1), "many": ("native", 7)})
    assert made == [("native", 1), ("native", 7)]
    assert rates == {"one": [5.0, 5.0], "many": [5.0, 5.0]}


def test_sides_alternate_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []

    def side(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    measured = alternate({"a": lambda: side("a"), "b": lambda: side("b")}, rounds=2)
    assert calls == ["a", "b"] * 3
    assert measured == {"a": [3.0, 5.0], "b": [4.0, 6.0]}
