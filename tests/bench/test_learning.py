from __future__ import annotations

from dataclasses import replace

import pytest

from gym_dr.bench.learning import (
    measure_learning,
    measure_solving,
    solving_trainings,
    time_to_threshold,
    training_config,
)
from gym_dr.runs.config import RunConfig
from gym_dr.training.registry import find_algorithm
from tests.bench.algorithms import ALGORITHMS
from tests.bench.tiny import TINY

A2C = find_algorithm("a2c")


def config(num_envs: int = 16) -> RunConfig:
    made = training_config(TINY.env, A2C, num_envs, seed=1)
    return replace(made, options=replace(made.options, rollout_steps=128))


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


def test_algorithms_solve_in_turn_by_their_defaults_on_nominal_physics() -> None:
    lines: list[str] = []
    result = measure_solving(replace(TINY, solving_seeds=2), lines.append)
    assert lines == [f"solving with {name}, seed {seed}" for seed in (1, 2) for name in ("a2c", "ppo")]
    assert len(lines) == solving_trainings(replace(TINY, solving_seeds=2))
    assert result["threshold"] == 200.0
    assert [(row["passed"], row["median_seconds"], row["median_steps"]) for row in result["rows"]] == [
        (0, None, None),
        (0, None, None),
    ]


def test_an_environment_without_a_threshold_cannot_be_solved() -> None:
    settings = replace(TINY, env="gym_dr/PendulumDR-v1")
    assert measure_solving(settings, print)["rows"] == []
    assert solving_trainings(settings) == 0


def test_a_training_that_is_over_before_it_passes_has_not_passed() -> None:
    short = replace(config(4), options=replace(config(4).options, updates=1))
    run = time_to_threshold(short, A2C, threshold=1e9, limit=1e9)
    assert not run["passed"]
    assert run["reason"] == f"not within {run['steps']} steps"


def test_all_numbers_of_environments_take_turns_within_a_seed() -> None:
    lines: list[str] = []
    measure_learning(replace(TINY, learning_sizes=(2, 4), seeds=(7, 8)), A2C, lines.append)
    assert lines == [f"learning with {n} environments, seed {seed}" for seed in (7, 8) for n in (2, 4)]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_any_algorithm_is_timed(name: str) -> None:
    algorithm = ALGORITHMS[name]
    made = training_config(TINY.env, algorithm, 4, seed=1)
    run = time_to_threshold(made, algorithm, threshold=1e9, limit=0.0)
    assert run["steps"] > 0
    assert run["reason"] == "not within 0 s"


@pytest.mark.parametrize(("name", "schedule"), [("a2c", "constant"), ("cem", None)])
def test_rates_are_constant_where_an_algorithm_has_a_schedule(name: str, schedule: str | None) -> None:
    options = training_config(TINY.env, ALGORITHMS[name], 4, seed=1).options
    assert options.updates == 10**9
    assert getattr(options, "schedule", None) == schedule
