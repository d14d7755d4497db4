"""What the tests of the MuJoCo environments share."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from gym_dr.testing import playing

NAMES = (
    "InvertedPendulum",
    "InvertedDoublePendulum",
    "Hopper",
    "HalfCheetah",
    "Walker2d",
    "Ant",
    "Swimmer",
    "Humanoid",
    "HumanoidStandup",
    "Reacher",
    "Pusher",
)


def native(name: str, num_envs: int = 3, **kwargs: Any) -> Any:
    return gym.make_vec(f"gym_dr/{name}DR-v5", num_envs, **kwargs)


def sync(name: str, num_envs: int = 3, **kwargs: Any) -> Any:
    return gym.make_vec(f"gym_dr/{name}DR-v5", num_envs, vectorization_mode="sync", **kwargs)


def single(name: str, **kwargs: Any) -> Any:
    return gym.make(f"gym_dr/{name}DR-v5", **kwargs)


def assert_same(left: Any, right: Any, path: str = "") -> None:
    """Results of vector environments agree: keys, types, shapes, and values to 1e-9."""
    playing.assert_same(left, right, 1e-9, path)


def without_draws(info: dict[str, Any]) -> dict[str, Any]:
    """What is left of ``info`` of a nominal environment: what Gymnasium's own tells."""
    ours = ("params", "_params", "draw_index", "_draw_index")
    kept = {key: value for key, value in info.items() if key not in ours}
    if "final_info" in kept:
        kept["final_info"] = without_draws(kept["final_info"])
    return kept


def assert_same_episodes(left: Any, right: Any, steps: int, seed: int = 5, *, draws: bool = True) -> int:
    """Plays both with the same random actions; returns how many episodes ended."""

    def told(info: dict[str, Any]) -> dict[str, Any]:
        return info if draws else without_draws(info)

    one, other = left.reset(seed=seed), right.reset(seed=seed)
    assert_same(one[0], other[0])
    assert_same(told(one[1]), told(other[1]))
    left.action_space.seed(seed)
    ends = 0
    for t in range(steps):
        actions = left.action_space.sample()
        one, other = left.step(actions), right.step(actions)
        for k, what in enumerate(("observation", "reward", "terminated", "truncated")):
            assert_same(one[k], other[k], f"step {t}: {what}")
        assert_same(told(one[4]), told(other[4]), f"step {t}")
        ends += int((one[2] | one[3]).sum())
    return ends
