"""LunarLander's ids, keys and presets."""

from __future__ import annotations

from typing import Any

from gym_dr.envs.box2d.entry import entry_point
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER, PRESETS
from gym_dr.envs.family import EnvFamily, EnvId

_HERE = "gym_dr.envs.box2d.lunar_lander"
# up is the main engine, left and right tilt the lander
_CHOICES = {("left",): 1, ("up",): 2, ("right",): 3}
_THROTTLES = {
    ("up",): (1.0, 0.0),
    ("left",): (0.0, -1.0),
    ("right",): (0.0, 1.0),
    ("left", "up"): (1.0, -1.0),
    ("right", "up"): (1.0, 1.0),
}


def _env_id(name: str, keys: Any, **kwargs: Any) -> EnvId:
    return EnvId(
        id=f"gym_dr/{name}DR-v3",
        entry_point=entry_point(_HERE, "LunarLanderDR"),
        vector_entry_point=f"{_HERE}.backend:LunarLanderVectorEnv",
        max_episode_steps=1000,
        reward_threshold=200,
        kwargs=kwargs,
        reference=f"{name}-v3",
        discrete=not kwargs.get("continuous", False),
        keys=keys,
    )


# most of the return comes from the landing, hundreds of steps ahead, hence the long horizon
_PPO = {
    "num_envs": 32,
    "updates": 732,  # 6 million transitions
    "rollout_steps": 256,
    "minibatches": 32,
    "epochs": 4,
    "gamma": 0.996,
    "gae_lambda": 0.98,
    "entropy_coef": 0.003,
    "lr": 0.001,
}

FAMILY = EnvFamily(
    name=LUNAR_LANDER.name,
    ids=(_env_id("LunarLander", _CHOICES), _env_id("LunarLanderContinuous", _THROTTLES, continuous=True)),
    space=LUNAR_LANDER,
    presets=PRESETS,
    defaults={"ppo": _PPO},
    interface=f"{_HERE}.interface:interface",
    bench_threshold=-120.0,  # the one of Gymnasium's A2C tutorial
)
