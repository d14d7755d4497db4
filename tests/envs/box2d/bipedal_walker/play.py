"""Policies of BipedalWalker for tests, and episodes as comparable values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

Policy = Callable[[np.random.Generator, npt.NDArray[np.float32]], npt.NDArray[np.float32]]


def random_policy(seed: int) -> Policy:
    return lambda rng, _: rng.uniform(-1.3, 1.3, 4).astype(np.float32)  # beyond the bounds too


def zero_policy(seed: int) -> Policy:
    return lambda _rng, _: np.zeros(4, np.float32)


def stubborn_policy(seed: int) -> Policy:
    """The same action for a long time: splits, jumps and hard falls."""
    action = np.zeros(4, np.float32)

    def act(rng: np.random.Generator, _observation: Any) -> npt.NDArray[np.float32]:
        if rng.random() < 0.05:
            action[:] = np.sign(rng.uniform(-1.0, 1.0, 4))
        return action.copy()

    return act


def heuristic_policy(seed: int) -> Policy:
    """Gymnasium's heuristic, which walks some way."""
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

    heuristic = BipedalWalkerHeuristics()  # type: ignore[no-untyped-call]  # Gymnasium's
    return lambda _rng, observation: np.asarray(heuristic.step_heuristic(observation), np.float32)


POLICIES = (random_policy, zero_policy, stubborn_policy, heuristic_policy)


def play(env: gym.Env[Any, Any], seed: int, make_policy: Any, steps: int = 2000) -> list[tuple[Any, ...]]:
    """Plays one episode; returns every observation, reward and flag as comparable values."""
    policy, rng = make_policy(seed), np.random.default_rng([seed, 1])
    observation, _ = env.reset(seed=seed)
    rows: list[tuple[Any, ...]] = [(observation.tobytes(), 0.0, False, False)]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(policy(rng, observation))
        rows.append((observation.tobytes(), float(reward), terminated, truncated))
        if terminated or truncated:
            break
    return rows
