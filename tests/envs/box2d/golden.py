"""Records episodes on Box2D, which native environments must repeat on machines without it.

Run it where Box2D 2.3.10 is installed: python -m tests.envs.box2d.golden
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import gym_dr  # noqa: F401  registers the ids

FOLDER = Path(__file__).parent / "golden"
IDS = (
    "gym_dr/LunarLanderDR-v3",
    "gym_dr/LunarLanderContinuousDR-v3",
    "gym_dr/BipedalWalkerDR-v3",
    "gym_dr/BipedalWalkerHardcoreDR-v3",
)
SEEDS = (11, 12, 13)  # the second one draws from the preset "wide", the third from "extreme"
PRESETS = ("none", "wide", "extreme")
STEPS = 250


def file_of(env_id: str) -> Path:
    """Where the episodes of an id are."""
    return FOLDER / f"{env_id.partition('/')[2]}.npz"


def policy_of(env_id: str, env: Any, seed: int) -> Any:
    """An action for an observation, from Gymnasium's heuristics."""
    if "Lander" in env_id:
        from gymnasium.envs.box2d.lunar_lander import heuristic

        return lambda observation: np.asarray(heuristic(env.unwrapped, observation))
    from tests.envs.box2d.bipedal_walker.play import heuristic_policy

    policy = heuristic_policy(seed)
    return lambda observation: policy(np.random.default_rng(0), observation)


def record(env_id: str) -> dict[str, Any]:
    """Three episodes: parameters in the order of the space, actions, observations from the reset on, rewards, end."""
    found: dict[str, Any] = {}
    for i, (seed, preset) in enumerate(zip(SEEDS, PRESETS, strict=True)):
        env = gym.make(env_id, randomization=preset)
        policy = policy_of(env_id, env, seed)
        observation, _ = env.reset(seed=seed)
        observations, actions, rewards, terminated = [observation], [], [], False
        while len(actions) < STEPS and not terminated:
            action = policy(observation)
            action = action.astype(np.float32) if action.ndim else action
            observation, reward, terminated, _, _ = env.step(action if action.ndim else int(action))
            observations.append(observation)
            actions.append(action)
            rewards.append(reward)
        values = env.unwrapped.params  # type: ignore[attr-defined]  # RandomizedEnv's
        space = env.unwrapped.param_space  # type: ignore[attr-defined]
        found |= {
            f"params_{i}": np.array([values[name] for name in space]),
            f"actions_{i}": np.array(actions),
            f"observations_{i}": np.array(observations),
            f"rewards_{i}": np.array(rewards),
            f"terminated_{i}": np.array(terminated),
        }
    return found


def main() -> None:
    """Writes one file for each id."""
    FOLDER.mkdir(exist_ok=True)
    for env_id in IDS:
        np.savez_compressed(file_of(env_id), **record(env_id))


if __name__ == "__main__":
    main()
