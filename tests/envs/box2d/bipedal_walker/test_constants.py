from __future__ import annotations

from gymnasium.envs.box2d import bipedal_walker as stock

from gym_dr.envs.box2d.bipedal_walker import constants
from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE


def test_constants_are_gymnasiums() -> None:
    names = [name for name in vars(constants) if name.isupper() and hasattr(stock, name)]
    assert len(names) >= 18
    for name in names:
        ours, theirs = getattr(constants, name), getattr(stock, name)
        assert (list(ours) if name == "HULL_POLY" else ours) == theirs, name
    assert (stock.HULL_FD.density, stock.LEG_FD.density) == (constants.HULL_DENSITY, constants.LEG_DENSITY)


def test_nominal_values_are_gymnasiums() -> None:
    for space in (BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE):
        assert space.nominal["motor_torque"] == stock.MOTORS_TORQUE
        assert space.nominal["hip_speed"] == stock.SPEED_HIP
        assert space.nominal["knee_speed"] == stock.SPEED_KNEE
        assert space.nominal["lidar_range"] == stock.LIDAR_RANGE
        assert space.nominal["ground_friction"] == stock.FRICTION
        assert space.nominal["initial_random"] == stock.INITIAL_RANDOM
