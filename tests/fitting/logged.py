"""Logs of simulated systems, whose parameters and errors are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

CART = "gym_dr/CartPoleDR-v1"


def logged(
    env: str = CART,
    params: Any = None,
    *,
    episodes: int = 20,
    steps: int = 40,
    noise: float = 0.01,
    late: int = 0,
    hold: int | Sequence[int] = 1,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Episodes with random actions.

    Args:
        env: Id of the environment.
        params: Name -> value, or ``(episodes,)`` of them; the others are nominal.
        episodes: How many, less those that end at once.
        steps: Of each, at most.
        noise: Deviation of the errors of measurement.
        late: Logged steps after which an action acts.
        hold: Steps of the environment that an action acts; or of each action, ``(steps,)``.
        seed: Of states, actions and errors.
    """
    envs = gym.make_vec(env, num_envs=episodes, randomization="none", autoreset_mode="NextStep")
    envs.action_space.seed(seed)
    rng = np.random.default_rng(seed)
    observations, _ = envs.reset(seed=seed, options={"params": dict(params or {})})
    rows, actions = [observations], []
    over, alive = np.zeros(episodes, np.int64), np.ones(episodes, np.bool_)
    sent = [envs.action_space.sample() for _ in range(steps + late)]
    for t in range(steps):
        for left in reversed(range(hold if isinstance(hold, int) else hold[t])):
            over += alive & (left == 0)  # what ends within a logged step is no observation of it
            observations, _, terminated, truncated, _ = envs.step(sent[t])  # chosen ``late`` steps ago
            alive &= ~(terminated | truncated)
        rows.append(observations)
        actions.append(sent[t + late])
    envs.close()
    seen, done = np.stack(rows, axis=1).astype(np.float64), np.stack(actions, axis=1)
    seen += noise * rng.standard_normal(seen.shape)
    return [{"observations": seen[e, : n + 1], "actions": done[e, :n]} for e, n in enumerate(over) if n > late + 4]
