from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr import Randomization, Uniform
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import RandomizationError
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.wrappers.disturbances import DISTURBANCES, FLOATING, PUSHES, SCALED
from gym_dr.wrappers.disturbed_space import DisturbedSpace, possible_disturbances, split

SENSED = ("obs_noise", "obs_bias", "obs_delay", "obs_drop")
SPACE = DisturbedSpace(LUNAR_LANDER, DISTURBANCES.values())


def correlated(*names: str) -> Randomization:
    matrix = np.full((len(names), len(names)), 0.5) + 0.5 * np.eye(len(names))
    rules = {"gravity": (-11, -9), "wind_power": (0, 20), "obs_noise": (0, 0.1), "obs_bias": (0, 0.1)}
    return Randomization(rules, correlation={"names": names, "matrix": matrix.tolist()})


def test_the_environments_parameters_come_first_and_keep_their_presets() -> None:
    assert list(SPACE) == [*LUNAR_LANDER, *DISTURBANCES]
    assert resolve("wide", SPACE) == resolve("wide", LUNAR_LANDER)


def test_patterns_of_the_environment_are_expanded_beside_disturbances() -> None:
    with gym.make("gym_dr/HopperDR-v5") as env:
        space = DisturbedSpace(env.get_wrapper_attr("param_space"), possible_disturbances(env))
    found = resolve({"body_mass:*": gym_dr.Scale((0.5, 2)), "obs_noise": (0, 0.1)}, space)
    assert set(found) == {"obs_noise", *(f"body_mass:{part}" for part in ("torso", "thigh", "leg", "foot"))}


@pytest.mark.parametrize("check", [SPACE.check, lambda values: SPACE.check_vector(values, 2)])
@pytest.mark.parametrize("values", [{"gravity": 3.0}, {"obs_noise": -1.0}, {"action_delay": 0.5}])
def test_values_of_both_kinds_are_checked(check: Any, values: dict[str, float]) -> None:
    with pytest.raises(RandomizationError, match=next(iter(values))):
        check(values)


def test_good_values_of_both_kinds_are_returned() -> None:
    assert SPACE.check({"gravity": -3, "obs_delay": 2}) == {"gravity": -3.0, "obs_delay": 2.0}
    found = SPACE.check_vector({"obs_delay": [1, 2], "gravity": -3}, 2)
    assert {name: values.tolist() for name, values in found.items()} == {"gravity": [-3, -3], "obs_delay": [1, 2]}


@pytest.mark.parametrize("name", ["push_speed", "push_probability", "push_interval"])
def test_half_a_push_is_refused(name: str) -> None:
    with pytest.raises(RandomizationError, match=f"{name!r} has no effect here: it needs push_"):
        resolve({name: 1.0}, SPACE)


def test_a_correlation_stays_with_its_own_kind() -> None:
    own, disturbances = split(correlated("gravity", "wind_power"))
    assert set(own) == {"gravity", "wind_power"}
    assert set(disturbances) == {"obs_noise", "obs_bias"}
    assert own.correlation is not None
    assert disturbances.correlation is None
    assert split(correlated("obs_noise", "obs_bias"))[1].correlation is not None


def test_a_correlation_across_both_kinds_is_refused() -> None:
    with pytest.raises(RandomizationError, match="got gravity, obs_noise"):
        resolve(correlated("gravity", "obs_noise"), SPACE)


def test_an_environment_with_a_parameter_of_that_name_is_refused() -> None:
    own = ParamSpace("noisy", [Param(name="obs_noise", nominal=0, low=0, high=1)])
    with pytest.raises(RandomizationError, match="two parameters have the same name"):
        DisturbedSpace(own, DISTURBANCES.values())


@pytest.mark.parametrize(
    ("env_id", "missing"),
    [
        ("gym_dr/AntDR-v5", set()),
        ("gym_dr/LunarLanderContinuousDR-v3", {*FLOATING}),
        ("gym_dr/LunarLanderDR-v3", {*FLOATING, *SCALED}),
        ("CartPole-v1", {*FLOATING, *SCALED, *PUSHES}),
        ("FrozenLake-v1", {*FLOATING, *SCALED, *PUSHES, *SENSED}),
        ("Blackjack-v1", {*FLOATING, *SCALED, *PUSHES, *SENSED}),  # observes a tuple
    ],
)
def test_only_disturbances_that_an_environment_can_take_are_offered(env_id: str, missing: set[str]) -> None:
    with gym.make(env_id) as env:
        offered = {param.name for param in possible_disturbances(env)}
    assert offered == set(DISTURBANCES) - missing


def test_a_disturbed_vector_environment_has_both_kinds_of_parameters() -> None:
    envs: Any = gym.make_vec("gym_dr/LunarLanderDR-v3", 2, randomization={"gravity": (-11, -9)})
    envs = gym_dr.DisturbVector(envs, {"obs_delay": gym_dr.Integer(0, 2)})
    assert envs.randomization == Randomization({"gravity": Uniform(-11, -9), "obs_delay": gym_dr.Integer(0, 2)})
    assert list(envs.param_space) == [*LUNAR_LANDER, "obs_delay"]
    shown = gym_dr.DrawContext(envs, "observation")
    assert [shown_range.name for shown_range in shown.context.ranges] == ["gravity", "obs_delay"]
    envs.close()


def test_a_shared_pattern_is_a_parameter_beside_disturbances() -> None:
    name = "body_mass:*"
    with gym.make("gym_dr/HopperDR-v5") as env:
        own = env.get_wrapper_attr("param_space")
        space = DisturbedSpace(own, possible_disturbances(env))
    rule = gym_dr.Scale((0.5, 2), shared=True)
    assert set(resolve({name: rule, "obs_noise": (0, 0.1)}, space)) == {name, "obs_noise"}
    assert space[name] == own[name]
    assert name in space
    assert space.in_order({name, "obs_noise"}) == ["obs_noise", name]
