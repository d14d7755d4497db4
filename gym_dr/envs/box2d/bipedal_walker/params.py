"""The parameters of BipedalWalker and its presets."""

from __future__ import annotations

from gym_dr.envs.box2d.bipedal_walker import constants as walker
from gym_dr.randomization.distributions import Distribution, Uniform, uniform_outside
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

_BODY = [
    Param(name="gravity", nominal=-10.0, low=-20.0, high=-1.0, unit="m/s^2", doc="vertical; negative is down"),
    Param(
        name="motor_torque",
        nominal=float(walker.MOTORS_TORQUE),
        low=0.0,
        high=200.0,
        unit="N m",
        doc="torque of each joint at full action",
    ),
    Param(
        name="hip_speed", nominal=float(walker.SPEED_HIP), low=0.5, high=12.0, unit="rad/s", doc="motor speed of hips"
    ),
    Param(
        name="knee_speed",
        nominal=float(walker.SPEED_KNEE),
        low=0.5,
        high=18.0,
        unit="rad/s",
        doc="motor speed of knees",
    ),
    Param(
        name="hull_density",
        nominal=walker.HULL_DENSITY,
        low=0.5,
        high=20.0,
        unit="kg/m^2",
        doc="sets the hull's mass and inertia",
    ),
    Param(
        name="leg_density",
        nominal=walker.LEG_DENSITY,
        low=0.2,
        high=5.0,
        unit="kg/m^2",
        doc="sets mass and inertia of upper and lower legs",
    ),
    Param(name="ground_friction", nominal=walker.FRICTION, low=0.0, high=5.0, doc="Coulomb friction of the ground"),
    Param(name="leg_friction", nominal=walker.LEG_FRICTION, low=0.0, high=2.0, doc="Coulomb friction of the legs"),
    Param(
        name="initial_random",
        nominal=float(walker.INITIAL_RANDOM),
        low=0.0,
        high=100.0,
        unit="N",
        doc="largest push at the start",
    ),
    # between these bounds an upper limit stays above its lower one
    Param(name="hip_lower", nominal=walker.HIP_LOWER, low=-1.5, high=-0.2, unit="rad", doc="hip: farthest back"),
    Param(name="hip_upper", nominal=walker.HIP_UPPER, low=0.2, high=1.8, unit="rad", doc="hip: farthest forward"),
    Param(name="knee_lower", nominal=walker.KNEE_LOWER, low=-2.4, high=-0.9, unit="rad", doc="knee: most bent"),
    Param(name="knee_upper", nominal=walker.KNEE_UPPER, low=-0.7, high=0.0, unit="rad", doc="knee: most straight"),
    Param(name="lidar_range", nominal=walker.LIDAR_RANGE, low=0.5, high=12.0, unit="m", doc="length of lidar rays"),
    Param(name="roughness", nominal=1.0, low=0.0, high=10.0, doc="roughness of the ground; 0 is level"),
]


def _sizes(name: str, nominal: tuple[float, float], largest: float, doc: tuple[str, str]) -> list[Param]:
    """Lowest and highest size of an obstacle in whole terrain steps (14/30 m); ground.py says how they are drawn."""
    low, high = f"{name}_low", f"{name}_high"
    return [
        Param(name=low, nominal=nominal[0], low=0.0, high=largest, unit="steps", doc=f"{doc[0]}; 0 is none"),
        Param(name=high, nominal=nominal[1], low=0.0, high=largest, unit="steps", doc=f"{doc[1]}, if above {low}"),
    ]


_OBSTACLES = [
    *_sizes("pit_gap", (3.0, 4.0), 10.0, ("narrowest pit", "widest pit")),
    *_sizes("stump_height", (1.0, 2.0), 5.0, ("lowest stump", "highest stump")),
    *_sizes("stair_height", (1.0, 1.0), 5.0, ("lowest stair", "highest stair")),
    Param(name="stair_steps", nominal=3.0, low=1.0, high=9.0, doc="stairs in a flight; some have one more"),
]

