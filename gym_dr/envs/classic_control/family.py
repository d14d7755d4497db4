"""The ids of the classic control environments: one family each, since each has its own parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gym_dr.envs.classic_control import acrobot, cart_pole, mountain_car, mountain_car_continuous, pendulum
from gym_dr.envs.classic_control.equations import ClassicEquations
from gym_dr.envs.family import EnvFamily, EnvId
from gym_dr.envs.interface import Interface

_HERE = "gym_dr.envs.classic_control"


# many environments, to use their speed, and few epochs of large minibatches
# the mountain car must swing for a long time before the first reward, hence the wide deviation
_PPO = {
    "num_envs": 32,
    "updates": 366,  # 3 million transitions
    "rollout_steps": 256,
    "minibatches": 32,
    "epochs": 4,
    "lr": 0.001,
    "initial_std": 1.0,
}


def _family(
    equations: ClassicEquations, version: int, steps: int, threshold: float | None, keys: Mapping[tuple[str, ...], Any]
) -> EnvFamily:
    name = equations.name
    env = EnvId(
        id=f"gym_dr/{name}DR-v{version}",
        entry_point=f"{_HERE}.env:{name}DR",
        vector_entry_point=f"{_HERE}.env:{name}VectorEnv",
        max_episode_steps=steps,
        reward_threshold=threshold,
        stock=f"{name}-v{version}",
        keys=keys,
        discrete=all(isinstance(action, int) for action in keys.values()),
    )
    return EnvFamily(
        name=name,
        ids=(env,),
        space=equations.space,
        presets=equations.presets,
        defaults={"ppo": _PPO},
        interface=f"{_HERE}.family:interface",
    )


# version, episode limit and reward threshold as in Gymnasium; what the arrow keys do
_ROWS = (
    (cart_pole.EQUATIONS, 1, 500, 475.0, {("left",): 0, ("right",): 1}),
    (acrobot.EQUATIONS, 1, 500, -100.0, {(): 1, ("left",): 0, ("right",): 2}),
    (mountain_car.EQUATIONS, 0, 200, -110.0, {(): 1, ("left",): 0, ("right",): 2}),
    (mountain_car_continuous.EQUATIONS, 0, 999, 90.0, {("left",): (-1.0,), ("right",): (1.0,)}),
    (pendulum.EQUATIONS, 1, 200, None, {("left",): (2.0,), ("right",): (-2.0,)}),
)

FAMILIES = tuple(_family(*row) for row in _ROWS)
EQUATIONS = {family.name: row[0] for family, row in zip(FAMILIES, _ROWS, strict=True)}


def interface(env_id: str) -> Interface:
    """What the observations, actions and rewards of an id are."""
    return next(EQUATIONS[family.name].interface for family in FAMILIES if family.ids[0].id == env_id)


STOCK = {family.name: family.ids[0].stock for family in FAMILIES}  # ids of Gymnasium's environments
