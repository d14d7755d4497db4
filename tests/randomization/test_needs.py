"""What a parameter needs is turned on with it or refused, however the parameter was chosen, and the same everywhere."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import Bernoulli, Randomization, Scale
from gym_dr.errors import RandomizationError
from gym_dr.evaluation.sets import CellSet
from gym_dr.randomization.presets import resolve, with_rules
from gym_dr.randomization.space import Param, ParamSpace, checked_values

LANDER = "gym_dr/LunarLanderDR-v3"
POND = ParamSpace(
    "Pond",
    [
        Param(name="windy", nominal=0, low=0, high=1, kind="bool"),
        Param(name="stormy", nominal=1, low=0, high=1, kind="bool"),
        Param(name="wind", nominal=1.0, low=0.0, high=9.0, needs=("windy",)),
        Param(name="hail", nominal=1.0, low=0.0, high=9.0, needs=("stormy",)),
        Param(name="flow", nominal=0.0, low=0.0, high=9.0, needs=("depth", "width")),
        Param(name="depth", nominal=0.0, low=0.0, high=9.0),
        Param(name="width", nominal=0.0, low=0.0, high=9.0),
    ],
)


@pytest.mark.parametrize(
    ("rules", "on"),
    [
        ({"wind": (0, 9)}, True),
        ({"wind": 1.0}, True),  # also at its nominal value
        ({"wind": (0, 9), "windy": Bernoulli(0.5)}, False),
        ({"hail": (0, 9)}, False),  # its switch is on nominally
        ({"flow": (0, 9), "width": (0, 1)}, False),
        ({"flow": 0.0}, False),  # nothing should change
        ({}, False),
    ],
)
def test_a_switch_that_nobody_mentions_is_on_with_a_drawn_parameter_as_if_it_had_been_written(
    rules: dict[str, Any], on: bool
) -> None:
    resolved = resolve(rules, POND)
    assert resolved == Randomization({**rules, **({"windy": 1} if on else {})})
    assert resolve(resolved, POND) == resolved


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"wind": (0, 9), "windy": 0}, "'wind' has no effect here: it needs windy = 1. Add that, or leave wind out"),
        ({"hail": (0, 9), "stormy": 0}, "'hail' has no effect here: it needs stormy = 1"),
        ({"flow": (0, 9)}, "'flow' has no effect here: it needs depth or width other than 0"),
        ({"flow": 2.0, "depth": 0}, "'flow' has no effect here: it needs depth or width other than 0"),
        ({"flow": Scale((1, 2))}, "'flow' has no effect here: Scale multiplies its nominal value, which is 0. Use Add"),
    ],
)
def test_what_needs_a_number_or_whose_switch_is_off_on_purpose_is_refused_with_what_to_add(
    rules: dict[str, Any], message: str
) -> None:
    with pytest.raises(RandomizationError, match=message):
        resolve(rules, POND)
    with pytest.raises(RandomizationError, match=message):
        with_rules("none", rules, POND)


def test_what_a_randomization_lacks_may_come_from_rules_beside_it() -> None:
    assert set(with_rules({"flow": (0, 9)}, {"depth": 1.0}, POND)) == {"flow", "depth"}


def test_a_grid_turns_switches_on_in_every_cell_and_says_so() -> None:
    cells = CellSet.grid(POND, {"wind": [1.0, 2.0]}, episodes=1)
    assert cells.fixed == {"windy": 1.0}
    assert "windy is on" in cells.notes[0]
    assert CellSet.grid(POND, {"wind": [1.0, 2.0], "windy": [0.0, 1.0]}, episodes=1).fixed == {}
    with pytest.raises(RandomizationError, match="'flow' has no effect here"):
        CellSet.grid(POND, {"flow": [1.0, 2.0]}, episodes=1)


@pytest.mark.parametrize(
    ("values", "drawn", "pinned"),
    [
        ({"flow": np.array([0.0, 2.0])}, {}, {}),
        ({"wind": np.full(2, 2.0)}, {"windy": 0}, {}),
        ({"wind": np.full(2, 2.0)}, {}, {"windy": np.zeros(2)}),
        ({"hail": np.full(2, 2.0)}, {"stormy": Bernoulli(0.5)}, {"stormy": np.zeros(2)}),
    ],
)
def test_values_set_by_hand_without_an_effect_are_refused(values: Any, drawn: Any, pinned: Any) -> None:
    with pytest.raises(RandomizationError, match="has no effect here"):
        checked_values(values, 2, POND, Randomization(drawn), pinned)


@pytest.mark.parametrize(
    ("values", "drawn", "pinned", "on"),
    [
        ({"wind": np.full(2, 2.0)}, {}, {}, True),
        ({"wind": np.full(2, 2.0)}, {"windy": Bernoulli(0.5)}, {}, False),
        ({"flow": np.full(2, 2.0)}, {"depth": (0, 1)}, {}, False),
        ({"flow": np.full(2, 2.0)}, {}, {"depth": np.array([np.nan, 1.0])}, False),
        ({"wind": np.full(2, 2.0), "windy": np.zeros(2)}, {}, {}, False),  # a draw that is repeated
        ({"depth": np.full(2, 2.0)}, {}, {}, False),
    ],
)
def test_values_set_by_hand_turn_switches_on_that_nobody_mentions(
    values: Any, drawn: Any, pinned: Any, on: bool
) -> None:
    found = checked_values(values, 2, POND, Randomization(drawn), pinned)
    assert {n: array.tolist() for n, array in found.items() if n not in values} == ({"windy": [1.0, 1.0]} if on else {})


def test_switches_hold_where_and_as_long_as_the_values_that_need_them() -> None:
    envs: Any = gym.make_vec(LANDER, num_envs=3, randomization="none")
    envs.set_params({"wind_power": 5.0}, np.array([True, False, True]))

    def windy(**options: Any) -> list[float]:
        found: list[float] = envs.reset(seed=1, options=options or None)[1]["params"]["enable_wind"].tolist()
        return found

    assert windy() == [1.0, 0.0, 1.0]
    assert windy(params={"turbulence_power": 1.0}) == [1.0] * 3
    assert windy() == [1.0, 0.0, 1.0]
    envs.set_params(None)
    assert windy() == [0.0] * 3


@pytest.mark.parametrize("keyword", [False, True])
def test_a_preset_leaves_out_what_a_keyword_makes_idle(keyword: bool) -> None:
    drawn = gym.make(LANDER, enable_wind=keyword).unwrapped.randomization  # type: ignore[attr-defined]
    assert set(drawn) == {"gravity", *(("wind_power", "turbulence_power") if keyword else ())}
