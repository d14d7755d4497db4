"""Tianshou's PPO on single environments: ``python examples/tianshou_ppo.py`` (needs ``pip install tianshou``)."""

import gymnasium as gym
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, InfoStats, VectorReplayBuffer
from tianshou.env import SubprocVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic, dist_fn_categorical_from_logits


def main(epochs: int = 50, epoch_steps: int = 20_000, num_envs: int = 16) -> InfoStats:
    """Trains; returns Tianshou's summary."""
    envs = SubprocVectorEnv([lambda: gym.make("gym_dr:gym_dr/LunarLanderDR-v3")] * num_envs)
    states, actions = envs.observation_space[0], envs.action_space[0]
    trunks = [Net(state_shape=states.shape, hidden_sizes=[64, 64]) for _ in range(2)]
    actor = DiscreteActor(preprocess_net=trunks[0], action_shape=actions.n, softmax_output=False)
    policy = ProbabilisticActorPolicy(
        actor=actor, dist_fn=dist_fn_categorical_from_logits, action_space=actions, action_scaling=False
    )
    critic = DiscreteCritic(preprocess_net=trunks[1])
    algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4))
    collector = Collector[CollectStats](algorithm, envs, VectorReplayBuffer(8192, num_envs))
    settings = OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=epochs,
        epoch_num_steps=epoch_steps,
        collection_step_num_env_steps=2048,
        update_step_num_repetitions=4,
        batch_size=256,
    )
    return algorithm.run_training(settings)


if __name__ == "__main__":
    print(main())
