"""TorchRL's PPO on native environments: ``python examples/torchrl_ppo.py`` (needs ``pip install torchrl``)."""

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import Compose, GymWrapper, InitTracker, RewardSum, TransformedEnv
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import gym_dr  # noqa: F401  # registers the ids


def main(total_steps: int = 2_000_000, num_envs: int = 64, batch: int = 4096) -> list[float]:
    """Trains; returns the mean return of the episodes that ended in each rollout."""
    envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs, autoreset_mode="Disabled")
    env = TransformedEnv(GymWrapper(envs, categorical_action_encoding=True), Compose(InitTracker(), RewardSum()))
    logits = TensorDictModule(MLP(in_features=8, out_features=4, num_cells=[64, 64]), ["observation"], ["logits"])
    actor = ProbabilisticActor(logits, ["logits"], distribution_class=Categorical, return_log_prob=True)
    critic = ValueOperator(MLP(in_features=8, out_features=1, num_cells=[64, 64]))
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    optimizer, returns = torch.optim.Adam(loss.parameters(), lr=1e-3), []
    for rollout in Collector(env, actor, frames_per_batch=batch, total_frames=total_steps):
        with torch.no_grad():
            advantage(rollout)
        ended = rollout["next", "episode_reward"][rollout["next", "done"]]
        returns += [ended.mean().item()] if len(ended) else []
        for minibatch in (i for _ in range(4) for i in torch.randperm(batch).split(1024)):
            losses = loss(rollout.reshape(-1)[minibatch])
            optimizer.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
            optimizer.step()
    return returns


if __name__ == "__main__":
    print(main()[-1])
