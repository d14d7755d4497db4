"""The ids of the classic control environments: one family each, since each has its own parameters."""

from __future__ import annotations

from dataclasses import replace

from gym_dr.envs.classic_control import acrobot, cart_pole, mountain_car, mountain_car_continuous, pendulum
from gym_dr.envs.equations.family import EquationsFamily

_HERE = "gym_dr.envs.classic_control"


# many environments, to use their speed, and few epochs of large minibatches
# the mountain car must swing for a long time before the first reward, hence the large standard deviation
_PPO = {
    "num_envs": 32,
    "updates": 366,  # 3 million transitions
    "rollout_steps": 256,
    "minibatches": 32,
    "epochs": 4,
    "lr": 0.001,
    "initial_std": 1.0,
}


def _as_gymnasiums(family: EquationsFamily) -> EquationsFamily:
    """The family with single environments that have the attributes and pictures of Gymnasium's class."""
    (made,) = family.ids
    env = replace(
        made,
        kwargs={},
        entry_point=f"{_HERE}.env:{family.name}DR",
        vector_entry_point=f"{_HERE}.env:{family.name}VectorEnv",
    )
    return replace(family, ids=(env,), defaults={"ppo": _PPO})


_MODULES = (cart_pole, acrobot, mountain_car, mountain_car_continuous, pendulum)
FAMILIES = tuple(_as_gymnasiums(module.FAMILY) for module in _MODULES)
IDS = {family.name: family.ids[0] for family in FAMILIES}
