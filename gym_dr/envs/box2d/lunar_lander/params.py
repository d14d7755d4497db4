"""The parameters of LunarLander and its presets."""

from __future__ import annotations

from gym_dr.randomization.distributions import Bernoulli, Constant, Normal, Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

LUNAR_LANDER = ParamSpace(
    "LunarLander",
    [
        Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0, unit="m/s^2", doc="vertical; negative is down"),
        Param(name="enable_wind", nominal=0.0, low=0.0, high=1.0, kind="bool", doc="whether wind and turbulence blow"),
        Param(
            name="wind_power",
            nominal=15.0,
            low=0.0,
            high=20.0,
            unit="N",
            doc="largest sideways force of the wind",
            needs=("enable_wind",),
        ),
        Param(
            name="turbulence_power",
            nominal=1.5,
            low=0.0,
            high=2.0,
            unit="N m",
            doc="largest torque of the wind",
            needs=("enable_wind",),
        ),
        Param(
            name="main_engine_power", nominal=13.0, low=0.0, high=40.0, unit="N s/m", doc="thrust of the main engine"
        ),
        Param(name="side_engine_power", nominal=0.6, low=0.0, high=3.0, unit="N s/m", doc="thrust of the side engines"),
        Param(name="lander_density", nominal=5.0, low=1.0, high=20.0, unit="kg/m^2", doc="sets hull mass and inertia"),
        Param(name="leg_spring_torque", nominal=40.0, low=0.0, high=200.0, unit="N m", doc="limit of the legs' motors"),
        Param(name="ground_friction", nominal=0.1, low=0.0, high=2.0, doc="Coulomb friction of the terrain"),
        Param(name="initial_random", nominal=1000.0, low=0.0, high=3000.0, unit="N", doc="largest push at the start"),
    ],
)


KEYWORDS = ("gravity", "enable_wind", "wind_power", "turbulence_power")  # Gymnasium's, besides ``continuous``


def _tutorial(spread: float) -> Randomization:
    return Randomization(
        {
            "gravity": Normal(-10.0, spread * 1.0, low=-11.99, high=-0.01),
            "enable_wind": Bernoulli(0.5),
            "wind_power": Normal(15.0, spread * 1.0, low=0.01, high=19.99),
            "turbulence_power": Normal(1.5, spread * 0.5, low=0.01, high=1.99),
        }
    )


# "default" is the domain randomization of Gymnasium's A2C tutorial; "wide" doubles its standard deviations.
# "random" and "extreme" are R and E of the generalization protocol (Packer et al. 2018, "Assessing Generalization in
# Deep Reinforcement Learning"): R is a box around the nominal values, E has every parameter outside that box. Their
# paper does not include LunarLander; the ranges are ours, and keep the main engine stronger than gravity everywhere.
PRESETS = {
    "default": _tutorial(spread=1.0),
    "wide": _tutorial(spread=2.0),
    "random": Randomization(
        {
            "gravity": Uniform(-11.0, -8.0),
            "enable_wind": Bernoulli(0.5),
            "wind_power": Uniform(8.0, 16.0),
            "turbulence_power": Uniform(0.8, 1.6),
            "main_engine_power": Uniform(12.0, 14.0),
            "side_engine_power": Uniform(0.5, 0.7),
            "lander_density": Uniform(4.5, 5.5),
        }
    ),
    "extreme": Randomization(
        {
            "gravity": uniform_outside(-12.0, -11.0, -8.0, -6.0),
            "enable_wind": Constant(1.0),  # without wind its power would be neither inside nor outside
            "wind_power": uniform_outside(3.0, 8.0, 16.0, 20.0),
            "turbulence_power": uniform_outside(0.2, 0.8, 1.6, 2.0),
            "main_engine_power": uniform_outside(11.0, 12.0, 14.0, 16.0),
            "side_engine_power": uniform_outside(0.4, 0.5, 0.7, 0.8),
            "lander_density": uniform_outside(4.0, 4.5, 5.5, 6.0),
        }
    ),
}
