"""The native vector environment of each of Gymnasium's MuJoCo environments."""

from __future__ import annotations

from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.humanoid_v5 import HumanoidEnv
from gymnasium.envs.mujoco.humanoidstandup_v5 import HumanoidStandupEnv
from gymnasium.envs.mujoco.inverted_double_pendulum_v5 import InvertedDoublePendulumEnv
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv
from gymnasium.envs.mujoco.pusher_v5 import PusherEnv
from gymnasium.envs.mujoco.reacher_v5 import ReacherEnv
from gymnasium.envs.mujoco.swimmer_v5 import SwimmerEnv
from gymnasium.envs.mujoco.walker2d_v5 import Walker2dEnv

from gym_dr.envs.mujoco import tasks
from gym_dr.envs.mujoco.vector_env import MujocoVectorEnv


class InvertedPendulumVectorEnv(MujocoVectorEnv):
    """Many InvertedPendulum-v5 with randomized physics."""

    env_class = InvertedPendulumEnv
    task_class = tasks.InvertedPendulum
    space_name = "InvertedPendulum"


class InvertedDoublePendulumVectorEnv(MujocoVectorEnv):
    """Many InvertedDoublePendulum-v5 with randomized physics."""

    env_class = InvertedDoublePendulumEnv
    task_class = tasks.InvertedDoublePendulum
    space_name = "InvertedDoublePendulum"


class HopperVectorEnv(MujocoVectorEnv):
    """Many Hopper-v5 with randomized physics."""

    env_class = HopperEnv
    task_class = tasks.Hopper
    space_name = "Hopper"


class HalfCheetahVectorEnv(MujocoVectorEnv):
    """Many HalfCheetah-v5 with randomized physics."""

    env_class = HalfCheetahEnv
    task_class = tasks.HalfCheetah
    space_name = "HalfCheetah"


class Walker2dVectorEnv(MujocoVectorEnv):
    """Many Walker2d-v5 with randomized physics."""

    env_class = Walker2dEnv
    task_class = tasks.Walker2d
    space_name = "Walker2d"


class AntVectorEnv(MujocoVectorEnv):
    """Many Ant-v5 with randomized physics."""

    env_class = AntEnv
    task_class = tasks.Ant
    space_name = "Ant"


class SwimmerVectorEnv(MujocoVectorEnv):
    """Many Swimmer-v5 with randomized physics."""

    env_class = SwimmerEnv
    task_class = tasks.Swimmer
    space_name = "Swimmer"


class HumanoidVectorEnv(MujocoVectorEnv):
    """Many Humanoid-v5 with randomized physics."""

    env_class = HumanoidEnv
    task_class = tasks.Humanoid
    space_name = "Humanoid"


class HumanoidStandupVectorEnv(MujocoVectorEnv):
    """Many HumanoidStandup-v5 with randomized physics."""

    env_class = HumanoidStandupEnv
    task_class = tasks.HumanoidStandup
    space_name = "HumanoidStandup"


class ReacherVectorEnv(MujocoVectorEnv):
    """Many Reacher-v5 with randomized physics."""

    env_class = ReacherEnv
    task_class = tasks.Reacher
    space_name = "Reacher"


class PusherVectorEnv(MujocoVectorEnv):
    """Many Pusher-v5 with randomized physics."""

    env_class = PusherEnv
    task_class = tasks.Pusher
    space_name = "Pusher"
