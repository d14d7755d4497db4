from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import ConfigError, InvalidActionError
from gym_dr.policies.frozen import checked, for_one_or_many

OBSERVATIONS, STARTS = np.zeros((3, 4), np.float32), np.ones(3, np.bool_)


@pytest.fixture
def pole() -> Iterator[Any]:
    envs = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")  # Discrete(2)
    yield envs
    envs.close()


@pytest.fixture
def pendulum() -> Iterator[Any]:
    envs = gym.make_vec("Pendulum-v1", num_envs=3, vectorization_mode="sync")  # Box(-2, 2, (1,))
    yield envs
    envs.close()


def act(envs: Any, actions: Any) -> Any:
    return checked(lambda observations: actions, envs, "mine", "Some-v0")(OBSERVATIONS, STARTS)


def test_lists_and_booleans_become_actions_of_the_environments_type(pole: Any) -> None:
    for given in ([1, 0, 1], np.array([True, False, True])):
        actions = act(pole, given)
        assert (actions.tolist(), actions.dtype) == ([1, 0, 1], pole.action_space.dtype)


def test_actions_beyond_a_box_are_clipped(pendulum: Any) -> None:
    actions = act(pendulum, [[-3.0], [0.5], [9]])
    assert (actions.tolist(), actions.dtype) == ([[-2.0], [0.5], [2.0]], np.float32)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (
            [0, 1],
            r"mine: expected actions of shape \(3,\) for Some-v0, .*shape \(4,\).*Discrete\(2\), got shape \(2,\)",
        ),
        ([0.0, 1.0, 0.0], "expected whole numbers .* got float64"),
        ([0, 1, 2], r"expected actions in Discrete\(2\), got 2 among them"),
    ],
)
def test_choices_that_do_not_fit_are_refused(pole: Any, actions: Any, message: str) -> None:
    with pytest.raises(InvalidActionError, match=message):
        act(pole, actions)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(pendulum: Any, value: float) -> None:
    with pytest.raises(InvalidActionError, match=f"expected finite actions, got {value} in sub-environment 1"):
        act(pendulum, [[0.0], [value], [0.0]])


def test_a_policy_that_fails_is_named_with_its_error_and_the_environment(pole: Any) -> None:
    def broken(observations: Any) -> Any:
        raise KeyError("weights")

    with pytest.raises(ConfigError, match=r"mine: fails on Some-v0, .*Discrete\(2\): KeyError: 'weights'"):
        checked(broken, pole, "mine", "Some-v0")(OBSERVATIONS, STARTS)


def test_actions_that_are_no_array_are_refused() -> None:
    class Named(gym.Env[Any, Any]):
        observation_space = gym.spaces.Discrete(2)
        action_space = gym.spaces.Dict(x=gym.spaces.Discrete(2))

    envs = gym.vector.SyncVectorEnv([Named])
    with pytest.raises(ConfigError, match="expected actions that are arrays"):
        checked(lambda observations: [0], envs, "mine", "Named-v0")


@pytest.mark.parametrize("shape", [(3,), ()])
def test_a_policy_for_many_acts_on_one_observation_too(shape: tuple[int, ...]) -> None:
    def sums(observations: Any) -> Any:
        return observations.reshape(len(observations), -1).sum(1)

    act = for_one_or_many(sums, shape, "here")
    many = np.arange(4 * np.prod(shape)).reshape(4, *shape)
    assert act(many).shape == (4,)
    assert [act(one) for one in many] == act(many).tolist()
    for wrong in (np.zeros((*shape, 5)), np.zeros((2, 2, *shape))):
        with pytest.raises(ConfigError, match=r"here: expected observations of shape \(.*\) or \(N,.*\), got .* Wrap"):
            for_one_or_many(sums, (*shape, 7), "here")(wrong)
