"""The cross-entropy method for gym_dr (Rubinstein 1999; for policies: Szita and Lorincz 2006).

Each update samples weights of linear policies from a normal distribution, plays one episode with each, and fits the
distribution to the best ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.errors import ConfigError
from gym_dr.options import option
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.training.api import Algorithm, Policy, Session, seed_for

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CEMConfig:
    """The options of ``gymdr train cem``."""

    updates: int = option(100, "generations")
    population: int = option(40, "policies in each generation, with one episode each")
    elite: int = option(8, "best policies, to which the next generation is fitted")
    episode_steps: int = option(1000, "steps after which an episode is cut off")
    initial_std: float = option(1.0, "standard deviation of the weights in the first generation")
    extra_std: float = option(0.5, "standard deviation added in every generation; decreases to 0 over training")

    def __post_init__(self) -> None:
        if min(self.updates, self.episode_steps) < 1:
            raise ConfigError(
                f"updates and episode_steps: expected at least 1, got {self.updates} and {self.episode_steps}."
            )
        if not 1 <= self.elite <= self.population:
            raise ConfigError(f"elite: expected from 1 to population ({self.population}), got {self.elite}.")
        if not (0 < self.initial_std < np.inf and 0 <= self.extra_std < np.inf):
            raise ConfigError(
                "initial_std and extra_std: expected finite numbers, above 0 and not below 0, "
                f"got {self.initial_std} and {self.extra_std}."
            )


def train(session: Session, config: CEMConfig) -> None:
    """Trains from the session's first update to ``config.updates``."""
    envs = session.make_envs(config.episode_steps)
    size = weight_count(envs)
    mean, std = np.zeros(size), np.full(size, config.initial_std)
    if session.restored is not None:
        mean, std = np.array(session.restored["mean"]), np.array(session.restored["std"])
    for update in range(session.first_update, config.updates):
        # a generator for each update, so there is no generator state to save
        rng = np.random.default_rng(seed_for(session.seed, stream=2, index=update))
        population = mean + std * rng.standard_normal((config.population, size))
        scores, steps = play(envs, population, config.episode_steps, session.segment_seed(update))
        elite = population[np.argsort(-scores, kind="stable")[: config.elite]]
        extra = config.extra_std * (1 - (update + 1) / config.updates)
        mean, std = elite.mean(axis=0), np.sqrt(elite.var(axis=0) + extra**2)
        session.log(update, steps=steps, best_score=scores.max(), mean_score=scores.mean(), spread=std.mean())
        # plain lists: checkpoints can hold tensors, numbers and text, but not numpy arrays
        state = {"mean": mean.tolist(), "std": std.tolist()}
        session.save(update, lambda state=state: state)


def load_policy(state: Mapping[str, Any], envs: gym.vector.VectorEnv[Any, Any, Any], config: CEMConfig) -> Policy:
    """The policy with the mean weights."""
    mean = np.array(state["mean"])
    if mean.shape != (weight_count(envs),):
        raise ConfigError(f"Expected {weight_count(envs)} weights for this environment, got {mean.size}.")
    return lambda observations: actions(envs, np.broadcast_to(mean, (len(observations), mean.size)), observations)


def play(
    envs: gym.vector.VectorEnv[Any, Any, Any], population: Array, episode_steps: int, seed: int | None
) -> tuple[Array, int]:
    """Plays one episode with each row of weights, in batches of one episode per sub-environment.

    Returns:
        Return of each row's episode, shape ``(population,)``, and the total number of steps.
    """
    scores, total = np.zeros(len(population)), 0
    for first in range(0, len(population), envs.num_envs):
        rows = np.arange(first, first + envs.num_envs)
        weights = population[rows % len(population)]  # the last batch may repeat some, which do not count
        observations, _ = envs.reset(seed=seed if first == 0 else None)
        playing = rows < len(population)
        for _ in range(episode_steps):
            observations, rewards, terminated, truncated, _ = envs.step(actions(envs, weights, observations))
            scores[rows[playing]] += rewards[playing]
            total += int(playing.sum())
            playing &= ~(terminated | truncated)  # later episodes do not count
            if not playing.any():
                break
    return scores, total


def weight_count(envs: gym.vector.VectorEnv[Any, Any, Any]) -> int:
    """Number of weights of a linear policy with a constant term."""
    observations, space = envs.single_observation_space, envs.single_action_space
    flat = isinstance(observations, gym.spaces.Box) and len(observations.shape) == 1
    bounded = isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.is_bounded()
    if not (flat and (isinstance(space, gym.spaces.Discrete) or bounded)):
        raise ConfigError(
            "Expected flat observations, and actions that are discrete or a flat bounded Box, "
            f"got {observations} and {space}."
        )
    return (observations.shape[0] + 1) * (int(space.n) if isinstance(space, gym.spaces.Discrete) else space.shape[0])


def actions(
    envs: gym.vector.VectorEnv[Any, Any, Any], weights: Array, observations: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Actions of N linear policies, weights ``(N, weight_count)``, for observations ``(N, obs)``."""
    inputs = np.concatenate([observations, np.ones((len(observations), 1))], axis=1)
    outputs = np.einsum("ni,nia->na", inputs, weights.reshape(*inputs.shape, -1))
    space = envs.single_action_space
    if isinstance(space, gym.spaces.Discrete):
        return outputs.argmax(axis=1) + space.start
    middle, reach = (space.high + space.low) / 2, (space.high - space.low) / 2
    return (middle + reach * np.tanh(outputs)).astype(space.dtype)


@hookimpl
def gym_dr_register_algorithms(register: Callable[[Algorithm], None]) -> None:
    """Registers the algorithm with gym_dr."""
    register(
        Algorithm(
            name="cem",
            summary="Cross-entropy method on a linear policy; needs no gradients.",
            config=CEMConfig,
            train=train,
            load_policy=load_policy,
        )
    )
