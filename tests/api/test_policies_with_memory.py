"""The policy of a run that was trained with memory, in a loop of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

import gym_dr
from gym_dr.errors import ConfigError
from gym_dr.policies.frozen import takes_episode_starts
from gym_dr.runs.checkpoint import load_newest
from gym_dr.training import rollout as rollout_module
from gym_dr.training.behavior import make_behavior
from gym_dr.training.networks import make_actor
from gym_dr.training.rollout import RolloutCollector
from tests.policies.tiny_run import train_tiny_run

POLE, PENDULUM = "CartPole-v1", "Pendulum-v1"
# learning rates at which two updates change more than the last digits
MEMORY = ("--memory", "gru", "--memory-size", "6", "--sequence-length", "4", "--actor-lr", "0.05")
RunPolicy = Callable[..., Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, gym_dr.Run]:
    folder, found = tmp_path_factory.mktemp("runs"), {}
    for env in (POLE, PENDULUM):
        train_tiny_run(folder / env, "--env", env, "--randomization", "none", "--normalize-observations", *MEMORY)
        run = gym_dr.load_run(folder / env)
        assert isinstance(run, gym_dr.Run)
        found[env] = run
    return found


def observations_of(env_id: str, steps: int, num_envs: int) -> tuple[Any, Any]:
    """Made up, (T, N, obs), with where episodes start, (T, N): everywhere at first."""
    rng = np.random.default_rng(0)
    size = {POLE: 4, PENDULUM: 3}[env_id]
    starts = rng.random((steps, num_envs)) < 0.2
    starts[0] = True
    return rng.standard_normal((steps, num_envs, size), np.float32), starts


def acted(policy: RunPolicy, observations: Any, starts: Any) -> Any:
    return np.array([policy(now, begin) for now, begin in zip(observations, starts, strict=True)])


def test_it_acts_as_the_actor_does_in_a_rollout(runs: dict[str, gym_dr.Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs[PENDULUM]
    envs = gym.make_vec(PENDULUM, 3, vectorization_mode="sync", max_episode_steps=7)
    actor = make_actor(envs, (8,), "relu", normalize_observations=True, memory_size=6)
    actor.load_state_dict(load_newest(run.folder)["state"]["actor"])
    behavior = make_behavior(actor, torch.Generator(), "cpu", 3)
    # the mean of all actions, which is what a policy takes after training
    monkeypatch.setattr(rollout_module, "draw_noise", lambda *args: np.zeros((20, 3, 1), np.float32))
    collector = RolloutCollector(envs, 20, "cpu")
    collector.reset(seed=1)
    rollout = collector.collect(behavior)
    assert rollout.memory is not None
    starts = rollout.memory.starts[:-1].numpy()
    assert starts.sum(axis=0).tolist() == [3, 3, 3]  # at steps 0, 8 and 16
    found = acted(run.policy(), rollout.observations[:-1].numpy(), starts)
    np.testing.assert_allclose(found, actor.to_env(rollout.actions), rtol=1e-5, atol=1e-6)
    assert run.config.options.memory == "gru"


@pytest.mark.parametrize(("env_id", "deterministic"), [(POLE, False), (PENDULUM, True)])
def test_it_acts_the_same_each_time_it_is_made(runs: dict[str, gym_dr.Run], env_id: str, deterministic: bool) -> None:
    observations, starts = observations_of(env_id, 100, 3)
    first, second = (acted(runs[env_id].policy(deterministic=deterministic), observations, starts) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert takes_episode_starts(runs[env_id].policy())


@pytest.mark.parametrize("env_id", [POLE, PENDULUM])
def test_it_remembers_the_observations_before_and_its_last_action(runs: dict[str, gym_dr.Run], env_id: str) -> None:
    observations, _ = observations_of(env_id, 3, 2)
    policy, never = runs[env_id].policy(), np.zeros(2, np.bool_)
    policy(observations[0], ~never)
    policy(observations[1], never)
    remembering = policy.state
    policy(observations[1], ~never)
    assert not np.array_equal(policy.state[:, :6], remembering[:, :6])
    assert np.abs(remembering[:, 6:]).sum(axis=1).all()


@pytest.mark.parametrize(  # samples of discrete actions would go on with other random numbers
    ("env_id", "deterministic"), [(POLE, True), (PENDULUM, False), (PENDULUM, True)]
)
def test_from_a_state_that_was_kept_it_goes_on_as_it_did(
    runs: dict[str, gym_dr.Run], env_id: str, deterministic: bool
) -> None:
    observations, starts = observations_of(env_id, 20, 3)
    policy, other = (runs[env_id].policy(deterministic=deterministic) for _ in range(2))
    acted(policy, observations[:9], starts[:9])
    kept = policy.state
    assert kept.shape == (3, policy.size)
    assert kept.dtype == np.float32
    before = kept.copy()
    expected, end = acted(policy, observations[9:], starts[9:]), policy.state
    np.testing.assert_array_equal(kept, before)  # acting leaves what was read alone
    for one in (policy, other):  # back in time, and in another policy that has not acted yet
        one.state = kept
        np.testing.assert_array_equal(one.state, kept)
        np.testing.assert_array_equal(acted(one, observations[9:], starts[9:]), expected)
        np.testing.assert_array_equal(one.state, end)
    np.testing.assert_array_equal(kept, before)


def test_one_sub_environment_alone_is_treated_as_it_is_among_others(runs: dict[str, gym_dr.Run]) -> None:
    observations, starts = observations_of(PENDULUM, 50, 3)
    together = acted(runs[PENDULUM].policy(deterministic=True), observations, starts)
    for i in range(3):
        only = slice(i, i + 1)
        alone = acted(runs[PENDULUM].policy(deterministic=True), observations[:, only], starts[:, only])
        np.testing.assert_allclose(alone, together[:, only], rtol=0.0, atol=1e-6)


NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


def episodes_of(policy: RunPolicy, mode: AutoresetMode, num_envs: int = 3, count: int = 4) -> list[list[list[int]]]:
    """Actions of the first episodes of each sub-environment, in a loop as its user writes it."""
    envs = gym.make_vec(
        POLE, num_envs, vectorization_mode="sync", max_episode_steps=20, vector_kwargs={"autoreset_mode": mode}
    )
    observations, _ = envs.reset(seed=3)
    starts, resets = np.ones(num_envs, np.bool_), np.zeros(num_envs, np.bool_)
    finished: list[list[list[int]]] = [[] for _ in range(num_envs)]
    going: list[list[int]] = [[] for _ in range(num_envs)]
    while min(map(len, finished)) < count:
        actions = policy(observations, starts)
        observations, _, terminations, truncations, _ = envs.step(actions)
        done = terminations | truncations
        for i in np.flatnonzero(~resets):
            going[i].append(int(actions[i]))
            if done[i]:
                finished[i].append(going[i])
                going[i] = []
        if mode == NEXT_STEP:
            starts, resets = resets, done
        else:
            starts = done
        if mode == DISABLED and done.any():
            observations, _ = envs.reset(options={"reset_mask": done})
    envs.close()
    return [episodes[:count] for episodes in finished]


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP, DISABLED], ids=lambda mode: mode.name)
def test_episodes_are_the_same_in_every_autoreset_mode(runs: dict[str, gym_dr.Run], mode: AutoresetMode) -> None:
    found, expected = episodes_of(runs[POLE].policy(deterministic=True), mode), expected_episodes(runs[POLE])
    assert found == expected
    assert len({len(episode) for episodes in expected for episode in episodes}) > 3
    assert {action for episodes in expected for episode in episodes for action in episode} == {0, 1}


def test_what_it_remembers_decides_what_it_does(runs: dict[str, gym_dr.Run]) -> None:
    policy = runs[POLE].policy(deterministic=True)

    def forgets(observations: Any, episode_starts: Any) -> Any:
        return policy(observations, np.ones_like(episode_starts))

    assert episodes_of(forgets, SAME_STEP) != expected_episodes(runs[POLE])


@functools.cache
def expected_episodes(run: gym_dr.Run) -> list[list[list[int]]]:
    """Episode by episode, of one sub-environment after the other, each with a policy of its own."""
    found = []
    for i in range(3):
        env = gym.make(POLE, max_episode_steps=20)
        episodes: list[list[int]] = []
        while len(episodes) < 4:
            policy = run.policy(deterministic=True)
            observation, _ = env.reset(seed=None if episodes else 3 + i)
            actions: list[int] = []
            over = False
            while not over:
                actions.append(int(policy(observation[None], np.array([not actions]))[0]))
                observation, _, terminated, truncated, _ = env.step(actions[-1])
                over = terminated or truncated
            episodes.append(actions)
        found.append(episodes)
        env.close()
    return found


# ---- What is refused


@pytest.mark.parametrize(
    "starts",
    [np.ones(2, np.bool_), np.ones((3, 1), np.bool_), np.ones(3), None],
    ids=["too few", "a column", "float", "none"],
)
def test_starts_of_another_shape_or_type_are_refused(runs: dict[str, gym_dr.Run], starts: Any) -> None:
    with pytest.raises(ConfigError, match=r"Expected episode_starts of shape \(3,\), True where an observation is the"):
        runs[POLE].policy()(np.zeros((3, 4), np.float32), starts)


@pytest.mark.parametrize("shape", [(4,), (3, 5), (3, 4, 1)])
def test_observations_of_another_shape_are_refused(runs: dict[str, gym_dr.Run], shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"Expected observations of shape \(N, 4\), got"):
        runs[POLE].policy()(np.zeros(shape, np.float32), np.ones(3, np.bool_))


def test_the_number_of_sub_environments_changes_only_where_all_begin(runs: dict[str, gym_dr.Run]) -> None:
    policy = runs[POLE].policy()
    assert policy.size == 6 + 2  # what it remembers, and which of two actions was the last
    assert policy.state.shape == (0, 8)
    with pytest.raises(ConfigError, match="True everywhere for 2 observations after no observations"):
        policy(np.zeros((2, 4), np.float32), np.array([True, False]))
    policy(np.zeros((2, 4), np.float32), np.ones(2, np.bool_))
    with pytest.raises(ConfigError, match="True everywhere for 3 observations after 2 observations"):
        policy(np.zeros((3, 4), np.float32), np.array([False, False, True]))
    assert len(policy(np.zeros((2, 4), np.float32), np.zeros(2, np.bool_))) == 2  # which has changed nothing
    assert len(policy(np.zeros((3, 4), np.float32), np.ones(3, np.bool_))) == 3
    assert policy.state.shape == (3, 8)


@pytest.mark.parametrize(
    "state",
    [np.zeros((2, 7)), np.full((2, 8), np.nan), [["a"] * 8], [[0.0] * 8, [0.0]]],
    ids=["too few", "not finite", "text", "ragged"],
)
def test_a_state_of_another_shape_or_not_of_numbers_is_refused(runs: dict[str, gym_dr.Run], state: Any) -> None:
    policy = runs[POLE].policy()
    policy(np.zeros((2, 4), np.float32), np.ones(2, np.bool_))
    before = policy.state
    with pytest.raises(ConfigError, match=r"Expected a state of shape \(N, 8\) with finite numbers"):
        policy.state = state
    np.testing.assert_array_equal(policy.state, before)
