"""The meaning of LunarLander's observations and actions."""

from __future__ import annotations

from gym_dr.envs.box2d.lunar_lander import constants as const
from gym_dr.envs.interface import Interface, Quantity

_HALF_W, _HALF_H = const.WORLD_W / 2, const.WORLD_H / 2  # m, the size of 1 in positions

_OBSERVATION = (
    Quantity("horizontal position, from the middle of the pad", f"{_HALF_W:.4g} m", name="x"),
    Quantity("height above the pad, 0 where the lander stands", f"{_HALF_H:.4g} m", name="y"),
    Quantity("horizontal velocity", f"{const.FPS / _HALF_W:.4g} m/s", name="x_dot"),
    Quantity("vertical velocity, positive is up", f"{const.FPS / _HALF_H:.4g} m/s", name="y_dot"),
    Quantity("angle, 0 is upright, positive is counterclockwise", "rad", name="angle"),
    Quantity("angular velocity", f"{const.FPS / 20:.4g} rad/s", name="angle_dot"),
    Quantity("1 if the left leg touches the ground, else 0", name="left_leg"),
    Quantity("1 if the right leg touches the ground, else 0", name="right_leg"),
)
_CHOICES = ("nothing", "left engine", "main engine", "right engine")
_THROTTLES = (
    "main engine: off up to 0; above 0, from half to full power",
    "side engines: below -0.5 the left one, above 0.5 the right one, from half to full power",
)


def interface(env_id: str) -> Interface:
    """The interface of an id of the family."""
    return Interface(
        observation=_OBSERVATION,
        actions=tuple(map(Quantity, _THROTTLES if "Continuous" in env_id else _CHOICES)),
    )
