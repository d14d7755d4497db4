"""A run's trained policy on nominal and on training draws."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from gym_dr.errors import ConfigError
from gym_dr.evaluation.protocol import EVALUATION_SEED, evaluate
from gym_dr.evaluation.statistics import summarise
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import make_vector_env
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm, Policy

NUM_ENVS = 10  # sub-environments of an evaluation


def load_run_policy(folder: RunFolder, config: RunConfig, algorithm: Algorithm) -> Policy:
    """The policy in a run's newest checkpoint.

    Raises:
        ConfigError: The algorithm cannot make a policy of its saved state.
        CheckpointError: There is no usable checkpoint.
    """
    loader = algorithm.policy_loader()
    if loader is None:
        raise ConfigError(f"Algorithm {algorithm.name!r} has no load_policy: its runs cannot be evaluated or played.")
    checkpoint = load_newest(folder)
    envs = make_vector_env(config.settings.env, 1, "sync", config.randomization)
    try:
        return loader(checkpoint["state"], envs, config.options)
    finally:
        envs.close()


def evaluate_run(folder: RunFolder, config: RunConfig, algorithm: Algorithm, episodes: int) -> dict[str, Any]:
    """Evaluates a run's policy and writes ``evaluation.json``.

    Args:
        folder: Of the run.
        config: Of the run.
        algorithm: That trained it.
        episodes: On each distribution.

    Returns:
        What the file says: statistics on the nominal environment and, if it was randomized, on the training draws.

    Raises:
        ConfigError: The algorithm cannot make a policy, or the number of episodes is below 1.
        CheckpointError: There is no usable checkpoint.
    """
    policy = load_run_policy(folder, config, algorithm)
    settings = config.settings
    distributions = {"nominal": None if config.randomization is None else Randomization()}
    if config.randomization:
        distributions["training"] = config.randomization
    threshold = gym.spec(settings.env.rpartition(":")[2]).reward_threshold
    result: dict[str, Any] = {"env": settings.env, "seed": EVALUATION_SEED}
    for name, randomization in distributions.items():
        envs = make_vector_env(settings.env, min(NUM_ENVS, max(1, episodes)), settings.vectorization, randomization)
        try:
            result[name] = summarise(evaluate(policy, envs, episodes), threshold)
        finally:
            envs.close()
    folder.write_json(folder.evaluation, result)
    return result
