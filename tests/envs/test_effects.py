"""Every parameter changes an episode, with what it needs; this list has the others."""

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
from gym_dr.errors import RandomizationError
from gym_dr.randomization.space import Param, ParamSpace

Array = npt.NDArray[np.float64]

# steps and seed; each round has only the parameters without an effect so far
ROUNDS = ((20, 1), (300, 1), (300, 2), (600, 3), (600, 4))
ROUNDING = 1e-9  # of MuJoCo's, smaller differences may be rounding errors

# environment -> patterns of parameters that change no episode in it, whatever they need
UPRIGHT = ("gravity.y", "wind.y", "body_ipos:*.y")  # it moves in the x-z plane ...
TURNS = ("body_inertia:*.[xz]",)  # ... and turns about y; a moment of inertia that turns nothing matters to drag alone
LYING = ("gravity", "gravity.z", "wind.z", "body_ipos:*.z")  # in the x-y plane
SLIDING = ("geom_friction:*.spin", "geom_friction:*.roll")  # its contacts have no other friction
CART = (*UPRIGHT, *TURNS, "body_ipos:cart*", "body_inertia:cart*", "geom_friction*")  # nothing touches
WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "Acrobot": ("link_length_2",),  # Gymnasium's equations do not use it, only its drawing does
    "InvertedPendulum": CART,
    "InvertedDoublePendulum": CART,
    "Hopper": (*UPRIGHT, *TURNS, *SLIDING),
    "HalfCheetah": (*UPRIGHT, *SLIDING, "body_inertia:[bf]*.[xz]", "body_inertia:torso.[yz]"),
    "Walker2d": (*UPRIGHT, *TURNS, *SLIDING),
    "Ant": SLIDING,
    "Humanoid": SLIDING,
    "HumanoidStandup": SLIDING,
    "Swimmer": (*LYING, "geom_friction*"),
    # nothing ever touches or pulls the targets, so they rest
    "Reacher": (
        *(*LYING, "body_inertia:body?.[yz]", "body_inertia:fingertip.[xy]", "geom_friction*"),
        *("body_*:target*", "dof_*:target_?"),
    ),
    "Pusher": (
        *("body_ipos:r_shoulder_pan_link.z", "body_inertia:r_shoulder_pan_link.y", "geom_friction*"),
        *("body_*:goal*", "*:goal_slide?", "body_inertia:object*"),
    ),
}
# robots that may fall and go on, so that more of them touches the ground
FALLING = {name: {"terminate_when_unhealthy": False} for name in ("Hopper", "Walker2d", "Humanoid")}
FALLING["Ant"] = {"terminate_when_unhealthy": False, "reset_noise_scale": 1.0}
FALLING |= {"HalfCheetah": {"reset_noise_scale": 1.0}, "HumanoidStandup": {"reset_noise_scale": 0.5}}


def family_name(env_id: str) -> str:
    return env_id.removeprefix("gym_dr/").partition("DR-")[0]


def space_of(env_id: str) -> ParamSpace:
    envs: Any = gym.make_vec(env_id, num_envs=1, randomization="none")
    envs.close()
    space: ParamSpace = envs.param_space
    return space


def values_of(param: Param, far: bool) -> list[float]:
    """Values on both sides of the nominal one, and its bounds if simulations cannot diverge there."""
    nominal = param.nominal
    near = [0.5 * nominal, 2.0 * nominal, 3.0 * nominal + 1.0] if nominal else [0.5, -0.5, 1.0]
    values = [*near, param.low, param.high] if far else near
    whole = [value if param.kind == "float" else float(round(value)) for value in values]
    return [value for value in dict.fromkeys(np.clip(whole, param.low, param.high).tolist()) if value != nominal]


def trials_of(space: ParamSpace, name: str) -> Iterator[dict[str, float]]:
    """One parameter with different values; those of inertia are nearer where no body has it."""
    for value in values_of(space[name], far=space.name not in MUJOCO):
        near = space[name].nominal * (1.0 + 1e-3 * np.sign(value - space[name].nominal))
        for possible in (value, float(near)):
            try:
                yield space.check({name: possible})
                break
            except RandomizationError:
                continue


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
    tolerance = ROUNDING if family in MUJOCO else 0.0
    envs: Any = gym.make_vec(env_id, num_envs=len(trials), randomization="none", **FALLING.get(family, {}))
    rng, walk = np.random.default_rng(seed), walker() if family.startswith("BipedalWalker") else None
    for i, trial in enumerate(trials):
        envs.set_params(trial, np.arange(len(trials)) == i)
    observations, _ = envs.reset(seed=[seed] * len(trials))
    found = (np.abs(observations - observations[0]) > tolerance).any(axis=1)
    running = np.ones(len(trials), np.bool_)
    for _ in range(steps):
        one = action(envs.single_action_space, family, observations[0], rng, walk)
        observations, rewards, terminations, truncations, _ = envs.step(np.stack([one] * len(trials)))
        differs = (np.abs(observations - observations[0]) > tolerance).any(axis=1)
        differs |= (np.abs(rewards - rewards[0]) > tolerance) | (terminations != terminations[0])
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
@pytest.mark.parametrize("env_id", list(ENVIRONMENTS))
def test_each_parameter_alone_changes_an_episode_with_what_it_needs(env_id: str) -> None:
    check_effects(env_id)


def test_each_parameter_of_the_lander_alone_changes_an_episode() -> None:
    check_effects("gym_dr/LunarLanderDR-v3")
