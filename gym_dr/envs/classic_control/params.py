"""What may vary in Gymnasium's CartPole and Pendulum, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gym_dr.randomization.space import Param, ParamSpace

CART_POLE = ParamSpace(
    "CartPole",
    [
        Param(name="gravity", nominal=9.8, low=0.0, high=50.0, unit="m/s^2", doc="positive is down"),
        Param(name="masscart", nominal=1.0, low=0.01, high=100.0, unit="kg", doc="mass of the cart"),
        Param(name="masspole", nominal=0.1, low=0.001, high=100.0, unit="kg", doc="mass of the pole"),
        Param(name="length", nominal=0.5, low=0.01, high=10.0, unit="m", doc="half the length of the pole"),
        Param(name="force_mag", nominal=10.0, low=0.0, high=1000.0, unit="N", doc="push on the cart"),
    ],
)

PENDULUM = ParamSpace(
    "Pendulum",
    [
        Param(name="g", nominal=10.0, low=0.0, high=50.0, unit="m/s^2", doc="positive is down"),
        Param(name="m", nominal=1.0, low=0.01, high=100.0, unit="kg", doc="mass of the pendulum"),
        Param(name="l", nominal=1.0, low=0.01, high=10.0, unit="m", doc="length of the pendulum"),
        # these two are bounds of the spaces, which stay as they are: there is no room above nominal
        Param(name="max_torque", nominal=2.0, low=0.0, high=2.0, unit="N m", doc="limit of the motor"),
        Param(name="max_speed", nominal=8.0, low=0.1, high=8.0, unit="rad/s", doc="limit of the angular velocity"),
    ],
)


def derive_cart_pole(env: Any) -> None:
    """Recomputes what CartPole's constructor derives from masses and length."""
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length


KNOWN_ATTRIBUTES: dict[str, tuple[ParamSpace, Callable[[Any], None] | None]] = {
    "CartPoleEnv": (CART_POLE, derive_cart_pole),
    "PendulumEnv": (PENDULUM, None),
}
"""Class name of the environment -> what may vary, and what recomputes derived quantities."""
