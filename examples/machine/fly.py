"""The machine: flies a policy ten times and logs observations, actions and rewards.

    python examples/machine/fly.py policy.onnx --output FOLDER

The policy is a file from ``gymdr export``. This machine is a simulator, too, but neither the policy nor the log knows
its physics, which are in physics.toml. A machine of your own takes the place of ``build`` and ``fly``.
"""

import argparse
import tomllib
from pathlib import Path

import gymnasium as gym
import numpy as np
import onnxruntime

from gym_dr import Disturb

FLIGHTS = 10
TIME_STEP = 0.02  # s


def build():
    hidden = tomllib.loads((Path(__file__).parent / "physics.toml").read_text(encoding="utf-8"))
    interface = {name: hidden.pop(name) for name in ("action_delay", "obs_noise")}
    return Disturb(gym.make("gym_dr/LunarLanderDR-v3", randomization=hidden), interface)


def load(path):
    """Loads a policy as a function of an observation and of whether an episode starts."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    sizes = {one.name: one.shape[1:] for one in session.get_inputs()}  # a policy that remembers has more than one
    state = np.zeros((1, *sizes.get("state", (0,))), np.float32)

    def act(observation, start):
        nonlocal state
        inputs = {"observation": np.float32([observation]), "state": state, "episode_start": np.array([start])}
        action, *rest = session.run(["action", "next_state"][: len(sizes)], {name: inputs[name] for name in sizes})
        state = rest[0] if rest else state
        return action[0]

    return act


def fly(env, act, seed):
    """Flies once and returns the arrays of a log."""
    observations, actions, rewards, over = [env.reset(seed=seed)[0]], [], [], False
    while not over:
        actions.append(act(observations[-1], start=not actions))
        observation, reward, terminated, truncated, _ = env.step(actions[-1])
        observations.append(observation)
        rewards.append(reward)
        over = terminated or truncated
    return {
        "observations": np.array(observations),
        "actions": np.array(actions),
        "rewards": np.array(rewards),
        "time": TIME_STEP * np.arange(len(observations)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Flies a policy on the machine and logs it.")
    parser.add_argument("policy", help="a file from gymdr export")
    parser.add_argument("--output", type=Path, required=True, help="folder for the log: a file for each flight")
    asked = parser.parse_args()
    machine, pilot = build(), load(asked.policy)
    flights = [fly(machine, pilot, seed) for seed in range(FLIGHTS)]  # each in another initial state
    asked.output.mkdir(parents=True, exist_ok=True)
    for number, flight in enumerate(flights):
        np.savez(asked.output / f"{number:03}.npz", **flight)
    returns = [flight["rewards"].sum() for flight in flights]
    listed = " ".join(f"{one:.0f}" for one in returns)
    print(f"{asked.policy} on the machine, mean return {np.mean(returns):.0f}: {listed}")
