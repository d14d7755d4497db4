"""The smallest task that needs a memory: it shows a cue once, and asks for it 50 steps later.

    PYTHONPATH=examples gymdr train ppo --env cue:mine/Cue-v0 --memory gru --sequence-length 64

The reward is 1 for the right answer and 0 for the wrong one, so a policy without memory gets one half on average.
"""

from typing import NamedTuple

from gymnasium.spaces import Box, Discrete

import gym_dr
from gym_dr import Bernoulli, Param

WAIT = 50  # steps


class Constants(NamedTuple):  # of an episode
    cue: float


class State(NamedTuple):
    t: float  # steps so far


def derive(p):
    return Constants(p.cue)


def begin(c, u):
    return State(0.0)


def step(c, s, action):
    asked = s.t >= WAIT
    right = (action == 1) == (c.cue > 0.5)
    return State(s.t + 1.0), 1.0 if asked and right else 0.0, asked


def observe(c, s):
    shown = 2.0 * c.cue - 1.0 if s.t < 0.5 else 0.0
    return shown, 1.0 if s.t >= WAIT else 0.0


gym_dr.register_equations(
    "mine/Cue-v0",
    params=[Param(name="cue", nominal=0.0, low=0.0, high=1.0, kind="bool", doc="what is shown, and asked for later")],
    observation_space=Box(-1.0, 1.0, (2,)),
    action_space=Discrete(2),
    start={},
    derive=derive,
    begin=begin,
    step=step,
    observe=observe,
    presets={"default": {"cue": Bernoulli(0.5)}},
    max_episode_steps=WAIT + 1,
    defaults={"ppo": {"num_envs": 32, "minibatches": 8, "epochs": 4, "lr": 0.003, "entropy_coef": 0.01}},
)
