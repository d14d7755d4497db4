"""What a log determines: ratios, products and other combinations by name, and what would tell the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gym_dr.api.fit import open_problem
from gym_dr.fitting.findings import combinations, identified, silent
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.motion import read_motion
from gym_dr.fitting.problem import FitProblem, Question
from gym_dr.fitting.results import DETERMINED, NARROWED, PRIOR_KEPT
from gym_dr.fitting.simulator import Simulator
from gym_dr.randomization.distributions import Uniform
from gym_dr.randomization.spec import Correlation, Randomization
from tests.fitting.logged import CART, logged

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.uniform(size=(2, 3000))  # independent
MASS = 1.0 + FIRST  # from 1 to 2
NOISE = 1.0 + 0.01 * RNG.standard_normal(3000)  # 1 %


def only(values: dict[str, npt.NDArray[np.float64]]) -> str:
    (sentence,) = combinations(values).values()
    return sentence


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, DETERMINED), (0.29, DETERMINED), (0.31, NARROWED), (0.89, NARROWED), (0.91, PRIOR_KEPT)],
)
def test_the_share_of_the_priors_deviation_decides_what_a_log_tells(share: float, words: str) -> None:
    assert identified(share) == words


@pytest.mark.parametrize(
    ("values", "combination"),
    [
        ({"force": 12.0 * MASS * NOISE, "mass": MASS}, "the ratio force/mass is determined: 12"),
        ({"force": 6.0 / MASS * NOISE, "mass": MASS}, "the product force*mass is determined: 6"),
        ({"lift": -3.0 * MASS * NOISE, "mass": MASS}, "the ratio lift/mass is determined: -3"),
        # inertia = length^2 says that inertia*length^-2 is constant
        ({"inertia": MASS**2 * NOISE, "length": MASS}, "inertia*length^-2 is determined"),
        ({"inertia": MASS**-2 * NOISE, "length": MASS}, "inertia*length^2 is determined"),
    ],
    ids=["ratio", "product", "negative ratio", "square", "inverse square"],
)
def test_what_is_determined_of_two_is_told_with_its_value_and_how_sure_it_is(values: Any, combination: str) -> None:
    sentence = only(values)
    assert sentence.startswith(f"Only {combination}")
    assert sentence.endswith((" 1 %.", " 0.99 %."))


@pytest.mark.parametrize(("slope", "sign"), [(2.0, "-"), (-2.0, "+")])
def test_values_of_both_signs_are_combined_as_a_sum(slope: float, sign: str) -> None:
    lean = FIRST - 0.5
    sentence = only({"drift": slope * lean + 0.3 + 0.01 * (NOISE - 1.0), "lean": lean})
    assert sentence.startswith("Only a combination is determined: ")
    assert f"drift {sign} 2 lean = 0.3 +- 0.0001" in sentence


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"force": 12.0 * MASS * NOISE, "mass": MASS}, "the ratio force/mass is 12"),
        ({"force": 6.0 / MASS * NOISE, "mass": MASS}, "the product force*mass is 6"),
        ({"force": MASS**2 * NOISE, "mass": MASS}, "force*mass^-2 is constant, to "),
        ({"force": FIRST - 0.5 + 0.001 * NOISE, "mass": FIRST - 0.5}, "a combination is force - 1 mass = 0.001 +- "),
    ],
)
def test_of_a_population_a_combination_says_nothing_of_what_is_determined(values: Any, words: str) -> None:
    (sentence,) = combinations(values, varies=True).values()
    assert sentence.startswith(f"force and mass vary together: {words}")
    assert "determined" not in sentence


@pytest.mark.parametrize(
    ("force", "mass"),
    [(1.0 + SECOND, MASS), (0.8 * FIRST + 0.6 * SECOND, FIRST), (np.full(3000, 2.0), MASS)],
    ids=["independent", "correlated by 0.8", "constant"],
)
def test_values_that_do_not_determine_one_another_are_not_combined(force: Any, mass: Any) -> None:
    assert combinations({"force": force, "mass": mass}) == {}


def test_at_most_four_combinations_are_told_the_best_determined_first() -> None:
    noise = np.random.default_rng(1).standard_normal((5, 3000))
    values = {f"p{k}": MASS * np.exp(0.004 * (k + 1) * noise[k]) for k in range(5)}  # ten pairs
    found = combinations(values)
    assert len(found) == 4
    assert next(iter(found)) == ("p0", "p1")


# ---- what keeps its prior ----


@pytest.fixture(scope="module")
def cart() -> Iterator[tuple[FitProblem, Likelihood]]:
    asked: Any = {"length": (0.4, 0.6), "masspole": (0.05, 0.2), "x_threshold": (2.0, 3.0)}
    problem = open_problem(logged(episodes=5, steps=15), Question(env=CART, randomize=asked))
    simulator = Simulator(problem.replay)
    motion = read_motion(problem.episodes, problem.replay)
    yield problem, Likelihood(motion, simulator, problem.prior)
    problem.close()


def sentence_of(cart: tuple[FitProblem, Likelihood], name: str) -> str:
    problem, likelihood = cart
    middle = np.full(len(problem.prior.names), 0.5)
    (found,) = silent(likelihood, middle, [name], np.random.default_rng(0))
    return found


def test_a_parameter_without_effect_on_motion_is_told_so(cart: tuple[FitProblem, Likelihood]) -> None:
    expected = "x_threshold keeps its prior: no step that can be replayed depends on it."
    assert sentence_of(cart, "x_threshold") == expected


def test_a_correlated_parameter_is_tried_alone() -> None:
    tied = Correlation(("length", "x_threshold"), ((1.0, 0.8), (0.8, 1.0)))
    prior = Randomization({"length": Uniform(0.4, 0.6), "x_threshold": Uniform(2.0, 3.0)}, correlation=tied)
    reverse = Randomization(dict(prior.rules), correlation=Correlation(("x_threshold", "length"), tied.matrix))
    for asked in (prior, reverse):  # a copula moves the later names with the earlier ones
        problem = open_problem(logged(episodes=2, steps=8), Question(env=CART, randomization=asked))
        simulator = Simulator(problem.replay)
        likelihood = Likelihood(read_motion(problem.episodes, problem.replay), simulator, problem.prior)
        (found,) = silent(likelihood, np.full(2, 0.5), ["x_threshold"], np.random.default_rng(0))
        problem.close()
        assert found == "x_threshold keeps its prior: no step that can be replayed depends on it."


def test_for_a_parameter_with_an_effect_the_motion_that_shows_it_is_told(cart: tuple[FitProblem, Likelihood]) -> None:
    sentence = sentence_of(cart, "masspole")
    assert sentence.startswith("masspole keeps its prior: it shows when ")
    assert sentence.endswith("% of motion wider than the log's).")


def test_the_reason_of_the_environment_is_told() -> None:
    lander: Any = {"gravity": (-12.0, -6.0), "ground_friction": (0.05, 0.2)}
    log = logged("gym_dr/LunarLanderDR-v3", episodes=2, steps=45, noise=0.0)
    problem = open_problem(log, Question(env="gym_dr/LunarLanderDR-v3", randomize=lander))
    simulator = Simulator(problem.replay)
    motion = read_motion(problem.episodes, problem.replay)
    found = silent(Likelihood(motion, simulator, problem.prior), np.full(2, 0.5), ["ground_friction"], RNG)
    problem.close()
    assert found == [f"ground_friction keeps its prior: {problem.replay.unidentifiable['ground_friction']}."]


def test_a_combination_that_follows_from_others_is_not_told_again() -> None:
    scale = MASS * 2.0
    noise = np.random.default_rng(1).standard_normal((2, 3000))
    values = {"a": MASS, "b": scale * np.exp(0.004 * noise[0]), "c": scale * np.exp(0.008 * noise[1])}
    assert list(combinations(values)) == [("a", "b"), ("a", "c")]


def test_a_parameter_that_is_determined_alone_is_told_in_no_combination() -> None:
    assert combinations({"a": MASS, "b": 2.0 * MASS}, sure={"a"}) == {}
