"""Prediction of logged steps: each row for as many steps as it lasts, under its own known parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gym_dr.api.fit import open_problem
from gym_dr.fitting.problem import Question
from gym_dr.fitting.simulator import Simulator
from tests.fitting.logged import CART, logged

RNG = np.random.default_rng(0)
STATES = RNG.uniform(-0.5, 0.5, (40, 4))
ACTIONS = RNG.integers(0, 2, 40)
HOLDS = RNG.integers(1, 6, 40)


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    problem = open_problem(logged(episodes=2, steps=10), Question(env=CART, randomize={"length": (0.4, 0.6)}))
    yield Simulator(problem.replay)  # fewer sub-environments than rows
    problem.close()


def test_each_row_lasts_as_many_steps_as_it_is_told(simulator: Simulator) -> None:
    found = simulator.predict(STATES, ACTIONS, {"length": 0.7}, holds=HOLDS)
    one_by_one = STATES.copy()
    for step in range(5):
        rows = np.flatnonzero(step < HOLDS)
        ones = np.ones(len(rows), np.int64)
        one_by_one[rows] = simulator.predict(one_by_one[rows], ACTIONS[rows], {"length": 0.7}, holds=ones)
    np.testing.assert_allclose(found, one_by_one, rtol=1e-12)


def test_known_values_replace_parameters_row_by_row(simulator: Simulator) -> None:
    lengths = RNG.uniform(0.3, 1.0, 40)
    found = simulator.predict(STATES, ACTIONS, {"length": 0.7, "gravity": 9.0}, holds=HOLDS, known={"length": lengths})
    for row, length in enumerate(lengths.tolist()):
        only = slice(row, row + 1)
        params = {"length": length, "gravity": 9.0}
        alone = simulator.predict(STATES[only], ACTIONS[only], params, holds=HOLDS[only])
        np.testing.assert_allclose(found[only], alone, rtol=1e-12)
