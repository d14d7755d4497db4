"""Sensors with a gain and an offset of their own, which are found together with the physics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.envs.replay import Coordinate
from gym_dr.errors import GymDrError, UnknownNameError
from gym_dr.fitting.sensors import Sensors, sensor_params, split
from gym_dr.randomization.distributions import Integer
from tests.api.fit_sample import LENGTH, fit, number
from tests.fitting.logged import logged

TRUTH = {"length": 0.7}
ASKED: dict[str, Any] = {**LENGTH, "obs_gain:theta": (0.8, 1.3), "obs_offset:theta": (-0.1, 0.1)}


def misread() -> list[dict[str, Any]]:
    """A potentiometer that reads 10 % too much from a wrong zero, in rad."""
    log = logged(params=TRUTH, episodes=20, noise=0.002)
    for episode in log:
        episode["observations"][:, 2] = 1.1 * episode["observations"][:, 2] + 0.05
    return log


def test_a_reading_leads_back_to_the_state() -> None:
    sensors = Sensors(gain=np.array([1.0, 2.0]), offset=np.array([0.5, -1.0]))
    states = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(sensors.true(sensors.read(states)), states, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sensors.read(np.array([1.0, 1.0])), [1.5, 1.0])


def test_sensors_are_told_from_the_environments_own_parameters() -> None:
    replay: Any = type("Two", (), {"size": 3, "places": np.array([0, 2]), "coordinates": two()})
    own, sensors = split({"mass": 2.0, "obs_gain:turn": 1.2, "obs_offset:x": 0.1}, replay)
    assert own == {"mass": 2.0}
    assert sensors is not None
    assert sensors.gain.tolist() == [1.0, 1.0, 1.2]
    assert sensors.offset.tolist() == [0.1, 0.0, 0.0]
    assert split({"mass": 2.0}, replay) == ({"mass": 2.0}, None)


def two() -> list[Coordinate]:
    return [Coordinate(name="x", unit="m"), Coordinate(name="turn", unit="rad")]


def test_each_coordinate_has_a_gain_and_an_offset_in_its_unit() -> None:
    found = {param.name: (param.nominal, param.unit) for param in sensor_params(two())}
    assert found["obs_gain:x"] == (1, "")
    assert found["obs_offset:turn"] == (0, "rad")


def test_gain_and_offset_of_a_sensor_are_found_together_with_the_physics() -> None:
    log = misread()
    assert fit(log).suspicious
    found = fit(log, randomize=ASKED)
    for name, truth in (("length", 0.7), ("obs_gain:theta", 1.1), ("obs_offset:theta", 0.05)):
        assert abs(number(found, name, "mean") - truth) < 4 * number(found, name, "std")
        assert number(found, name, "contraction") < 0.1
    assert not found.suspicious
    # what held-out episodes show of the fitted physics is as they read it
    assert found.replay.groupby("physics")["share"].mean()["fitted"] < 0.1
    assert list(found.randomization) == ["length"]


def test_a_sensor_that_is_known_is_accounted_for() -> None:
    found = fit(misread(), params={"obs_gain:theta": 1.1, "obs_offset:theta": 0.05})
    assert abs(number(found, "length", "mean") - 0.7) < 4 * number(found, "length", "std")
    assert not found.suspicious
    assert list(found.randomization) == ["length"]


def test_the_delay_of_a_sensor_is_found_together_with_the_physics() -> None:
    log = logged(params=TRUTH, episodes=20, noise=0.002)
    for episode in log:
        episode["observations"][2:, 3] = episode["observations"][:-2, 3]  # read two steps late
    assert fit(log).suspicious
    found = fit(log, randomize={**LENGTH, "obs_delay:theta_dot": Integer(0, 3), "obs_delay:x_dot": Integer(0, 1)})
    assert "obs_delay:theta_dot: 2 steps (100 %)." in found.findings
    assert "obs_delay:x_dot: 0 steps (100 %)." in found.findings
    assert abs(number(found, "length", "mean") - 0.7) < 4 * number(found, "length", "std")
    assert list(found.randomization) == ["length"]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"obs_gain:thta": (0.8, 1.2)}, UnknownNameError, "Did you mean 'theta'"),
        ({"obs_gain:theta": (-1.0, 1.0)}, GymDrError, "Parameter 'obs_gain:theta': expected"),
    ],
)
def test_an_impossible_sensor_is_refused(asked: Any, error: type[GymDrError], message: str) -> None:
    with pytest.raises(error, match=message):
        fit(logged(episodes=6, steps=12), randomize=asked)
