"""Every parameter of Box2D and classic control changes an episode, with what it needs; this list has the others.

Robots have hundreds, most of them in no preset; mujoco/test_stock_robots.py looks for each in the model, and the
contract of environments for an effect of those in presets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.mujoco.presets import PRESETS as MUJOCO
from gym_dr.envs.mujoco.robots import ROBOTS
from gym_dr.randomization.space import Param, ParamSpace

Array = npt.NDArray[np.float64]

# steps and seed; each round has only the parameters without an effect so far
ROUNDS = ((20, 1), (300, 1), (300, 2), (600, 3), (600, 4))

# environment -> patterns of parameters that change no episode in it, whatever they need
WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "Acrobot": ("link_length_2",),  # Gymnasium's equations do not use it, only its drawing does
}


def family_name(env_id: str) -> str:
    return env_id.removeprefix("gym_dr/").partition("DR-")[0]


def space_of(env_id: str) -> ParamSpace:
    envs: Any = gym.make_vec(env_id, num_envs=1, randomization="none")
    envs.close()
    space: ParamSpace = envs.param_space
    return space


def values_of(param: Param) -> list[float]:
    """Values on both sides of the nominal one, and its bounds."""
    nominal = param.nominal
    near = [0.5 * nominal, 2.0 * nominal, 3.0 * nominal + 1.0] if nominal else [0.5, -0.5, 1.0]
    values = [*near, param.low, param.high]
    whole = [value if param.kind == "float" else float(round(value)) for value in values]
    return [value for value in dict.fromkeys(np.clip(whole, param.low, param.high).tolist()) if value != nominal]


def trials_of(space: ParamSpace, name: str) -> Iterator[dict[str, float]]:
    """One parameter with different values."""
    for value in values_of(space[name]):
        yield space.check({name: value})


def action(space: gym.Space[Any], family: str, observation: Array, rng: np.random.Generator, walk: Any) -> Any:
    """An action for all: random, or one that walks, swings out of the valley or up."""
    if family.startswith("MountainCar"):
        push = np.sign(observation[1] + 1e-9)
        return np.array([push], np.float32) if "Continuous" in family else int(push + 1)
    if family.startswith("BipedalWalker"):  # walks to the first obstacle
        return walk.step_heuristic(observation)
    if family == "Acrobot":
        return 2 if observation[5] > 0 else 0
    if isinstance(space, gym.spaces.Discrete):
        return int(rng.integers(space.n))
    return rng.uniform(space.low, space.high).astype(np.float32)  # type: ignore[attr-defined]


def walker() -> Any:
    """Gymnasium's heuristic policy, whose module needs Box2D."""
    pytest.importorskip("Box2D")
    from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

    return BipedalWalkerHeuristics()  # type: ignore[no-untyped-call]


def that_differ(env_id: str, trials: list[dict[str, float]], steps: int, seed: int) -> set[int]:
    """The trials whose episode differs from that of the first one."""
    family = family_name(env_id)
    envs: Any = gym.make_vec(env_id, num_envs=len(trials), randomization="none")
    rng, walk = np.random.default_rng(seed), walker() if family.startswith("BipedalWalker") else None
    for i, trial in enumerate(trials):
        envs.set_params(trial, np.arange(len(trials)) == i)
    observations, _ = envs.reset(seed=[seed] * len(trials))
    found = (observations != observations[0]).any(axis=1)
    running = np.ones(len(trials), np.bool_)
    for _ in range(steps):
        one = action(envs.single_action_space, family, observations[0], rng, walk)
        observations, rewards, terminations, truncations, _ = envs.step(np.stack([one] * len(trials)))
        differs = (observations != observations[0]).any(axis=1)
        differs |= (rewards != rewards[0]) | (terminations != terminations[0])
        found |= running & differs
        running &= ~(terminations | truncations)
        if not running[0]:
            break
    envs.close()
    return set(np.flatnonzero(found).tolist())


def without_effect(
    env_id: str, space: ParamSpace, names: set[str], beside: Mapping[str, float], rounds: Any = ROUNDS
) -> set[str]:
    """The parameters that change no episode alone; ``beside`` has values that all episodes share."""
    left = set(names)
    for steps, seed in rounds:
        tried = [(name, values) for name in space if name in left for values in trials_of(space, name)]
        found = that_differ(env_id, [dict(beside), *({**beside, **values} for _, values in tried)], steps, seed)
        left -= {tried[i - 1][0] for i in found if i}
    return left


def enough(space: ParamSpace, name: str) -> dict[str, float]:
    """A value of the first parameter that another one needs, and of what that needs itself, unless one is not 0."""
    needs = space[name].needs
    if not needs or any(space[other].nominal or space[other].kind == "bool" for other in needs):
        return {}
    return {needs[0]: 100.0 if needs[0] == "density" else 0.5, **enough(space, needs[0])}


def check_effects(env_id: str) -> None:
    space, patterns = space_of(env_id), WITHOUT_EFFECT.get(family_name(env_id), ())
    groups: dict[tuple[tuple[str, float], ...], set[str]] = {}  # by what they need beside them
    for name in space:
        groups.setdefault(tuple(enough(space, name).items()), set()).add(name)
    for beside, names in groups.items():
        rest = {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}
        assert without_effect(env_id, space, names - rest, dict(beside)) == set(), beside
        assert without_effect(env_id, space, rest, dict(beside), ROUNDS[1:2]) == rest, beside


@pytest.mark.slow
@pytest.mark.parametrize(
    "env_id", [env_id for env_id in ENVIRONMENTS if family_name(env_id) not in MUJOCO and env_id not in ROBOTS]
)
def test_each_parameter_alone_changes_an_episode_with_what_it_needs(env_id: str) -> None:
    check_effects(env_id)


def test_each_parameter_of_the_lander_alone_changes_an_episode() -> None:
    check_effects("gym_dr/LunarLanderDR-v3")
