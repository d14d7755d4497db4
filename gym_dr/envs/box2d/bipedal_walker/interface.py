"""The meaning of BipedalWalker's observations and actions, for both variants."""

from __future__ import annotations

from collections.abc import Iterator

from gym_dr.envs.box2d.bipedal_walker import constants as const
from gym_dr.envs.interface import Interface, Quantity

_LEGS = ("first", "second")


def _leg(name: str, k: int) -> Iterator[Quantity]:
    yield Quantity(f"angle of the hip of the {name} leg", "rad", name=f"hip{k}")
    yield Quantity("speed of that hip", f"{const.SPEED_HIP:g} rad/s", name=f"hip{k}_dot")
    yield Quantity("angle of its knee, plus 1", "rad", name=f"knee{k}")
    yield Quantity("speed of that knee", f"{const.SPEED_KNEE:g} rad/s", name=f"knee{k}_dot")
    yield Quantity("1 if its lower part touches the ground, else 0", name=f"contact{k}")


def interface(env_id: str) -> Interface:
    """The interface of an id of either family."""
    width, height = const.VIEWPORT_W / const.SCALE, const.VIEWPORT_H / const.SCALE
    motor = f"share of the motor's torque (nominally {const.MOTORS_TORQUE} N m); the sign is the direction"
    return Interface(
        observation=(
            Quantity("angle of the hull, 0 is level", "rad", name="hull_angle"),
            Quantity("angular velocity of the hull", f"{const.FPS / 2:g} rad/s", name="hull_angle_dot"),
            Quantity("horizontal velocity of the hull", f"{const.FPS / (0.3 * width):.4g} m/s", name="x_dot"),
            Quantity("vertical velocity of the hull", f"{const.FPS / (0.3 * height):.4g} m/s", name="y_dot"),
            *(quantity for k, name in enumerate(_LEGS, 1) for quantity in _leg(name, k)),
            Quantity(
                f"lidar: distance to the ground along {const.LIDAR_RAYS} rays, from straight down to forward",
                f"{const.LIDAR_RANGE:.4g} m",
                const.LIDAR_RAYS,
                name="lidar",
            ),
        ),
        actions=tuple(Quantity(f"{joint} of the {leg} leg: {motor}") for leg in _LEGS for joint in ("hip", "knee")),
    )
