"""The values in force in one environment, beyond what the contracts of environments say of draws, pins and values."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import Param, ParamSpace, Randomization
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.draws import draw, seed_word
from gym_dr.randomization.episode import RandomizedEnv

SPACE = ParamSpace(
    "Lander",
    [
        Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0),
        Param(name="mass", nominal=5.0, low=1.0, high=20.0),
        Param(name="wind", nominal=0, low=0, high=1, kind="bool"),
    ],
)
VARIED = Randomization({"gravity": (-12, -8), "mass": (4, 6)})


class Host(RandomizedEnv, gym.Env[Any, Any]):
    """An environment that is nothing but its parameters."""

    def __init__(self, randomization: Randomization = VARIED) -> None:
        self._randomize(SPACE, randomization)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._begin_episode(seed, options)
        return self.params


def expected(seed: int, index: int) -> dict[str, float]:
    """Draw number ``index`` of ``seed``, and nominal for the rest."""
    drawn = draw(VARIED, SPACE, np.array([seed_word(seed)], dtype=np.uint64), index)
    return {**SPACE.nominal, **{name: float(values[0]) for name, values in drawn.items()}}


# draws


def test_generators_put_in_by_hand_get_random_sequences_of_draws() -> None:
    found = []
    for host in (Host(), Host()):
        host.np_random = np.random.default_rng(0)
        for index in range(2):
            found.append(tuple(host.reset().values()))
            assert host.draw_index == index
    assert len(set(found)) == 4


def test_a_generator_put_in_after_seeding_goes_on_with_the_draws_of_the_seed() -> None:
    host = Host()
    host.reset(seed=42)
    host.np_random = np.random.default_rng(0)
    assert host.reset() == expected(42, 1)


# exact values


def test_exact_values_that_were_set_are_used_up_by_one_reset() -> None:
    host = Host()
    host.exact_params = {"gravity": -3.7}
    assert host.reset(seed=42)["gravity"] == -3.7
    assert host.exact_params == {}
    assert host.reset() == expected(42, 1)


def test_exact_values_of_the_options_go_before_those_that_were_set() -> None:
    host = Host()
    host.exact_params = {"gravity": -3.7, "mass": 2.0}
    got = host.reset(seed=42, options={"params": {"gravity": -1.0}})
    assert got == {"gravity": -1.0, "mass": 2.0, "wind": 0.0}


def test_bad_options_are_refused_before_anything_changes() -> None:
    host = Host()
    before = host.reset(seed=42)
    host.exact_params = {"mass": 2.0}
    with pytest.raises(RandomizationError, match=r"expected a value from -12 to 0, got 3\.7"):
        host.reset(seed=7, options={"params": {"mass": 5.0, "gravity": 3.7}})
    assert (host.params, host.draw_index, host.exact_params) == (before, 0, {"mass": 2.0})
    assert host.reset() == {**expected(42, 1), "mass": 2.0}  # still the draws of 42


# pinned values


def test_pinned_values_are_replaced_as_a_whole_and_exact_ones_go_before_them_for_one_episode() -> None:
    host = Host()
    host.set_params({"mass": 2.0})
    host.pinned_params = {"gravity": -3.7}
    assert host.pinned_params == {"gravity": -3.7}
    host.exact_params = {"gravity": -1.0}
    assert [host.reset(seed=42)["gravity"], host.reset()["gravity"]] == [-1.0, -3.7]


# what is told


@pytest.mark.parametrize("name", ["params", "pinned_params", "exact_params"])
def test_what_is_told_may_be_changed_without_harm(name: str) -> None:
    host = Host()
    host.reset(seed=42)
    getattr(host, name)["gravity"] = host._visible(0, {})[1]["params"]["gravity"] = 99.0
    assert getattr(host, name).get("gravity") != 99.0
    assert host.params == expected(42, 0)


@pytest.mark.parametrize("name", ["param", "parms", "reset_masks"])
def test_an_option_that_is_misspelled_is_refused_and_others_pass(name: str) -> None:
    host = Host()
    with pytest.raises(UnknownNameError, match=r"Unknown option of reset.*Did you mean"):
        host.reset(options={name: {"mass": 5.0}})
    host.reset(options={"low": -0.1, "map": 3})
