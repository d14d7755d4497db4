"""PPO in one file, in the style of CleanRL, on native environments: ``python examples/cleanrl_ppo.py``."""

import gymnasium as gym
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical


def main(total_steps: int = 2_000_000, num_envs: int = 64, steps: int = 128) -> list[float]:
    """Trains; returns the returns of the last 100 episodes."""
    envs = RecordEpisodeStatistics(gym.make_vec("gym_dr:gym_dr/LunarLanderDR-v3", num_envs, autoreset_mode="SameStep"))
    actor, critic = (nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, outputs)) for outputs in (4, 1))
    optimizer = torch.optim.Adam(nn.ModuleList([actor, critic]).parameters(), lr=2e-3)
    obs, (actions, logprobs, rewards, dones, values) = torch.zeros(steps, num_envs, 8), torch.zeros(5, steps, num_envs)
    next_obs = torch.as_tensor(envs.reset(seed=1)[0])
    for _ in range(total_steps // (steps * num_envs)):
        for t in range(steps):
            policy = Categorical(logits=actor(next_obs).detach())
            obs[t], actions[t], values[t] = next_obs, policy.sample(), critic(next_obs)[:, 0].detach()
            logprobs[t] = policy.log_prob(actions[t])
            next_obs, reward, terminated, truncated, _ = envs.step(actions[t].numpy().astype(int))
            next_obs, rewards[t], dones[t] = map(torch.as_tensor, (next_obs, reward, terminated | truncated))
        next_values = torch.cat([values[1:], critic(next_obs).detach().T])
        advantages, gae = rewards + 0.99 * next_values * (1 - dones) - values, 0.0
        for t in reversed(range(steps)):
            advantages[t] = gae = advantages[t] + 0.99 * 0.95 * (1 - dones[t]) * gae
        batch = [part.flatten(0, 1) for part in (obs, actions, logprobs, advantages, advantages + values)]
        for i in (i for _ in range(4) for i in torch.randperm(steps * num_envs).split(1024)):
            b_obs, b_actions, b_logprobs, adv, b_returns = (part[i] for part in batch)
            ratio = (Categorical(logits=actor(b_obs)).log_prob(b_actions) - b_logprobs).exp()
            gain = torch.min(adv * ratio, adv * ratio.clamp(0.8, 1.2)) / adv.std()
            optimizer.zero_grad()
            (0.5 * (critic(b_obs)[:, 0] - b_returns).square() - gain).mean().backward()
            optimizer.step()
    return list(envs.return_queue)


if __name__ == "__main__":
    print(sum(main()) / 100)
