"""The Go1 in one file, in the style of CleanRL, on native environments: ``python examples/go1_cleanrl.py``.

The policy is averaged with its mirror image, so that it cannot limp and learns both sides at once.
"""

import time
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

import gym_dr

GAMMA, LAMBDA, CLIP, EPOCHS, MINIBATCHES = 0.99, 0.95, 0.2, 5, 4


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(nn.Linear(inputs, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU(), nn.Linear(128, outputs))


class Agent(nn.Module):
    """Actor and critic, of observations that are normalized by their running moments."""

    def __init__(self, mirror: Any, inputs: int, outputs: int) -> None:
        """Makes the networks; ``mirror`` says which numbers change places and signs."""
        super().__init__()
        self.actor, self.critic = mlp(inputs, outputs), mlp(inputs, 1)
        self.log_std = nn.Parameter(torch.full((outputs,), -0.7))
        self.places, self.signs, self.action_places, self.action_signs = map(torch.as_tensor, mirror)
        self.count, self.mean, self.var = 1e-4, torch.zeros(inputs), torch.ones(inputs)

    def learn_moments(self, obs: torch.Tensor) -> None:
        """Takes a batch into account."""
        share, off = len(obs) / (self.count + len(obs)), obs.mean(0) - self.mean
        self.var = (1 - share) * self.var + share * obs.var(0) + share * (1 - share) * off.square()
        self.count, self.mean = self.count + len(obs), self.mean + share * off

    def policy(self, obs: torch.Tensor) -> Normal:
        """Half of the network's answer, half of the mirror image of its answer to the mirror image."""
        flipped = self.actor(self.normal(obs[:, self.places] * self.signs))[:, self.action_places] * self.action_signs
        return Normal((self.actor(self.normal(obs)) + flipped) / 2, self.log_std.exp())

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """Expected returns."""
        return self.critic(self.normal(obs))[:, 0]

    def normal(self, obs: torch.Tensor) -> torch.Tensor:
        """Shifted and scaled."""
        return ((obs - self.mean) / (self.var.sqrt() + 1e-5)).clamp(-10, 10)


def main(updates: int = 300, num_envs: int = 1024, steps: int = 24) -> list[float]:
    """Trains; returns the mean reward of each update."""
    torch.manual_seed(1)
    envs = gym.make_vec("gym_dr/Go1JoystickDR-v0", num_envs, autoreset_mode="SameStep")
    mirror, inputs, outputs = envs.mirror, envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    envs = gym_dr.DisturbVector(envs, "default")  # pushes and noise, as the preset says
    agent = Agent(mirror, inputs, outputs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, fused=True)
    obs, actions = torch.zeros(steps, num_envs, inputs), torch.zeros(steps, num_envs, outputs)
    logprobs, rewards, dones, values = torch.zeros(4, steps, num_envs)
    next_obs, means, begun = torch.as_tensor(envs.reset(seed=1)[0]).float(), [], time.time()
    for update in range(updates):
        with torch.no_grad():
            for t in range(steps):
                obs[t], policy, values[t] = next_obs, agent.policy(next_obs), agent.value(next_obs)
                actions[t] = policy.sample()
                logprobs[t] = policy.log_prob(actions[t]).sum(1)
                next_obs, reward, terminated, truncated, _ = envs.step(actions[t].clamp(-1, 1).numpy())
                next_obs, rewards[t], dones[t] = map(torch.as_tensor, (next_obs, reward, terminated | truncated))
                next_obs = next_obs.float()
                means.append(reward.mean())
                rewards[t] += GAMMA * values[t] * torch.as_tensor(truncated & ~terminated)  # a time limit is no end
            next_values = torch.cat([values[1:], agent.value(next_obs)[None]])
            advantages, gae = rewards + GAMMA * next_values * (1 - dones) - values, 0.0
            for t in reversed(range(steps)):
                advantages[t] = gae = advantages[t] + GAMMA * LAMBDA * (1 - dones[t]) * gae
        batch = [part.flatten(0, 1) for part in (obs, actions, logprobs, advantages, advantages + values)]
        for i in (i for _ in range(EPOCHS) for i in torch.randperm(steps * num_envs).chunk(MINIBATCHES)):
            b_obs, b_actions, b_logprobs, adv, b_returns = (part[i] for part in batch)
            policy, adv = agent.policy(b_obs), (adv - adv.mean()) / adv.std()
            ratio = (policy.log_prob(b_actions).sum(1) - b_logprobs).exp()
            gain = torch.min(adv * ratio, adv * ratio.clamp(1 - CLIP, 1 + CLIP)) + 0.005 * policy.entropy().sum(1)
            optimizer.zero_grad()
            (0.5 * (agent.value(b_obs) - b_returns).square() - gain).mean().backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            optimizer.step()
        agent.learn_moments(batch[0])  # last: the batch was collected with the old ones
        if (update + 1) % 10 == 0:
            speed, recent = (update + 1) * steps * num_envs / (time.time() - begun), np.mean(means[-10 * steps :])
            print(f"{update + 1:4d}/{updates}  reward of a step {recent:.2f}  {speed:,.0f} steps/s", flush=True)
    return [float(np.mean(part)) for part in np.split(np.array(means), updates)]


if __name__ == "__main__":
    main()
