"""The Go1 with skrl's PPO: ``python examples/go1_skrl.py`` (needs ``pip install skrl``)."""

from typing import Any

import gymnasium as gym
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.preprocessors.torch import RunningStandardScaler
from skrl.resources.schedulers.torch import KLAdaptiveLR
from skrl.trainers.torch import SequentialTrainer

import gym_dr


def network(inputs: int, outputs: int) -> torch.nn.Sequential:
    """The same for both models."""
    hidden = [torch.nn.Linear(inputs, 128), torch.nn.ELU(), torch.nn.Linear(128, 128), torch.nn.ELU()]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(128, outputs))


class Actor(GaussianMixin, Model):
    """Means of the actions, and their spread."""

    def __init__(self, **spaces: Any) -> None:
        """Makes a network."""
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, clip_actions=False)
        self.network = network(self.num_observations, self.num_actions)
        self.log_std = torch.nn.Parameter(torch.full((self.num_actions,), -0.7))

    def compute(self, inputs: Any, role: str) -> Any:
        """Observations -> means."""
        return self.network(inputs["observations"]), {"log_std": self.log_std}


class Critic(DeterministicMixin, Model):
    """The value of an observation."""

    def __init__(self, **spaces: Any) -> None:
        """Makes a network."""
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.network = network(self.num_observations, 1)

    def compute(self, inputs: Any, role: str) -> Any:
        """Observations -> values."""
        return self.network(inputs["observations"]), {}


class Clipped(gym.vector.VectorActionWrapper):
    """A Gaussian's actions may lie outside of the action space."""

    def actions(self, actions: Any) -> Any:
        """The nearest ones that do not."""
        return actions.clip(-1.0, 1.0)


def main(updates: int = 300, num_envs: int = 1024, folder: str = "runs/go1_skrl", steps: int = 24) -> PPO:
    """Trains; returns the agent."""
    torch.manual_seed(1)
    # skrl takes the observation that a step returns for the first one of the next episode, and adds the value of the
    # last one to the reward of a time limit: SameStep and time_limit_bootstrap
    envs = gym.make_vec("gym_dr/Go1JoystickDR-v0", num_envs, autoreset_mode="SameStep")
    env = wrap_env(Clipped(gym_dr.DisturbVector(envs, "default")), verbose=False)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
    cfg = PPO_CFG(
        rollouts=steps,
        learning_epochs=5,
        mini_batches=4,
        learning_rate=1e-3,
        learning_rate_scheduler=KLAdaptiveLR,
        learning_rate_scheduler_kwargs={"kl_threshold": 0.01},
        observation_preprocessor=RunningStandardScaler,
        observation_preprocessor_kwargs={"size": env.observation_space},
        value_preprocessor=RunningStandardScaler,
        value_preprocessor_kwargs={"size": 1},
        grad_norm_clip=1.0,
        entropy_loss_scale=0.005,
        value_loss_scale=1.0,
        time_limit_bootstrap=True,
    )
    cfg.experiment.directory, cfg.experiment.write_interval = folder, 50 * steps
    cfg.experiment.checkpoint_interval = 100 * steps
    memory = RandomMemory(memory_size=steps, num_envs=num_envs, device=env.device)
    agent = PPO(models={"policy": Actor(**spaces), "value": Critic(**spaces)}, memory=memory, cfg=cfg, **spaces)
    SequentialTrainer(
        env=env, agents=agent, cfg={"timesteps": updates * steps, "headless": True, "close_environment_at_exit": False}
    ).train()
    return agent


if __name__ == "__main__":
    main()