BIPEDAL_WALKER = ParamSpace("BipedalWalker", _BODY)
BIPEDAL_WALKER_HARDCORE = ParamSpace("BipedalWalkerHardcore", [*_BODY, *_OBSTACLES])

# "random" and "extreme" are R and E of the generalization protocol (Packer et al. 2018, "Assessing Generalization in
# Deep Reinforcement Learning"): R is a box around the nominal values, E has every parameter outside that box. Their
# paper does not include BipedalWalker; the ranges are ours.
PRESETS = {
    "default": Randomization(
        {
            "gravity": Uniform(-12.0, -8.0),
            "motor_torque": Uniform(65.0, 95.0),
            "hull_density": Uniform(4.0, 6.0),
            "leg_density": Uniform(0.8, 1.2),
            "ground_friction": Uniform(1.0, 4.0),
            "roughness": Uniform(0.0, 2.0),
        }
    ),
    "wide": Randomization(
        {
            "gravity": Uniform(-14.0, -6.0),
            "motor_torque": Uniform(50.0, 110.0),
            "hip_speed": Uniform(3.0, 5.0),
            "knee_speed": Uniform(4.5, 7.5),
            "hull_density": Uniform(2.5, 7.5),
            "leg_density": Uniform(0.5, 1.5),
            "ground_friction": Uniform(0.5, 5.0),
            "leg_friction": Uniform(0.1, 0.4),
            "roughness": Uniform(0.0, 3.0),
        }
    ),
    "random": Randomization(
        {
            "gravity": Uniform(-11.0, -9.0),
            "motor_torque": Uniform(70.0, 90.0),
            "hull_density": Uniform(4.0, 6.0),
            "leg_density": Uniform(0.8, 1.2),
            "ground_friction": Uniform(1.5, 3.5),
            "roughness": Uniform(0.5, 1.5),
        }
    ),
    "extreme": Randomization(
        {
            "gravity": uniform_outside(-13.0, -11.0, -9.0, -7.0),
            "motor_torque": uniform_outside(55.0, 70.0, 90.0, 105.0),
            "hull_density": uniform_outside(3.0, 4.0, 6.0, 7.0),
            "leg_density": uniform_outside(0.6, 0.8, 1.2, 1.4),
            "ground_friction": uniform_outside(0.5, 1.5, 3.5, 4.5),
            "roughness": uniform_outside(0.0, 0.5, 1.5, 2.0),
        }
    ),
}

_OBSTACLE_RANGES: dict[str, dict[str, Distribution]] = {
    "default": {
        "pit_gap_low": Uniform(1.0, 3.0),
        "pit_gap_high": Uniform(3.0, 5.0),
        "stump_height_low": Uniform(0.0, 1.0),
        "stump_height_high": Uniform(1.0, 3.0),
        "stair_height_low": Uniform(0.0, 1.0),
        "stair_height_high": Uniform(1.0, 2.0),
        "stair_steps": Uniform(1.0, 4.0),
    },
    "wide": {
        "pit_gap_low": Uniform(0.0, 3.0),
        "pit_gap_high": Uniform(3.0, 8.0),
        "stump_height_low": Uniform(0.0, 2.0),
        "stump_height_high": Uniform(1.0, 4.0),
        "stair_height_low": Uniform(0.0, 1.0),
        "stair_height_high": Uniform(1.0, 3.0),
        "stair_steps": Uniform(1.0, 7.0),
    },
    "random": {
        "pit_gap_high": Uniform(3.0, 5.0),
        "stump_height_high": Uniform(1.0, 3.0),
        "stair_steps": Uniform(2.0, 4.0),
    },
    "extreme": {
        "pit_gap_high": uniform_outside(1.0, 3.0, 5.0, 8.0),
        "stump_height_high": uniform_outside(0.0, 1.0, 3.0, 4.0),
        "stair_steps": uniform_outside(1.0, 2.0, 4.0, 6.0),
    },
}
HARDCORE_PRESETS = {name: Randomization({**PRESETS[name], **ranges}) for name, ranges in _OBSTACLE_RANGES.items()}
