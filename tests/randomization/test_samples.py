"""Samples of a randomization as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import Bernoulli, Correlation, Integer, Normal, Param, ParamSpace, Randomization, Scale, sample
from gym_dr.errors import UnknownNameError

DRAWN = Randomization({"gravity": (-12, -6), "enable_wind": Bernoulli(0.5), "main_engine_power": Scale((0.9, 1.1))})
SPACE = ParamSpace("letters", [Param(name=name, nominal=0.0, low=-math.inf, high=math.inf) for name in "abc"])


@pytest.fixture
def envs() -> Iterator[Any]:
    made = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=1, randomization=DRAWN)
    yield made
    made.close()


def test_the_rows_are_the_draws_that_an_environment_with_this_seed_makes(envs: Any) -> None:
    table = sample(DRAWN, envs.param_space, 4, seed=7)
    assert list(table) == ["enable_wind", "gravity", "main_engine_power"]
    for i in range(4):
        _, info = envs.reset(seed=7 if i == 0 else None)
        assert {name: info["params"][name][0] for name in table} == table.loc[i].to_dict()


def test_more_rows_or_parameters_change_no_other_draw() -> None:
    table = sample(Randomization({"a": (0, 1)}), SPACE, 5, seed=3)
    assert table.index.name == "draw_index"
    more = sample(Randomization({"a": (0, 1), "b": Normal(0, 1)}), SPACE, 50, seed=3)
    assert more["a"][:5].tolist() == table["a"].tolist()
    assert sample(Randomization({"a": (0, 1)}), SPACE, 5, seed=4)["a"].tolist() != table["a"].tolist()


def test_samples_have_their_distributions_and_correlations() -> None:
    drawn = Randomization(
        {"a": Normal(0, 1, -9, 9), "b": Normal(5, 2, -9, 20), "c": Integer(1, 3)},
        correlation=Correlation(("a", "b"), [[1, 0.8], [0.8, 1]]),
    )
    table = sample(drawn, SPACE, 20_000)
    assert table["a"].corr(table["b"]) == pytest.approx(0.8, abs=0.01)  # standard error 0.36 / sqrt(20000) = 0.003
    assert table["b"].mean() == pytest.approx(5.0, abs=0.06)  # 4 standard errors of 2 / sqrt(20000)
    assert set(table["c"]) == {1.0, 2.0, 3.0}


def test_a_space_of_another_environment_is_refused(envs: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"'gravty'\. Did you mean 'gravity'"):
        sample(Randomization({"gravty": (-12, -6)}), envs.param_space, 3)


def test_names_that_stand_for_several_parameters_get_a_column_each() -> None:
    envs: Any = gym.make_vec("gym_dr/HopperDR-v5", num_envs=1, randomization="none")
    table = sample(Randomization({"body_mass:*leg*": Scale((0.8, 1.2))}), envs.param_space, 3)
    nominal = [envs.param_space[name].nominal for name in table]
    envs.close()
    assert set(table) == {"body_mass:leg"}
    assert np.all((table >= 0.8 * np.array(nominal)) & (table <= 1.2 * np.array(nominal)))
