"""The ids of the MuJoCo environments: one family each, since each model has its own parameters."""

from __future__ import annotations

from typing import Any

from gym_dr.envs.family import EnvFamily, EnvId
from gym_dr.envs.mujoco.presets import PRESETS

_LIMITS = {  # name -> episode limit, reward threshold: as Gymnasium registers them
    "InvertedPendulum": (1000, 950.0),
    "InvertedDoublePendulum": (1000, 9100.0),
    "Hopper": (1000, 3800.0),
    "HalfCheetah": (1000, 4800.0),
    "Walker2d": (1000, None),
    "Ant": (1000, 6000.0),
    "Swimmer": (1000, 360.0),
    "Humanoid": (1000, None),
    "HumanoidStandup": (1000, None),
    "Reacher": (50, -3.75),
    "Pusher": (100, 0.0),
}
# without this limit, some updates change the policy of a robot with many joints too much (KL divergence 0.2 to 0.9)
ROBOT_DEFAULTS: dict[str, dict[str, Any]] = {"ppo": {"target_kl": 0.06}}
# after a million steps, PPO's return is twice as high without the 78 contact forces, which are 0 most of the time
_FORCES = {"ignored_sensors": ("cfrc_ext",)}
_ANT = {"Ant": {"ppo": ROBOT_DEFAULTS["ppo"] | _FORCES, "distill": _FORCES}}
# with ten episodes per update, some trainings learn to balance and then forget it
_REINFORCE = {"InvertedPendulum": {"reinforce": {"num_envs": 32}}}


def _family(name: str, steps: int, threshold: float | None) -> EnvFamily:
    env = EnvId(
        id=f"gym_dr/{name}DR-v5",
        entry_point="gym_dr.envs.mujoco.env:make",
        vector_entry_point="gym_dr.envs.mujoco.env:MujocoVectorEnv",
        kwargs={"reference": f"{name}-v5"},
        discrete=False,
        max_episode_steps=steps,
        reward_threshold=threshold,
        reference=f"{name}-v5",
    )
    return EnvFamily(
        name=name,
        ids=(env,),
        space="gym_dr.envs.mujoco.reference:space_of",
        presets=PRESETS[name],
        camera="gym_dr.envs.mujoco.camera:follow",
        defaults=ROBOT_DEFAULTS | _REINFORCE.get(name, {}) | _ANT.get(name, {}),
        interface="gym_dr.envs.mujoco.interface:interface",
    )


FAMILIES = tuple(_family(name, *limits) for name, limits in _LIMITS.items())
