"""Values of many sub-environments, beyond what the contracts of environments say of draws, pins and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.errors import RandomizationError
from gym_dr.randomization.sampler import FixedSampler, draw
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.randomization.table import ParamTable
from tests.plugins.parts.growing import GrowingSampler

SPACE = ParamSpace(
    "Test",
    [Param(name=name, nominal=1.0, low=0.0, high=10.0) for name in ("mass", "length", "gravity")],
)
VARIED = Randomization({"mass": (0.5, 2.0), "gravity": (3.0, 9.0)})
EVERYONE = np.arange(3)
SEEDS = np.array([7, 8, 9], np.uint64)


class Sparse(ParamSpace):
    """Reports nothing but what varies or was set by hand, as the space of a model with hundreds of parameters."""

    def __init__(self, randomization: Randomization, space: ParamSpace = SPACE) -> None:
        super().__init__("Test", list(space.values()))
        self.nominal = dict.fromkeys(randomization, 1.0)


def table(randomization: Randomization = VARIED, space: ParamSpace = SPACE) -> ParamTable:
    made = ParamTable(space, FixedSampler(space, randomization), 3)
    made.seed(EVERYONE, SEEDS)
    return made


def test_draws_made_ahead_are_those_of_each_index_whatever_is_reset() -> None:
    values, rng = table(), np.random.default_rng(0)
    for _ in range(300):
        envs = np.flatnonzero(rng.random(3) < 0.5)
        values.begin(envs, {})
        for name, drawn in draw(VARIED, SPACE, SEEDS, np.maximum(values.index, 0)).items():
            begun = values.index >= 0
            assert (values.params()[name][begun] == drawn[begun]).all()


def test_seeding_some_starts_their_draws_anew_and_leaves_the_others() -> None:
    values = table()
    for _ in range(5):
        values.begin(EVERYONE, {})
    values.seed(np.array([1]), np.array([50], np.uint64))
    values.begin(EVERYONE, {})
    assert values.index.tolist() == [5, 0, 5]
    again = draw(VARIED, SPACE, np.array([7, 50, 9], np.uint64), values.index)
    assert (values.params()["gravity"] == again["gravity"]).all()


@pytest.mark.parametrize(("words", "index"), [(SEEDS[:2], np.zeros(3, int)), (SEEDS, np.zeros(2, int)), (None, None)])
def test_held_draws_of_another_shape_are_refused_and_change_nothing(words: Any, index: Any) -> None:
    values = table()
    with pytest.raises(RandomizationError, match="shape"):
        values.hold_draws(words, index)
    assert values.held is None


def test_held_draws_stay_until_others_come_and_pins_are_above_them() -> None:
    nothing = table(Randomization())
    nothing.hold_draws(SEEDS, np.array([4, 4, 4]))
    nothing.begin(EVERYONE, {})
    assert nothing.index.tolist() == [4] * 3  # draws held where nothing varies count too
    values, words = table(), np.array([70, 8, 9], np.uint64)
    for index in (np.array([11, 12, 0]), np.array([3, 12, 5])):
        values.hold_draws(words, index)
        values.pin({"gravity": np.full(3, 8.0)}, np.array([1]))
        for _ in range(2):
            values.seed(np.array([0, 2]), np.array([1, 2], np.uint64))
            values.begin(EVERYONE, {})
            assert values.index.tolist() == index.tolist()
            own = draw(VARIED, SPACE, words, index)
            assert values.params()["mass"].tolist() == own["mass"].tolist()
            assert values.params()["gravity"].tolist() == [own["gravity"][0], 8.0, own["gravity"][2]]


def test_a_sparse_space_reports_what_varies_or_was_set_where_it_was_set() -> None:
    values = table(space=Sparse(VARIED))
    values.pin({"length": np.array([2.0, 3.0, 4.0])}, np.array([1]))
    values.begin(EVERYONE, {})
    assert values.names == ["gravity", "mass", "length"]
    assert values.info()["params"]["length"].tolist() == [0.0, 3.0, 0.0]
    assert values.info()["params"]["_length"].tolist() == [False, True, False]
    assert values.params()["length"].tolist() == [1.0, 3.0, 1.0]
    assert np.isnan(values.pinned["length"]).tolist() == [True, False, True]
    values.pin(None, EVERYONE)
    values.begin(EVERYONE, {})
    assert "length" not in values.params()
    assert "length" not in values.info()["params"]
    assert values.pinned == {}


def test_a_sampler_of_another_support_is_refused() -> None:
    values = table()
    with pytest.raises(RandomizationError, match="support"):
        values.sampler = FixedSampler(SPACE, Randomization({"mass": (1.0, 2.0)}))
    values.sampler = GrowingSampler(SPACE, VARIED)
    values.begin(EVERYONE, {})
    assert (values.params()["mass"] < 0.65).all()


def test_a_new_version_of_a_sampler_draws_a_few_ahead_and_then_more() -> None:
    asked: list[int] = []

    class Counting(GrowingSampler):
        def draw(self, seeds: Any, draw_index: Any, version: int | None = None) -> Any:
            asked.append(len(seeds))
            return super().draw(seeds, draw_index, version)

    sampler, envs = Counting(SPACE, VARIED), np.arange(3)
    one = ParamTable(SPACE, sampler, 3)
    one.seed(envs, np.arange(3, dtype=np.uint64))
    for _ in range(2):
        for _ in range(7):
            one.begin(envs, {})
        sampler.shares.append(sampler.shares[-1])  # the next version
    assert asked == [3 * 4, 3 * 8] * 2
