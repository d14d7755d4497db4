from __future__ import annotations

from gymnasium.envs.box2d import lunar_lander as stock

from gym_dr.envs.box2d.lunar_lander import constants
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER


def test_constants_are_gymnasiums() -> None:
    names = [name for name in vars(constants) if name.isupper() and hasattr(stock, name)]
    assert len(names) >= 12  # FPS, SCALE, both viewport sizes, leg and engine geometry, LANDER_POLY
    for name in names:
        ours, theirs = getattr(constants, name), getattr(stock, name)
        assert (list(ours) if name == "LANDER_POLY" else ours) == theirs, name


def test_nominal_values_are_gymnasiums() -> None:
    assert LUNAR_LANDER.nominal["main_engine_power"] == stock.MAIN_ENGINE_POWER
    assert LUNAR_LANDER.nominal["side_engine_power"] == stock.SIDE_ENGINE_POWER
    assert LUNAR_LANDER.nominal["initial_random"] == stock.INITIAL_RANDOM
    assert LUNAR_LANDER.nominal["leg_spring_torque"] == stock.LEG_SPRING_TORQUE
    env = stock.LunarLander()
    for name in ("gravity", "enable_wind", "wind_power", "turbulence_power"):
        assert LUNAR_LANDER.nominal[name] == getattr(env, name)
