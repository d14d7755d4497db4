"""Constants and nominal values are those of Gymnasium's modules."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium.envs.box2d import bipedal_walker, lunar_lander

from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE
from gym_dr.envs.box2d.lunar_lander import constants as lander
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER


# of the lander FPS, SCALE, both sizes of the viewport, geometry of legs and engines, LANDER_POLY
@pytest.mark.parametrize(("ours", "stock", "least"), [(lander, lunar_lander, 12), (walker, bipedal_walker, 18)])
def test_constants_are_gymnasiums(ours: Any, stock: Any, least: int) -> None:
    names = [name for name in vars(ours) if name.isupper() and hasattr(stock, name)]
    assert len(names) >= least
    for name in names:
        value = getattr(ours, name)
        assert (list(value) if name.endswith("_POLY") else value) == getattr(stock, name), name


def test_densities_are_gymnasiums() -> None:
    assert bipedal_walker.HULL_FD.density == walker.HULL_DENSITY
    assert bipedal_walker.LEG_FD.density == walker.LEG_DENSITY


def test_nominal_values_are_gymnasiums() -> None:
    for name in ("main_engine_power", "side_engine_power", "initial_random", "leg_spring_torque"):
        assert LUNAR_LANDER.nominal[name] == getattr(lunar_lander, name.upper())
    env = lunar_lander.LunarLander()
    for name in ("gravity", "enable_wind", "wind_power", "turbulence_power"):
        assert LUNAR_LANDER.nominal[name] == getattr(env, name)
    names = {"motor_torque": "MOTORS_TORQUE", "hip_speed": "SPEED_HIP", "knee_speed": "SPEED_KNEE"}
    names |= {"lidar_range": "LIDAR_RANGE", "ground_friction": "FRICTION", "initial_random": "INITIAL_RANDOM"}
    for space in (BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE):
        for name, constant in names.items():
            assert space.nominal[name] == getattr(bipedal_walker, constant)
