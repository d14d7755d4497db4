"""An environment of one's own, of docs/tutorials/own_environment.md, as a file that commands can name.

gymdr train ppo --env examples/slide.py:mine/Slide-v0
"""

import gymnasium as gym
import numpy as np

import gym_dr
from gym_dr import Param, ParamSpace, RandomizeAttributes


class Slide(gym.Env):
    """A block on a slope: push it up to 1."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (2,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self):
        self.mass, self.slope = 1.0, 0.1  # kg, rad
        self.inverse = 1.0 / self.mass

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([0.0, 0.0], np.float32)
        return self.state.copy(), {}

    def step(self, action):
        force = 10.0 * float(action[0])
        self.state[1] += 0.02 * (force * self.inverse - 9.81 * np.sin(self.slope))
        self.state = np.clip(np.add(self.state, [0.02 * self.state[1], 0.0]), -10.0, 10.0).astype(np.float32)
        return self.state.copy(), -abs(1.0 - float(self.state[0])), False, False, {}


space = ParamSpace(
    "Slide",
    [
        Param(name="mass", nominal=1.0, low=0.1, high=10.0, unit="kg", doc="of the block"),
        Param(name="slope", nominal=0.1, low=0.0, high=1.5, unit="rad", doc="angle of the slope"),
    ],
)


def derive(env):
    env.inverse = 1.0 / env.mass


def make_slide():
    return RandomizeAttributes(Slide(), {"mass": (0.5, 2.0), "slope": (0.0, 0.3)}, space=space, derive=derive)


gym_dr.register("mine/Slide-v0", make_slide, max_episode_steps=100, reward_threshold=-25.0)
