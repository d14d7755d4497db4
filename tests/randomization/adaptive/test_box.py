"""A randomization as the unit cube of its quantiles: what can be learned, what is refused, where draws start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr import Bernoulli, Choice, Integer, LogUniform, Normal, Param, ParamSpace, Randomization, Scale, Uniform
from gym_dr.errors import RandomizationError, RandomizationWarning
from gym_dr.randomization.adaptive.box import NOMINAL, QuantileBox

SPACE = ParamSpace(
    "Everything",
    [
        Param(name="gravity", nominal=-10.0, low=-20.0, high=0.0),
        Param(name="mass", nominal=2.0, low=0.1, high=100.0),
        Param(name="legs", nominal=2, low=1, high=8, kind="int"),
        Param(name="wind", nominal=0, low=0, high=1, kind="bool"),
    ],
)


def box_of(rules: dict[str, Any], **correlation: Any) -> QuantileBox:
    return QuantileBox(SPACE, Randomization(rules, **correlation))


def test_quantiles_become_values_through_the_quantile_function() -> None:
    box = box_of(
        {"gravity": Scale((0.5, 1.5)), "mass": LogUniform(1, 100), "legs": Integer(1, 4), "wind": Bernoulli(0.25)}
    )
    assert box.names == ["gravity", "legs", "mass", "wind"]
    values = box.values(np.array([[0.0, 0.5, 1.0], [0.0, 0.5, 0.99], [0.0, 0.5, 1.0], [0.7, 0.74, 0.76]]))
    np.testing.assert_allclose(values["gravity"], [-5.0, -10.0, -15.0])  # half to one and a half times -10
    np.testing.assert_allclose(values["mass"], [1.0, 10.0, 100.0])
    assert values["legs"].tolist() == [1, 3, 4]
    assert values["wind"].tolist() == [0, 0, 1]


def test_a_parameter_of_one_value_keeps_it_and_is_not_learned() -> None:
    box = box_of({"gravity": (-12.0, -2.0), "wind": True})
    assert box.names == ["gravity"]
    assert box.values(np.array([[0.5]])) == {"gravity": np.array([-7.0]), "wind": np.array([1.0])}


@pytest.mark.parametrize(
    ("rules", "correlation", "message"),
    [
        ({"wind": True}, None, "a parameter that varies"),
        ({"legs": Choice((4, 2, 3))}, None, "'legs': expected values that rise or fall.*List them in order"),
        (
            {"gravity": (-12.0, -2.0), "mass": (1.0, 3.0)},
            {"names": ["gravity", "mass"], "matrix": [[1, 0.5], [0.5, 1]]},
            "correlation of gravity, mass",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused(rules: Any, correlation: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=message):
        box_of(rules, correlation=correlation)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # (10 - 2) / (12 - 2) of the way up is 0.2; a quarter of the box about it is 0.075 to 0.325
        ({"gravity": (-12.0, -2.0)}, (0.075, 0.325)),
        ({"gravity": Scale((0.5, 1.5))}, (0.375, 0.625)),  # falls with its quantile, and nominal is in the middle
        ({"mass": LogUniform(1, 4)}, (0.375, 0.625)),  # 2 is half way from 1 to 4 in the logarithm
        ({"mass": (2.0, 4.0)}, (0.0, 0.25)),  # nominal is an end of the box, so the range is moved inside
        ({"legs": Integer(1, 4)}, (0.25, 0.5)),  # 2 of 1, 2, 3, 4 has quantiles 0.25 to 0.5, with 0.375 in the middle
        ({"wind": Bernoulli(0.5)}, (0.125, 0.375)),  # off has quantiles 0 to 0.5
    ],
)
def test_draws_start_in_a_part_of_the_box_about_nominal(rule: Any, expected: tuple[float, float]) -> None:
    np.testing.assert_allclose(box_of(rule).start(NOMINAL, 0.25), [expected], atol=1e-9)


def test_draws_can_start_in_a_randomization_and_at_nominal_for_what_it_leaves_out() -> None:
    start = box_of({"gravity": (-12.0, -2.0), "mass": (0.0 + 1.0, 3.0)}).start({"gravity": (-11.0, -7.0)}, 0.1)
    np.testing.assert_allclose(start, [(0.1, 0.5), (0.45, 0.55)], atol=1e-9)


@pytest.mark.parametrize(
    ("box", "start", "middle"),
    [
        # in a box from -12 to -2 a mean of -9 is the quantile 0.3 and a deviation of 0.5 is 0.05; a uniform
        # distribution of that deviation has a half width of sqrt(3) x 0.05
        ((-12.0, -2.0), Normal(-9.0, 0.5, low=-12.0, high=-2.0), 0.3),
        ((-11.0, -1.0), Normal(-10.0, 0.5, low=-11.9, high=-0.1), 0.1),  # its tails may reach out of the box
    ],
)
def test_a_start_of_another_form_begins_as_varied_as_it_is(box: Any, start: Normal, middle: float) -> None:
    found = box_of({"gravity": box}).start({"gravity": start}, 0.25)
    np.testing.assert_allclose(found, [(middle - 0.0866, middle + 0.0866)], atol=1e-3 if middle == 0.3 else 3e-3)


@pytest.mark.parametrize(
    ("box", "start", "message"),
    [
        ((-12.0, -2.0), {"gravity": (-11.0, -7.0), "mass": (1.0, 2.0)}, "of the box, gravity, got also mass"),
        ((-12.0, -8.0), {"gravity": (-12.0, -7.0)}, r"from -12 to -8, got one from -12 to -7.*Narrow the start"),
    ],
)
def test_a_start_out_of_the_box_is_refused(box: Any, start: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=message):
        box_of({"gravity": box}).start(start, 0.25)


def test_a_box_without_the_nominal_value_starts_at_the_nearer_end_and_says_so() -> None:
    with pytest.warns(RandomizationWarning, match="nominal value 2 is outside the box, 3 to 5"):
        start = box_of({"mass": Uniform(3.0, 5.0)}).start(NOMINAL, 0.25)
    np.testing.assert_allclose(start, [(0.0, 0.25)], atol=1e-9)
