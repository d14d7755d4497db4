"""BipedalWalker's ids, keys and presets: two families, since the hardcore variant has additional parameters."""

from __future__ import annotations

from gym_dr.envs.box2d.bipedal_walker.params import (
    BIPEDAL_WALKER,
    BIPEDAL_WALKER_HARDCORE,
    HARDCORE_PRESETS,
    PRESETS,
)
from gym_dr.envs.box2d.entry import entry_point
from gym_dr.envs.family import EnvFamily, EnvId
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

_HERE = "gym_dr.envs.box2d.bipedal_walker"
_KEYS: dict[tuple[str, ...], tuple[float, ...]] = {  # hip, knee, other hip, other knee
    ("left",): (1.0, 0.0, -1.0, 0.0),
    ("right",): (-1.0, 0.0, 1.0, 0.0),
    ("up",): (0.0, 1.0, 0.0, 1.0),
    ("down",): (0.0, -1.0, 0.0, -1.0),
}

# PPO learns as much from half of its usual epochs here; falls matter for hundreds of steps, hence the long horizon
_PPO = {
    "num_envs": 64,
    "rollout_steps": 256,
    "minibatches": 64,
    "epochs": 5,
    "gamma": 0.999,
    "clip_range": 0.18,
}
_UPDATES, _HARDCORE_UPDATES = 306, 1221  # 5 and 20 million transitions


def _family(space: ParamSpace, presets: dict[str, Randomization], steps: int, hardcore: bool) -> EnvFamily:
    env = EnvId(
        id=f"gym_dr/{space.name}DR-v3",
        entry_point=entry_point(_HERE, "BipedalWalkerDR"),
        vector_entry_point=f"{_HERE}.backend:BipedalWalkerVectorEnv",
        discrete=False,
        max_episode_steps=steps,
        reward_threshold=300,
        kwargs={"hardcore": True} if hardcore else {},
        reference=f"{space.name}-v3",
        keys=_KEYS,
    )
    ppo = _PPO | {"updates": _HARDCORE_UPDATES if hardcore else _UPDATES}
    return EnvFamily(
        name=space.name,
        ids=(env,),
        space=space,
        presets=presets,
        defaults={"ppo": ppo},
        interface=f"{_HERE}.interface:interface",
    )


FAMILIES = (
    _family(BIPEDAL_WALKER, PRESETS, 1600, False),
    _family(BIPEDAL_WALKER_HARDCORE, HARDCORE_PRESETS, 2000, True),
)
