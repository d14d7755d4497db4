"""Your own robot: dm_control's ball in a cup, whose ball hangs on a string, a tendon.

    pip install dm_control
    python examples/own_robot.py runs/cup                             # trains, and evaluates on draws
    PYTHONPATH=examples gymdr play runs/cup --trust own_robot --video cup.gif

or only from the command line: PYTHONPATH=examples gymdr train ppo --env own_robot:mine/BallInCup-v0
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np

import gym_dr
from gym_dr import Scale

found = importlib.util.find_spec("dm_control")  # without importing it, which is slow
if found is None:
    raise ModuleNotFoundError("own_robot.py takes its model file from dm_control: pip install dm_control")
SUITE = Path(found.origin).with_name("suite")
HALF_CUP = np.array([0.025, 0.025])  # m, x and z: largest distance of a caught ball's center from the cup's


def from_cup_to_ball(state):
    """Position of the ball relative to the cup, x and z in meters, shape (n, 2)."""
    cup = state.site_xpos[:, state.model.site("target").id]
    return (state.xpos[:, state.model.body("ball").id] - cup)[:, [0, 2]]


def observe(state):
    return np.concatenate([state.qpos, state.qvel, from_cup_to_ball(state)], axis=1)


def reward(before, after):
    """1 if the ball is in the cup, else at most 0.2 for its height, to reward swinging it above the cup."""
    ball = from_cup_to_ball(after)
    caught = (abs(ball) < HALF_CUP).all(axis=1)
    return np.where(caught, 1.0, 0.2 * np.clip(ball[:, 1] / 0.3, -1.0, 1.0))


def reset(state, rng):
    """Starts with the ball somewhere below the cup; the string is 0.3 m long."""
    qpos = np.zeros_like(state.qpos)
    qpos[:, 2:] = rng.uniform("ball", (-0.1, 0.02), (0.1, 0.1), 2)
    return qpos, rng.uniform("velocities", -0.1, 0.1, state.model.nv)


gym_dr.register_robot(
    "mine/BallInCup-v0",
    model=SUITE / "ball_in_cup.xml",
    observe=observe,
    reward=reward,
    reset=reset,  # only the step limit ends an episode
    fields=["xpos", "site_xpos"],
    frame_skip=10,  # of 0.002 s
    max_episode_steps=250,
    camera="cam0",
    presets={
        "default": {
            "body_mass:ball": Scale((0.5, 2.0)),
            "gravity.z": (-12.0, -8.0),
            "actuator_gear": Scale((0.8, 1.2)),
            "dof_damping": Scale((0.5, 1.5)),
        }
    },
)

if __name__ == "__main__":
    options = {
        "num_envs": 64,
        "rollout_steps": 128,
        "updates": int((sys.argv[2:] or ["250"])[0]),
        "checkpoint_every": 25,
    }
    run = gym_dr.train("ppo", env="own_robot:mine/BallInCup-v0", run_dir=sys.argv[1], **options)
    print(gym_dr.evaluate(run, episodes=100).episodes.groupby("set")["return"].mean())
