"""Parameter spaces of Gymnasium's own classic control environments, for randomizing their attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gym_dr.envs.classic_control import cart_pole, pendulum
from gym_dr.randomization.space import ParamSpace


def derive_cart_pole(env: Any) -> None:
    """Recomputes the attributes that CartPole's constructor derives from masses and length."""
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length


KNOWN_ATTRIBUTES: dict[str, tuple[ParamSpace, Callable[[Any], None] | None]] = {
    "CartPoleEnv": (cart_pole.SPACE, derive_cart_pole),
    "PendulumEnv": (pendulum.SPACE, None),
}
"""Class name of the environment -> its parameters, and a function that recomputes derived quantities."""
