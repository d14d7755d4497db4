"""Speed of an environment from equations against the same physics as a plain ``gym.Env`` in ``SyncVectorEnv``.

The environment is examples/own_equations.py, with its gusts. Both sides have nominal physics and the same first
episodes, which is checked; sides alternate, on one thread, with random actions, and count steps of sub-environments per
second, including resets.
Run it with: PYTHONPATH=examples python -m benchmarks.own_equations [rounds]
"""

from __future__ import annotations

import sys
from math import cos, exp, pi, sin, sqrt
from typing import Any

import gymnasium as gym
import numpy as np
import own_equations
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from benchmarks.timing import alternate, report, seconds

MANY, FEW = 1024, 10
STEPS = 500  # of an episode
TARGET = f"target: {MANY} native environments take at least 100 times the steps of SyncVectorEnv with {FEW}"


class PlainQuadrotor(gym.Env[Any, Any]):
    """The quadrotor as one writes it without gym_dr, from attributes that could be randomized."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (9,))
    action_space = gym.spaces.Box(-1.0, 1.0, (2,))

    def __init__(self) -> None:
        self.mass, self.arm, self.drag, self.wind, self.gust, self.lag, self.pace = 1.0, 0.25, 0.3, 0.0, 1.0, 0.05, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        x, y, self.tilt, self.phase = (self.np_random.uniform(-bound, bound) for bound in (1.0, 1.0, 0.5, pi))
        self.x, self.y = cos(self.phase) + x, sin(self.phase) + y
        self.vx = self.vy = self.spin = 0.0
        self.left = self.right = 0.5 * self.mass * 9.81
        self.lever = self.arm / (self.mass * self.arm * self.arm)
        self.gain = 1.0 - exp(-0.02 / self.lag)
        return self.observe(), {}

    def observe(self) -> Any:
        values = (
            *(cos(self.phase) - self.x, sin(self.phase) - self.y, self.vx, self.vy),
            *(cos(self.tilt), sin(self.tilt), self.spin),
            *(-self.pace * sin(self.phase), self.pace * cos(self.phase)),
        )
        return np.array(values, np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        to_left, to_right = np.clip(action, -1.0, 1.0).tolist()
        gust_x, gust_y = self.np_random.normal(), self.np_random.normal()
        self.left += self.gain * (5.0 * (1.0 + to_left) - self.left)
        self.right += self.gain * (5.0 * (1.0 + to_right) - self.right)
        push, air = (self.left + self.right) / self.mass, self.drag / self.mass
        self.vx += 0.02 * (-push * sin(self.tilt) + air * (self.wind + self.gust * gust_x - self.vx))
        self.vy += 0.02 * (push * cos(self.tilt) - 9.81 + air * (self.gust * gust_y - self.vy))
        self.spin += 0.02 * self.lever * (self.right - self.left)
        self.phase += self.pace * 0.02
        self.x, self.y = self.x + 0.02 * self.vx, self.y + 0.02 * self.vy
        self.tilt += 0.02 * self.spin
        to_x, to_y = cos(self.phase) - self.x, sin(self.phase) - self.y
        away = sqrt(to_x * to_x + to_y * to_y)
        reward = 1.0 / (1.0 + 5.0 * away + 0.02 * self.spin * self.spin)
        return self.observe(), reward, away > 3.0, False, {}


def plain(num_envs: int) -> Any:
    """As Gymnasium steps it."""
    return SyncVectorEnv([lambda: TimeLimit(PlainQuadrotor(), STEPS)] * num_envs)


def ours(num_envs: int, randomization: str = "none") -> Any:
    """As gym_dr does."""
    return gym.make_vec(own_equations.ID, num_envs, randomization=randomization)


class Stepping:
    """A vector environment with actions made in advance, so that only the environment is timed."""

    def __init__(self, envs: Any, steps: int) -> None:
        rng = np.random.default_rng(0)
        self.envs, self.steps = envs, steps
        self.actions = list(rng.uniform(-1.0, 1.0, (16, envs.num_envs, 2)).astype(np.float32))
        envs.reset(seed=0)

    def speed(self) -> float:
        """Steps of sub-environments per second; episodes go on between calls."""

        def play() -> None:
            for t in range(self.steps):
                self.envs.step(self.actions[t % 16])

        return float(self.envs.num_envs * self.steps / seconds(play))


def largest_difference(steps: int = 300) -> float:
    """Of observations and rewards of both sides, over episodes with the same seeds and actions."""
    left, right, rng = plain(4), ours(4), np.random.default_rng(1)
    found = [abs(left.reset(seed=5)[0] - right.reset(seed=5)[0]).max()]
    for _ in range(steps):
        actions = rng.uniform(-1.0, 1.0, (4, 2)).astype(np.float32)
        one, other = left.step(actions), right.step(actions)
        found += [abs(one[0] - other[0]).max(), abs(one[1] - other[1]).max()]
        if (one[2] != other[2]).any():
            return float("inf")
    return float(max(found))


def main() -> None:
    """Prints a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"{TARGET}\nlargest difference of observations and rewards over 300 steps: {largest_difference():.2g}")
    sides = {
        f"SyncVectorEnv, {FEW}": Stepping(plain(FEW), 200),
        f"SyncVectorEnv, {MANY}": Stepping(plain(MANY), 2),
        f"native, {FEW}": Stepping(ours(FEW), 2000),
        f"native, {MANY}": Stepping(ours(MANY), 200),
        f"native, {MANY}, default draws": Stepping(ours(MANY, "default"), 200),
    }
    measured = alternate({name: side.speed for name, side in sides.items()}, rounds)
    report("quadrotor", measured, f"SyncVectorEnv, {FEW}", "steps/s")


if __name__ == "__main__":
    main()
