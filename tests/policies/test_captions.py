from __future__ import annotations

import numpy as np

from gym_dr.policies.play import caption_of, captioned
from gym_dr.randomization.space import Param, ParamSpace

SPACE = ParamSpace(
    "test",
    [
        Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0, unit="m/s^2"),
        Param(name="enable_wind", nominal=0, low=0, high=1, kind="bool", unit="ignored"),
    ],
)


def test_a_caption_has_a_line_for_each_parameter_that_has_a_value() -> None:
    lines = caption_of(["gravity", "enable_wind", "absent"], {"gravity": -3.14159, "enable_wind": 1.0}, SPACE)
    assert lines == ["gravity -3.142 m/s^2", "enable_wind 1"]


def test_text_changes_the_upper_left_corner_and_nothing_else() -> None:
    shape = (400, 600, 3)
    picture = np.full(shape, 200, np.uint8)
    written = captioned(picture, ["gravity -3", "wind_power 15"])
    assert written.shape == shape
    assert written[: shape[0] // 4, : shape[1] // 2].min() < 200
    assert (picture == 200).all()  # the environment may keep its array
    assert (written[shape[0] // 2 :, shape[1] // 2 :] == 200).all()
