"""Box2D's and the native BipedalWalker side by side: the same seeds, parameters and actions, compared with ``==``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.envs.box2d.bipedal_walker.backend import BipedalWalkerVectorEnv
from gym_dr.envs.box2d.bipedal_walker.env import BipedalWalkerDR
from tests.envs.box2d.bipedal_walker.play import POLICIES


@dataclass(frozen=True, kw_only=True)
class Result:
    episodes: int
    steps: int
    differing: list[str]  # what to type to see each again


def duel(
    *,
    seed: int,
    episodes: int,
    hardcore: bool = False,
    randomization: Any = "none",
    params: dict[str, Any] | None = None,  # name -> (episodes,); episode i alone is the same call with ``seed + i``
    max_steps: int = 2000,
    blows: bool = False,
) -> Result:
    """Plays episodes at once on both sides, with the policies in turn; each Box2D episode is in a world of its own.

    ``blows`` throws the walkers forward again and again, over obstacles and on after falls, which end no episode then.
    """
    boxes = [BipedalWalkerDR(hardcore=hardcore, randomization=randomization) for _ in range(episodes)]
    native = BipedalWalkerVectorEnv(episodes, hardcore=hardcore, randomization=randomization)
    table = params or {}
    own = [{name: float(values[i]) for name, values in table.items()} for i in range(episodes)]
    observations = [box.reset(seed=seed + i, options={"params": own[i]})[0] for i, box in enumerate(boxes)]
    first, _ = native.reset(seed=seed, options={"params": table})
    wrong = [f"seed={seed + i}, params={own[i]}: reset" for i in range(episodes) if (first[i] != observations[i]).any()]
    policies = [POLICIES[(seed + i) % len(POLICIES)](seed + i) for i in range(episodes)]
    rngs = [np.random.default_rng([seed + i, 1]) for i in range(episodes)]
    alive, steps = np.ones(episodes, bool), 0
    actions = np.zeros((episodes, 4), np.float32)
    for step in range(max_steps):
        if blows and step % 25 == 5:
            thrown = np.array([rng.uniform((0.0, -3.0), (14.0, 7.0)) for rng in rngs])
            native._backend.push(thrown, np.arange(episodes))
            for i in np.flatnonzero(alive):
                boxes[i].push(thrown[i])
        for i in np.flatnonzero(alive):
            actions[i] = policies[i](rngs[i], observations[i])
        rewards, terminations, _, _ = native._backend.step(actions)  # without autoreset
        for i in np.flatnonzero(alive):
            observations[i], reward, terminated, _, _ = boxes[i].step(actions[i])
            steps += 1
            same = (observations[i] == native._backend.observations[i]).all()
            if not (same and reward == rewards[i] and terminated == terminations[i]):
                wrong.append(
                    f"duel(seed={seed + i}, episodes=1, hardcore={hardcore}, randomization={randomization!r}, "
                    f"params={own[i]}, blows={blows}) at step {step}"
                )
                alive[i] = False
            alive[i] = alive[i] and (blows or not terminated)
        if not alive.any():
            break
    native.close()
    return Result(episodes=episodes, steps=steps, differing=wrong)
