from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gym_dr.bench import learning_medians, time_to_threshold, training_config
from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.runs.config import RunConfig
from gym_dr.training.registry import find_algorithm

A2C = find_algorithm("a2c")


def config(num_envs: int) -> RunConfig:
    made = training_config(DEFAULT_ENV, A2C, num_envs, seed=1)
    return replace(made, options=replace(made.options, rollout_steps=128))


def test_a_training_passes_once_a_hundred_episodes_are_above_the_threshold() -> None:
    run = time_to_threshold(config(64), A2C, threshold=-1e9, limit=1e9)
    assert run["passed"]
    # no lander is on the ground within 50 steps, so 100 episodes take 5000; three rollouts of 64 x 128 hold them
    assert 5_000 < run["steps"] <= 3 * 64 * 128


def test_a_training_that_is_over_before_it_passes_has_not_passed() -> None:
    short = replace(config(4), options=replace(config(4).options, updates=1))
    assert not time_to_threshold(short, A2C, threshold=1e9, limit=1e9)["passed"]


@pytest.mark.parametrize("name", ["a2c", "reinforce"])
def test_any_algorithm_is_timed_for_at_least_an_update(name: str) -> None:
    algorithm = find_algorithm(name)
    made = training_config(DEFAULT_ENV, algorithm, 4, seed=1)
    assert made.options.updates == 10**9
    assert getattr(made.options, "schedule", "constant") == "constant"
    run = time_to_threshold(made, algorithm, threshold=1e9, limit=0.0)
    assert run["steps"] > 0
    assert not run["passed"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [([3.0, 1.0, 2.0], 2.0), ([1.0, None, 3.0], 3.0), ([1.0, None, None], math.inf), ([1.0, None], math.inf)],
)
def test_a_training_that_did_not_pass_is_slower_than_all_that_did(seconds: list[float | None], expected: float) -> None:
    runs = [{"num_envs": 4, "passed": value is not None, "seconds": value or 0.1} for value in seconds]
    assert learning_medians({"learning": runs}) == {4: expected}
