"""RLlib's PPO on native environments: ``python examples/rllib_ppo.py`` (needs ``pip install "ray[rllib]"``)."""

from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.ppo import PPOConfig


def log_draw(*, episode: Any, metrics_logger: Any, **_: Any) -> None:
    """Adds the gravity of each finished episode to RLlib's metrics."""
    metrics_logger.log_value("gravity", episode.get_infos(-1)["params"]["gravity"])


def main(iterations: int = 100, num_env_runners: int = 2, batch: int = 8192) -> list[dict[str, Any]]:
    """Trains; returns the metrics of each iteration."""
    config = (
        PPOConfig()
        .environment("gym_dr:gym_dr/LunarLanderDR-v3", env_config={"randomization": {"gravity": (-11.5, -5.0)}})
        .env_runners(
            num_env_runners=num_env_runners,
            num_envs_per_env_runner=32,
            gym_env_vectorize_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT,
        )
        .callbacks(on_episode_end=log_draw)
        .training(train_batch_size_per_learner=batch, minibatch_size=1024, num_epochs=4, lr=3e-4)
    )
    algorithm, results = config.build_algo(), []
    for _ in range(iterations):
        results.append(algorithm.train()["env_runners"])
        print(
            {key: results[-1].get(key) for key in ("num_env_steps_sampled_lifetime", "episode_return_mean", "gravity")}
        )
    algorithm.stop()
    return results


if __name__ == "__main__":
    main()
