"""Policies that remember are told where episodes start, in the one way in which all policies are called."""

from __future__ import annotations

import functools
import operator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import ConfigError
from gym_dr.policies.frozen import drive, takes_episode_starts, with_episode_starts


def remembers(observations: Any, episode_starts: Any) -> Any:
    return episode_starts


def may_remember(observations: Any, episode_starts: Any = None) -> Any:
    return episode_starts


def weighted(observations: Any, weights: Any = 2.0) -> Any:
    return weights


def of_weights(weights: Any, observations: Any, episode_starts: Any) -> Any:
    return episode_starts


def any_number(*args: Any, **kwargs: Any) -> Any:
    return args


@functools.wraps(remembers)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return remembers(*args, **kwargs)


class Memory:
    def __call__(self, observations: Any, episode_starts: Any) -> Any:
        return episode_starts

    @staticmethod
    def still(observations: Any) -> Any:
        return observations


REMEMBER = {
    "function": remembers,
    "default of that name": may_remember,
    "object": Memory(),
    "partial": functools.partial(of_weights, 1.0),
    "wrapped": wrapped,
}
FORGET = {
    "lambda": lambda o: o,
    "other default": weighted,
    "partial": functools.partial(weighted, weights=1.0),
    "static method": Memory.still,
    "any number": any_number,
    "ufunc": np.tanh,
    "without a signature": operator.itemgetter(slice(None)),
}


@pytest.mark.parametrize("policy", REMEMBER.values(), ids=REMEMBER)
def test_a_policy_that_takes_two_arguments_gets_both(policy: Any) -> None:
    starts = np.array([True, False])
    assert takes_episode_starts(policy)
    assert with_episode_starts(policy)(np.zeros(2), starts) is starts


@pytest.mark.parametrize("policy", FORGET.values(), ids=FORGET)
def test_any_other_gets_observations_only(policy: Any) -> None:
    assert not takes_episode_starts(policy)
    with_episode_starts(policy)(np.zeros(2), np.ones(2, np.bool_))  # a second argument would make most of them fail


@pytest.mark.parametrize(
    "policy",
    [lambda a, b, c: a, lambda: 0, lambda observations, *, episode_starts: 0, lambda o, *, episode_starts=None: 0],
    ids=["three", "none", "by name", "by name with a default"],
)
def test_other_parameters_are_refused(policy: Any) -> None:
    message = (
        r"mine: expected a function \(observations\) or \(observations, episode_starts\), both positional, got one"
    )
    with pytest.raises(ConfigError, match=message):
        with_episode_starts(policy, "mine")


class Count(gym.Env[Any, Any]):
    """Shows the number of the episode and of the step, in episodes of 2, 3, 2, 3, ... steps."""

    observation_space = gym.spaces.Box(0, 99, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, first: int) -> None:
        self.episode, self.steps, self.first = -1, 0, first

    def reset(self, **kwargs: Any) -> Any:
        self.episode, self.steps = self.episode + 1, 0
        return np.array([self.episode, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        last = self.steps == 2 + (self.episode + self.first) % 2
        return np.array([self.episode, self.steps], np.float32), 1.0, last and not self.first, last and self.first, {}


def test_an_episode_starts_where_a_reset_step_has_returned_its_first_observation() -> None:
    seen: list[tuple[Any, Any]] = []

    def spy(observations: Any, episode_starts: Any) -> Any:
        seen.append((observations[:, 1] == 0, episode_starts))  # which is the policy's own each time
        return np.zeros(len(observations), np.int64)

    envs = gym.vector.SyncVectorEnv([functools.partial(Count, first) for first in (0, 1)])  # ended, and truncated
    steps = drive(spy, envs, seed=1)
    for _ in range(30):
        next(steps)
    first, told = (np.array(rows) for rows in zip(*seen, strict=True))
    assert told.tolist() == first.tolist()
    assert told[0].all()
    assert (told.sum(axis=0) > 5).all()
    assert (told[:, 0] != told[:, 1]).any()
