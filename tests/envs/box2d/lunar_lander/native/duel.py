"""Box2D's and the native LunarLander side by side: the same seeds, parameters and actions, compared with ``==``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.envs.box2d.lunar_lander import heuristic

from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderVectorEnv
from gym_dr.envs.box2d.lunar_lander.env import LunarLanderDR
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.randomization.space import ParamSpace
from tests.envs.box2d.exact import EXACT

Policy = Callable[[np.random.Generator, Any, Any], Any]  # (own randomness, env, observation) -> action

# A small network (8 inputs, 16 tanh, 4 choices) that imitates Gymnasium's heuristic; lands 94 of 100 nominal episodes.
LAYERS = [np.array(layer) for layer in json.loads((Path(__file__).parent / "trained_policy.json").read_text())]


def random_policy(rng: np.random.Generator, env: Any, observation: Any) -> Any:
    return rng.uniform(-1.0, 1.0, 2).astype(np.float32) if env.continuous else int(rng.integers(4))


def heuristic_policy(rng: np.random.Generator, env: Any, observation: Any) -> Any:
    action = heuristic(env, observation)
    return action.astype(np.float32) if env.continuous else int(action)


def trained_policy(rng: np.random.Generator, env: Any, observation: Any) -> Any:
    weight_1, bias_1, weight_2, bias_2 = LAYERS
    choice = int((weight_2 @ np.tanh(weight_1 @ observation + bias_1) + bias_2).argmax())
    throttles = ((-1.0, 0.0), (-1.0, -1.0), (1.0, 0.0), (-1.0, 1.0))
    return np.array(throttles[choice], np.float32) if env.continuous else choice


def stubborn_policy(rng: np.random.Generator, env: Any, observation: Any) -> Any:
    """One engine for a long time: spins, flips and hard falls."""
    if not hasattr(env, "stubborn") or rng.random() < 0.02:
        env.stubborn = int(rng.integers(4))
    throttles = ((-1.0, 0.0), (-1.0, -1.0), (1.0, 0.0), (-1.0, 1.0))
    return np.array(throttles[env.stubborn], np.float32) if env.continuous else env.stubborn


@dataclass(frozen=True, kw_only=True)
class Result:
    episodes: int
    steps: int
    differing: list[str]  # what to type to see each again
    returns: tuple[list[float], list[float]]  # of Box2D's and of the native episodes


def whole_range(rng: np.random.Generator, count: int, space: ParamSpace = LUNAR_LANDER) -> dict[str, np.ndarray]:
    """Parameters anywhere within their bounds, often on one of them."""
    table = {}
    for name, param in space.items():
        values = rng.uniform(param.low, param.high, count)
        which = rng.random(count)
        values = np.where(which < 0.15, param.low, np.where(which < 0.3, param.high, values))
        table[name] = np.round(values) if param.kind == "bool" else values
    return table


def duel(
    policy: Policy,
    *,
    seed: int,
    episodes: int,
    continuous: bool = False,
    randomization: Any = "none",
    params: dict[str, Any] | None = None,  # name -> number or (episodes,)
    max_steps: int = 1000,
) -> Result:
    """Plays ``episodes`` episodes at once on both sides; episode i alone is the same call with ``seed + i``."""
    boxes = [LunarLanderDR(continuous=continuous, randomization=randomization) for _ in range(episodes)]
    native = LunarLanderVectorEnv(episodes, continuous=continuous, randomization=randomization)
    table = {name: np.atleast_1d(values) for name, values in (params or {}).items()}
    rngs = [np.random.default_rng([seed + i, 1]) for i in range(episodes)]  # apart from the environments' own
    observations = []
    for i, box in enumerate(boxes):
        own = {name: float(values[i]) for name, values in table.items()}
        observations.append(box.reset(seed=seed + i, options={"params": own})[0])
    first, _ = native.reset(seed=seed, options={"params": table})
    differing = [] if EXACT and (first == np.array(observations)).all() else ["reset"] * EXACT
    alive, steps = np.ones(episodes, bool), 0
    wrong = np.zeros(episodes, bool)
    returns = np.zeros((2, episodes))
    actions = np.zeros((episodes, 2), np.float32) if continuous else np.zeros(episodes, np.int64)
    for step in range(max_steps):
        for i in np.flatnonzero(alive):
            actions[i] = policy(rngs[i], boxes[i], observations[i])
        theirs = native.step(actions)
        for i in np.flatnonzero(alive):
            action = actions[i] if continuous else int(actions[i])
            observations[i], reward, terminated, _, _ = boxes[i].step(action)
            steps += 1
            returns[:, i] += reward, theirs[1][i]
            same = (observations[i] == theirs[0][i]).all() and reward == theirs[1][i] and terminated == theirs[2][i]
            if EXACT and not same and not wrong[i]:
                wrong[i] = True
                own = {name: float(values[i]) for name, values in table.items()}
                differing.append(
                    f"duel({policy.__name__}, seed={seed + i}, episodes=1, continuous={continuous}, "
                    f"randomization={randomization!r}, params={own}, max_steps={max_steps}) at step {step}"
                )
            alive[i] = not terminated
        if not alive.any():
            break
    native.close()
    return Result(
        episodes=episodes, steps=steps, differing=differing, returns=(returns[0].tolist(), returns[1].tolist())
    )
