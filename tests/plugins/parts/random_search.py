"""An algorithm in one file: random search, for the weights of a linear policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr.errors import ConfigError
from gym_dr.options import option
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.training.api import Algorithm, Policy, Session, seed_for


@dataclass(frozen=True, kw_only=True)
class RandomSearchConfig:
    """The options of ``gymdr train random-search``."""

    updates: int = option(50, "rounds, in each of which every sub-environment tries a policy")
    std: float = option(1.0, "standard deviation of the first changes to weights; falls to 0 over the training")
    rollout_steps: int = option(50, "vector steps of a round")

    def __post_init__(self) -> None:
        if min(self.updates, self.rollout_steps) < 1 or not 0 < self.std < np.inf:
            raise ConfigError(f"Expected updates and rollout_steps from 1 and a finite std above 0, got {self}.")


def train(session: Session, config: RandomSearchConfig) -> None:
    """Each sub-environment tries weights of its own near the best ones, which are those of the highest return."""
    envs = session.make_envs(config.rollout_steps)
    best = np.zeros(shape(envs))
    if session.restored is not None:
        best = np.array(session.restored["best"])
    observations: Any = None
    for update in range(session.first_update, config.updates):
        rng = np.random.default_rng(seed_for(session.seed, stream=2, index=update))
        std = config.std * (1 - (update + 1) / config.updates)
        scores = np.zeros(envs.num_envs)
        seed = session.segment_seed(update)
        if seed is not None:
            observations, _ = envs.reset(seed=seed)
        weights = best + std * rng.standard_normal((envs.num_envs, *best.shape))
        for _ in range(config.rollout_steps):
            observations, rewards, _, _, _ = envs.step(actions(envs, weights, observations))
            scores += rewards
        best = weights[scores.argmax()]
        session.log(update, steps=config.rollout_steps * envs.num_envs, best_score=scores.max())
        state = {"best": best.tolist()}
        session.save(update, lambda state=state: state)


def load_policy(
    state: Mapping[str, Any], envs: gym.vector.VectorEnv[Any, Any, Any], config: RandomSearchConfig
) -> Policy:
    """The policy with the best weights."""
    best = np.array(state["best"])
    return lambda observations: actions(envs, best, observations)


def shape(envs: gym.vector.VectorEnv[Any, Any, Any]) -> tuple[int, int]:
    """Of the weights, with a row for a constant."""
    inputs, space = envs.single_observation_space, envs.single_action_space
    if isinstance(inputs, gym.spaces.Box) and len(inputs.shape) == 1:
        if isinstance(space, gym.spaces.Discrete):
            return inputs.shape[0] + 1, int(space.n)
        if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.is_bounded():
            return inputs.shape[0] + 1, space.shape[0]
    raise ConfigError(f"Expected flat observations and choices or bounded numbers, got {inputs} and {space}.")


def actions(envs: gym.vector.VectorEnv[Any, Any, Any], weights: Any, observations: Any) -> Any:
    """Actions ``(N,)`` or ``(N, size)`` of linear policies, weights ``(N, ...)`` or the same for all, for N rows."""
    inputs = np.append(observations, np.ones((len(observations), 1)), axis=1)
    outputs, space = (inputs[:, None] @ weights)[:, 0], envs.single_action_space
    if isinstance(space, gym.spaces.Discrete):
        return outputs.argmax(axis=1) + space.start
    assert isinstance(space, gym.spaces.Box)
    return (space.low + (space.high - space.low) * (np.tanh(outputs) + 1) / 2).astype(space.dtype)


@hookimpl
def gym_dr_register_algorithms(register: Callable[[Algorithm], None]) -> None:
    """Registers ``random-search``."""
    register(
        Algorithm(
            name="random-search",
            summary="Random search for a linear policy.",
            config=RandomSearchConfig,
            train=train,
            load_policy=load_policy,
        )
    )
