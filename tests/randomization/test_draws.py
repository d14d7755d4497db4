"""Keyed draws: a value follows from seed, draw index and name, and from nothing else."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gym_dr import (
    Add,
    Bernoulli,
    Choice,
    Constant,
    Correlation,
    LogUniform,
    Mixture,
    Normal,
    Param,
    ParamSpace,
    Randomization,
    Scale,
    Uniform,
)
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import RandomizationError
from gym_dr.randomization.sampler import draw, philox, seed_word, uniforms
from tests.strategies import LEAST, MOST, few, names, randomizations, seeds

SPACE = ParamSpace(
    "Lander",
    [
        Param(name=name, nominal=nominal, low=-100.0, high=100.0)
        for name, nominal in zip("abcde", range(1, 6), strict=True)
    ],
)
# every path from a uniform to a value: polynomials, logarithms, exponentials, comparisons, mixtures, operations
INDEPENDENT = {
    "a": Normal(0, 1, low=-3, high=3),
    "b": Normal(0, 1, low=-1, high=2, method="truncate"),
    "c": Scale(LogUniform(0.1, 10)),
    "d": Add(Mixture((Uniform(-2, -1), Normal(0, 1, low=-5, high=5)), (1, 2))),
    "e": Choice((1, 2, 3), (0.5, 0.3, 0.2)),
}
THREE = ((1.0, 0.8, -0.3), (0.8, 1.0, 0.1), (-0.3, 0.1, 1.0))
CORRELATED = Randomization(INDEPENDENT, correlation=Correlation(("a", "c", "d"), THREE))
MANY = np.arange(1000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # seed words all over the 64 bits


# the generator


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        # the known answers that the authors publish with their Random123 library (kat_vectors, philox4x32 10)
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_published_words(counter: str, key: str, words: str) -> None:
    c0, c1, c2, c3 = (np.array([int(word, 16)], dtype=np.uint64) for word in counter.split())
    k0, k1 = (np.array([int(word, 16)], dtype=np.uint64) for word in key.split())
    assert [int(word[0]) for word in philox((c0, c1, c2, c3), (k0, k1))] == [int(word, 16) for word in words.split()]


@pytest.mark.parametrize(
    ("seed", "index", "name", "expected"),
    [
        # worked out once with Python's integers: key = BLAKE2b-64 of the name (0xbbb91e8b01c24bc2 for gravity), counter
        # = (seed, index) in 32-bit words, and the top 52 bits of the first two words that Philox4x32-10 gives
        (0, 0, "gravity", "0x1.c2c4a6658fc75p-1"),
        (42, 0, "gravity", "0x1.9e6531c1d108dp-1"),
        (42, 1, "gravity", "0x1.326bd6cd7ae48p-4"),
        (43, 0, "gravity", "0x1.17d15ded704b8p-4"),
        (42, 0, "wind_power", "0x1.7f98bef2915a0p-6"),
        (2**64 - 1, 2**40, "gravity", "0x1.4a87cf17bb3e9p-1"),
        (7, 3, "Schwerkraft ä", "0x1.e90edb4b76962p-2"),
        (0x243F6A8885A308D313198A2E03707344, 5, "gravity", "0x1.744f4fe741ca0p-6"),  # 128 bits, as Gymnasium's own
    ],
)
def test_the_uniforms_of_this_project_never_change(seed: int, index: int, name: str, expected: str) -> None:
    assert float(uniforms([seed_word(seed)], index, [name])[0, 0]).hex() == expected


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_a_seed_of_64_bits_stands_for_itself(seed: int) -> None:
    assert seed_word(seed) == seed


def test_longer_seeds_become_words_of_64_bits_that_differ_also_where_their_low_bits_do_not() -> None:
    words = {seed_word(5 + (k << 64)) for k in range(1, 1000)}
    assert len(words) == 999
    assert all(0 <= word < 2**64 for word in words)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(RandomizationError, match="Expected a seed >= 0, got -1"):
        seed_word(-1)


# uniforms


@few
@given(st.lists(seeds, max_size=5), st.integers(0, 2**63), st.lists(names, max_size=4))
def test_uniforms_are_strictly_between_0_and_1(words: list[int], index: int, among: list[str]) -> None:
    u = uniforms(np.array(words, dtype=np.uint64), index, among)
    assert u.shape == (len(among), len(words))
    assert ((u >= LEAST) & (u <= MOST)).all()


@few
@given(st.lists(seeds, min_size=1, max_size=20), st.integers(0, 2**63), st.lists(names, min_size=1, max_size=5))
def test_a_uniform_does_not_depend_on_the_others_drawn_with_it(words: list[int], index: int, among: list[str]) -> None:
    together = uniforms(np.array(words, dtype=np.uint64), index, among)
    for row, name in enumerate(among):
        for column, word in enumerate(words):
            assert uniforms(np.array([word], dtype=np.uint64), index, [name])[0, 0] == together[row, column]


def test_a_uniform_does_not_depend_on_the_block_it_is_computed_in() -> None:
    words = np.arange(20_000, dtype=np.uint64)  # more than two blocks of 8192 uniforms
    together = uniforms(words, 3, ["a", "b", "c"])
    for part in (slice(0, 1), slice(2729, 2732), slice(8191, 8193), slice(19_999, 20_000)):
        np.testing.assert_array_equal(uniforms(words[part], 3, ["a", "b", "c"]), together[:, part])


def test_a_draw_index_for_each_seed_is_the_same_as_one_at_a_time() -> None:
    words, index = np.array([5, 5, 9], dtype=np.uint64), np.array([0, 1, 2**40])
    together = uniforms(words, index, ["a"])[0]
    assert together.tolist() == [uniforms([w], int(i), ["a"])[0, 0] for w, i in zip(words, index, strict=True)]


@pytest.mark.parametrize("changing", ["seed", "draw index", "name"])
def test_uniforms_are_uniform_whatever_changes(changing: str) -> None:
    # 64 bins, 32,768 values: the chi-square statistic has 63 degrees of freedom; keys are fixed, so this never flickers
    n = 32_768
    if changing == "seed":
        u = uniforms(np.arange(n, dtype=np.uint64), 0, ["gravity"])
    elif changing == "draw index":
        u = uniforms(np.full(n, 42, dtype=np.uint64), np.arange(n), ["gravity"])
    else:
        u = uniforms([42], 0, [f"joint_{k}" for k in range(n)])
    counts = np.histogram(u, bins=64, range=(0, 1))[0]
    assert 0.001 < stats.chisquare(counts).pvalue < 0.999


def test_draws_of_different_names_indices_and_seeds_are_independent() -> None:
    # five sequences of 20,000; a correlation has a standard deviation of 1 / sqrt(20,000) = 0.0071
    n = 20_000
    words = np.arange(n, dtype=np.uint64)
    sequences = [
        uniforms(words, 0, ["a"])[0],
        uniforms(words, 0, ["b"])[0],  # another name
        uniforms(words, 1, ["a"])[0],  # the next draw
        uniforms(words + np.uint64(1), 0, ["a"])[0],  # the neighboring seed
        uniforms(words, words, ["a"])[0],  # seed and index in step
    ]
    for one, other in combinations(sequences, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(n)


def test_pairs_of_draws_fill_the_square_evenly() -> None:
    u, v = uniforms(np.arange(32_768, dtype=np.uint64), 0, ["a", "b"])
    counts = np.histogram2d(u, v, bins=8, range=((0, 1), (0, 1)))[0]
    assert 0.001 < stats.chisquare(counts.ravel()).pvalue < 0.999


# draws of parameters


@pytest.mark.parametrize("randomization", [Randomization(INDEPENDENT), CORRELATED], ids=["independent", "correlated"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 100])
def test_the_number_of_sub_environments_changes_no_value(randomization: Randomization, count: int) -> None:
    together = draw(randomization, SPACE, MANY, 4)
    fewer = draw(randomization, SPACE, MANY[:count], 4)
    for name in randomization:
        np.testing.assert_array_equal(fewer[name], together[name][:count])


@few
@given(randomizations(LUNAR_LANDER, min_size=1), st.lists(seeds, min_size=2, max_size=12), st.data())
def test_drawing_for_some_sub_environments_changes_no_value(
    randomization: Randomization, words: list[int], data: st.DataObject
) -> None:
    index = np.arange(len(words))
    together = draw(randomization, LUNAR_LANDER, np.array(words, dtype=np.uint64), index)
    some = np.array(data.draw(st.lists(st.sampled_from(range(len(words))), min_size=1)))
    part = draw(randomization, LUNAR_LANDER, np.array(words, dtype=np.uint64)[some], index[some])
    for name in randomization:
        np.testing.assert_array_equal(part[name], together[name][some])


@few
@given(randomizations(LUNAR_LANDER, min_size=1), seeds, st.integers(0, 2**63))
def test_adding_parameters_changes_no_other_value(randomization: Randomization, word: int, index: int) -> None:
    more = Randomization(
        {name: param.nominal for name, param in LUNAR_LANDER.items()} | dict(randomization.rules),
        correlation=randomization.correlation,
    )
    before, after = (draw(each, LUNAR_LANDER, [word], index) for each in (randomization, more))
    assert {name: after[name][0] for name in before} == {name: values[0] for name, values in before.items()}


def test_leaving_out_parameters_outside_of_the_correlation_changes_no_value() -> None:
    fewer = Randomization({name: INDEPENDENT[name] for name in "acd"}, correlation=CORRELATED.correlation)
    together, part = draw(CORRELATED, SPACE, MANY, 0), draw(fewer, SPACE, MANY, 0)
    for name in fewer:
        np.testing.assert_array_equal(part[name], together[name])


def test_a_value_is_the_quantile_of_the_keyed_uniform() -> None:
    (u,) = uniforms(MANY, 3, ["a"])
    values = draw(Randomization({"a": Normal(0, 1, low=-3, high=3)}), SPACE, MANY, 3)["a"]
    np.testing.assert_array_equal(values, Normal(0, 1, low=-3, high=3).ppf(u))


@pytest.mark.parametrize(("rule", "expected"), [(Scale(Constant(1.5)), 7.5), (Add(Constant(1.5)), 6.5), (1.5, 1.5)])
def test_scale_and_add_start_from_nominal_at_every_draw(rule: object, expected: float) -> None:
    # "e" is nominally 5
    for index in range(5):
        assert draw(Randomization({"e": rule}), SPACE, [7], index)["e"].tolist() == [expected]


@few
@given(randomizations(LUNAR_LANDER, min_size=1), st.lists(seeds, min_size=1, max_size=20))
def test_values_are_inside_the_support_of_their_rules(randomization: Randomization, words: list[int]) -> None:
    # the supports, not the bounds of the parameters, to which ``draw`` clips
    for name, values in draw(randomization, LUNAR_LANDER, np.array(words, dtype=np.uint64), 0).items():
        param = LUNAR_LANDER[name]
        low, high = randomization[name].support(param.nominal)
        assert ((values >= np.nextafter(low, -math.inf)) & (values <= np.nextafter(high, math.inf))).all()
        param.check(values)


@few
@given(randomizations(LUNAR_LANDER, min_size=1), st.lists(seeds, min_size=1, max_size=20))
def test_clipping_moves_a_value_by_an_ulp_at_most(randomization: Randomization, words: list[int]) -> None:
    independent = Randomization(dict(randomization))
    drawn = draw(independent, LUNAR_LANDER, np.array(words, dtype=np.uint64), 0)
    u = uniforms(np.array(words, dtype=np.uint64), 0, list(independent))
    for row, (name, rule) in enumerate(independent.items()):
        unclipped = rule.apply(LUNAR_LANDER[name].nominal, rule.distribution.ppf(u[row]))
        assert (np.abs(drawn[name] - unclipped) <= np.spacing(np.abs(unclipped))).all()


def test_rounding_cannot_carry_a_value_past_a_bound() -> None:
    # 0.1 x 3 is 0.30000000000000004 in float64
    space = ParamSpace("Thin", [Param(name="drag", nominal=0.1, low=0.0, high=0.3)])
    assert draw(Randomization({"drag": Scale(Constant(3))}), space, [1], 0)["drag"].tolist() == [0.3]


def test_nothing_is_drawn_where_nothing_varies_or_nobody_draws() -> None:
    assert draw(Randomization(), SPACE, MANY, 0) == {}
    assert draw(CORRELATED, SPACE, np.array([], dtype=np.uint64), 0)["a"].shape == (0,)


# correlation

N = 20_000
KEYS = np.arange(N, dtype=np.uint64)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("a", stats.uniform(-3, 8)),
        ("b", stats.truncnorm(-1, 2)),
        ("c", stats.loguniform(0.3, 30)),  # 3 x [0.1, 10]
    ],
)
def test_correlated_parameters_keep_their_distributions(name: str, oracle: object) -> None:
    randomization = Randomization(
        {"a": Uniform(-3, 5), "b": INDEPENDENT["b"], "c": Scale(LogUniform(0.1, 10))},
        correlation=Correlation(("b", "a", "c"), THREE),
    )
    values = draw(randomization, SPACE, KEYS, 0)[name]
    assert stats.kstest(values, oracle.cdf).pvalue > 0.001  # type: ignore[attr-defined]  # fixed keys: never flickers


@pytest.mark.parametrize("rho", [-0.95, -0.5, 0.0, 0.5, 0.95])
def test_the_rank_correlation_is_that_of_a_gaussian_copula(rho: float) -> None:
    # Spearman's rank correlation of a Gaussian copula is 6/pi asin(rho/2)
    randomization = Randomization(
        {"a": Uniform(0, 1), "b": LogUniform(1, 100)}, correlation=Correlation(("a", "b"), ((1, rho), (rho, 1)))
    )
    values = draw(randomization, SPACE, KEYS, 0)
    got = stats.spearmanr(values["a"], values["b"]).statistic
    assert got == pytest.approx(6 / math.pi * math.asin(rho / 2), abs=4 / math.sqrt(N))


def test_every_pair_of_three_has_its_own_correlation() -> None:
    randomization = Randomization(
        {name: Uniform(0, 1) for name in "abc"}, correlation=Correlation(("c", "a", "b"), THREE)
    )
    values = draw(randomization, SPACE, KEYS, 0)
    for (i, one), (j, other) in combinations(enumerate("cab"), 2):
        expected = 6 / math.pi * math.asin(THREE[i][j] / 2)
        got = stats.spearmanr(values[one], values[other]).statistic
        assert got == pytest.approx(expected, abs=4 / math.sqrt(N))


def test_a_correlation_links_factors_and_the_order_of_choices_as_the_guide_says() -> None:
    rules = {"gravity": Scale((0.9, 1.1)), "main_engine_power": (12.0, 14.0), "leg_spring_torque": Choice((60, 20))}
    correlation = Correlation(tuple(rules), ((1.0, 0.8, 0.5), (0.8, 1.0, 0.5), (0.5, 0.5, 1.0)))
    drawn = draw(Randomization(rules, correlation=correlation), LUNAR_LANDER, np.arange(2000, dtype=np.uint64), 0)
    found = np.corrcoef([drawn[name] for name in rules])
    assert found[0, 1] < -0.7  # nominal gravity is negative
    assert found[1, 2] < -0.3  # 60 comes before 20


def test_the_first_name_and_parameters_outside_of_the_correlation_keep_their_draws_bit_for_bit() -> None:
    without = draw(Randomization(INDEPENDENT), SPACE, MANY, 0)
    for first in "acd":
        rest = [name for name in "acd" if name != first]
        with_it = draw(Randomization(INDEPENDENT, correlation=Correlation((first, *rest), THREE)), SPACE, MANY, 0)
        for name in (first, "b", "e"):
            np.testing.assert_array_equal(with_it[name], without[name])


def test_the_followers_of_an_identity_matrix_move_by_rounding_only() -> None:
    identity = Randomization(
        {"a": Uniform(0, 1), "b": Uniform(0, 1)}, correlation=Correlation(("a", "b"), ((1, 0), (0, 1)))
    )
    np.testing.assert_allclose(draw(identity, SPACE, MANY, 0)["b"], uniforms(MANY, 0, ["b"])[0], rtol=1e-12)


def test_a_correlated_coin_stays_fair() -> None:
    # 20,000 throws: standard deviation 0.5 / sqrt(20,000) = 0.0035
    coin = Randomization(
        {"a": Uniform(0, 1), "b": Bernoulli(0.5)}, correlation=Correlation(("a", "b"), ((1, 0.9), (0.9, 1)))
    )
    assert draw(coin, SPACE, KEYS, 0)["b"].mean() == pytest.approx(0.5, abs=4 * 0.0035)


def test_extreme_scores_stay_inside_of_the_bounds() -> None:
    # nearly singular, so that large scores add up
    rho = 0.999999
    unbounded = Randomization(
        {"a": Normal(0, 1), "b": Normal(0, 1)}, correlation=Correlation(("a", "b"), ((1, rho), (rho, 1)))
    )
    free = ParamSpace("Free", [Param(name=name, nominal=0.0, low=-math.inf, high=math.inf) for name in "ab"])
    assert np.isfinite(draw(unbounded, free, KEYS, 0)["b"]).all()
