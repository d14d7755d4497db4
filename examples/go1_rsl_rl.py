"""The Go1 with rsl_rl's runner: ``python examples/go1_rsl_rl.py`` (needs ``pip install rsl-rl-lib``)."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

import gym_dr


class Go1(VecEnv):
    """Our arrays as tensors: a group for the actor, and the draw, which only the critic observes."""

    def __init__(self, num_envs: int) -> None:
        """Makes native environments, whose next episode begins in the step that ends the last one."""
        envs = gym.make_vec("gym_dr/Go1JoystickDR-v0", num_envs, autoreset_mode="SameStep")
        self.max_episode_length = envs.spec.max_episode_steps
        self.envs = gym_dr.DisturbVector(envs, "default")  # pushes and noise, as the preset says
        self.num_envs, self.num_actions = num_envs, envs.single_action_space.shape[0]
        self.device, self.cfg = "cpu", {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.observations = self.groups(*self.envs.reset(seed=1))

    def groups(self, observations: Any, info: Any) -> TensorDict:
        """Observations ``(N, size)`` and the draw ``(N, parameters)``."""
        draw = [values for name, values in info["params"].items() if not name.startswith("_")]  # those are masks
        arrays = {"policy": observations, "draw": np.stack(draw, axis=1)}
        return TensorDict({k: torch.as_tensor(a, dtype=torch.float32) for k, a in arrays.items()}, [self.num_envs])

    def get_observations(self) -> TensorDict:
        """The current ones."""
        return self.observations

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Time limits are told apart from falls, since rsl_rl bootstraps the value after them."""
        observations, rewards, terminated, truncated, info = self.envs.step(actions.clamp(-1.0, 1.0).numpy())
        self.observations, ended = self.groups(observations, info), torch.as_tensor(terminated | truncated)
        self.episode_length_buf = torch.where(ended, 0, self.episode_length_buf + 1)
        terms = {f"/{name}": float(values.mean()) for name, values in info.items() if name.startswith("reward_")}
        extras = {"time_outs": torch.as_tensor(truncated & ~terminated), "log": terms}
        return self.observations, torch.as_tensor(rewards, dtype=torch.float32), ended, extras


NETWORK = {"class_name": "MLPModel", "hidden_dims": [128, 128], "activation": "elu", "obs_normalization": True}
SETTINGS = {
    "num_steps_per_env": 24,
    "save_interval": 100,
    "obs_groups": {"actor": ["policy"], "critic": ["policy", "draw"]},
    "actor": {**NETWORK, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
    "critic": NETWORK,
    "algorithm": {
        "class_name": "PPO",
        "num_learning_epochs": 5,
        "num_mini_batches": 4,
        "learning_rate": 1e-3,
        "schedule": "adaptive",
        "desired_kl": 0.01,
        "entropy_coef": 0.005,
    },
}


def main(updates: int = 300, num_envs: int = 1024, log_dir: str | None = "runs/go1_rsl_rl") -> OnPolicyRunner:
    """Trains; returns the runner."""
    torch.manual_seed(1)
    runner = OnPolicyRunner(Go1(num_envs), {**SETTINGS}, log_dir)
    runner.learn(updates)
    return runner


if __name__ == "__main__":
    main()
