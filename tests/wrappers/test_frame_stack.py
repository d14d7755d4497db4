"""What a policy sees of earlier steps, in every autoreset mode, and what a memory makes of rewards."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr import FrameStack
from gym_dr.errors import ConfigError, NotFiniteError, UnknownNameError
from gym_dr.fitting.logs import read_log
from gym_dr.runs.environments import wrap_for_policy
from gym_dr.testing.playing import DISABLED, NEXT_STEP, SAME_STEP
from gym_dr.training import ppo
from gym_dr.training.config import PPOConfig
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.finite import RequireFinite
from gym_dr.wrappers.frame_stack import Frames, sensor_columns
from tests.runs.test_other_runs import train as train_or_resume
from tests.training.fake_session import FakeSession

POLE = "gym_dr/CartPoleDR-v1"


class Counter(gym.Env[Any, Any]):
    """Observes (episode, step) and rewards each step with its number; an episode has four steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    episode = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self._observation(), float(self.t), self.t == 4, False, {}

    def _observation(self) -> Any:
        return np.array([self.episode, self.t], np.float32)


def counters(mode: Any, **shown: Any) -> FrameStack:
    return FrameStack(gym.vector.SyncVectorEnv([Counter], autoreset_mode=mode), **shown)


def test_it_appends_earlier_observations_and_then_the_last_reward() -> None:
    envs = counters(NEXT_STEP, stack_observations=3, observe_reward=True)
    first, _ = envs.reset(seed=1)
    rows = [first[0], *(envs.step(np.zeros(1, np.int64))[0][0] for _ in range(6))]
    expected = [
        # this step, one before, two before, reward; the first observation stands for those before it
        [1, 0, 1, 0, 1, 0, 0],
        [1, 1, 1, 0, 1, 0, 1],
        [1, 2, 1, 1, 1, 0, 2],
        [1, 3, 1, 2, 1, 1, 3],
        [1, 4, 1, 3, 1, 2, 4],  # the episode's last
        [2, 0, 2, 0, 2, 0, 0],
        [2, 1, 2, 0, 2, 0, 1],
    ]
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("shown", [{}, {"observe_reward": True}, {"stack_observations": 3, "observe_reward": True}])
def test_sensors_are_found_in_all_that_an_observation_shows(shown: dict[str, Any]) -> None:
    envs = gym.make_vec("gym_dr/CartPoleDR-v1", 2, randomization="wide")
    envs = FrameStack(envs, **shown) if shown else envs
    envs = DrawContext(envs, "observation")
    expected = [3, 1, 7, 5, 11, 9] if "stack_observations" in shown else [3, 1]
    assert sensor_columns(envs, ["theta_dot", "1"]) == expected
    with pytest.raises(UnknownNameError, match=r"Expected a sensor of gym_dr/CartPoleDR-v1, x, .*got 'phi'"):
        sensor_columns(envs, ["phi"])


@pytest.mark.parametrize(
    ("mode", "kind"), [(NEXT_STEP, "native"), (SAME_STEP, "native"), (SAME_STEP, "sync"), (DISABLED, "sync")]
)
def test_it_is_what_the_environment_returned_before(mode: Any, kind: str) -> None:
    def made() -> Any:
        if kind == "native":
            return gym.make_vec(POLE, 5, autoreset_mode=mode, max_episode_steps=9)
        vector_kwargs = {"autoreset_mode": mode}
        return gym.make_vec(POLE, 5, vectorization_mode="sync", vector_kwargs=vector_kwargs, max_episode_steps=9)

    plain, envs = made(), FrameStack(made(), stack_observations=3, observe_reward=True)
    observations, _ = plain.reset(seed=4)
    histories = [[row] * 3 for row in observations]
    rewards, ended = np.zeros(5), np.zeros(5, np.bool_)
    seen, _ = envs.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(60):
        for i in range(5):
            np.testing.assert_array_equal(seen[i], np.concatenate([*histories[i], [np.float32(rewards[i])]]))
        assert seen in envs.observation_space
        actions = rng.integers(0, 2, 5)
        seen, *results = envs.step(actions)
        observations, rewards, *flags, info = plain.step(actions)
        np.testing.assert_array_equal(results[0], rewards)
        begun, done = ended, flags[0] | flags[1]
        if mode == SAME_STEP:
            for i in np.flatnonzero(done):
                last = np.concatenate([info["final_obs"][i], *histories[i][:2], [np.float32(rewards[i])]])
                np.testing.assert_array_equal(results[-1]["final_obs"][i], last)
            begun = done
        if mode == DISABLED:
            begun = done
            if done.any():
                observations, _ = plain.reset(options={"reset_mask": done})
                seen, _ = envs.reset(options={"reset_mask": done})
        ended = done if mode == NEXT_STEP else ended
        rewards = np.where(begun, 0.0, rewards)
        histories = [
            [row] * 3 if new else [row, *history[:2]]
            for row, new, history in zip(observations, begun, histories, strict=True)
        ]


def test_what_a_policy_was_given_does_not_change_later() -> None:
    envs = counters(NEXT_STEP, stack_observations=2)
    first, _ = envs.reset(seed=1)
    kept = first.copy()
    second = envs.step(np.zeros(1, np.int64))[0]
    second[:] = 9.0  # as Gymnasium's wrappers may
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(envs.step(np.zeros(1, np.int64))[0], [[1, 2, 1, 1]])


@pytest.mark.parametrize("count", [0, 1001, 2.0])
def test_an_impossible_number_of_observations_is_refused(count: Any) -> None:
    with pytest.raises(ConfigError, match="stack_observations: expected a whole number from 1 to 1000, got"):
        counters(NEXT_STEP, stack_observations=count, observe_reward=True)


def test_observations_that_are_no_flat_box_are_refused() -> None:
    class Whole(Counter):
        observation_space = gym.spaces.Box(0, 9, (2,), np.int64)  # type: ignore[assignment]  # as an environment may

    with pytest.raises(ConfigError, match="FrameStack: expected a flat Box of floating-point numbers"):
        FrameStack(gym.vector.SyncVectorEnv([Whole]), observe_reward=True)


def test_policies_see_noise_in_what_was_before_and_the_draw_last() -> None:
    rules = gym_dr.Randomization({"obs_bias": gym_dr.Uniform(0.5, 1.0)})
    envs = gym.make_vec(POLE, 2, randomization="none")
    shown = wrap_for_policy(envs, rules, {"obs_bias": (0.0, 1.0)}, frames=Frames(stack_observations=2), span=1.0)
    observations, info = shown.reset(seed=1)
    assert observations.shape == (2, 9)
    np.testing.assert_array_equal(observations[:, :4], observations[:, 4:8])
    np.testing.assert_allclose(observations[:, 8], 2 * info["params"]["obs_bias"] - 1, rtol=1e-6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> gym_dr.Run:
    folder = tmp_path_factory.mktemp("history") / "run"
    return gym_dr.train(
        "ppo",
        env=POLE,
        run_dir=folder,
        updates=2,
        num_envs=4,
        rollout_steps=32,
        minibatches=2,
        hidden_sizes=(8,),
        memory="gru",
        memory_size=4,
        eval_episodes=2,
        stack_observations=3,
        observe_reward=True,
        progress=False,
    )


def test_evaluation_shows_a_policy_the_past_as_in_its_training(run: gym_dr.Run) -> None:
    assert run.evaluation is not None
    assert run.config.settings.stack_observations == 3
    assert len(run.evaluation.episodes) == 4


def test_a_policy_that_gets_too_little_says_how_to_wrap_the_environment(run: gym_dr.Run) -> None:
    with pytest.raises(gym_dr.errors.GymDrError, match=r"\(N, 13\).*FrameStack"):
        run.policy()(np.zeros((1, 4), np.float32), np.ones(1, np.bool_))


def test_a_log_has_the_observations_of_the_environment_alone(run: gym_dr.Run, tmp_path: Path) -> None:
    folder = gym_dr.record(run, episodes=2, output=tmp_path / "log", format="npz", progress=False)
    for episode in read_log(folder):
        assert episode.observations.shape[1:] == (4,)
        assert len(np.unique(episode.observations[1:-1], axis=0)) > 2


def test_a_run_that_was_cut_goes_on_with_the_same_past(tmp_path: Path) -> None:
    given = {"stack_observations": 2, "observe_reward": True, "env": POLE, "num_envs": 2, "eval_episodes": 0}
    small = {"updates": 3, "rollout_steps": 32, "minibatches": 2, "hidden_sizes": (8,), "checkpoint_every": 2}
    whole = train_or_resume(tmp_path / "whole", "ppo", **given, **small)
    cut = train_or_resume(tmp_path / "cut", "ppo", cut_at=2, **given, **small)
    train_or_resume(tmp_path / "cut", "ppo")
    assert (cut.path / "actor.pt").read_bytes() == (whole.path / "actor.pt").read_bytes()


@pytest.mark.parametrize(("stacked", "size"), [({}, 4), ({"stack_observations": 2, "observe_reward": True}, 9)])
def test_a_teacher_may_observe_a_sensor_that_does_not_fail_for_its_student(
    stacked: dict[str, Any], size: int, tmp_path: Path
) -> None:
    given = {**stacked, "env": POLE, "num_envs": 2, "eval_episodes": 0}
    small = {"updates": 1, "rollout_steps": 32, "minibatches": 2, "hidden_sizes": (8,), "progress": False}
    rules = {"obs_drop:theta": (0.0, 0.5)}
    gym_dr.train("ppo", run_dir=tmp_path / "teacher", context="observation", randomize=rules, **given, **small)
    teacher = str(tmp_path / "teacher")
    student = gym_dr.train("distill", run_dir=tmp_path / "student", teacher=teacher, **given, **small)
    assert student.policy()(np.zeros((1, size), np.float32)).shape == (1,)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda envs: FrameStack(envs, stack_observations=2),
        lambda envs: gym_dr.DrawContext(envs, "observation"),
    ],
)
def test_observations_that_show_the_past_or_the_draw_are_refused(wrap: Any) -> None:
    envs = wrap(gym.make_vec(POLE, 2))
    with pytest.raises(ConfigError, match="FrameStack: expected"):
        FrameStack(envs, observe_reward=True)


def test_a_reward_that_is_not_finite_is_called_a_reward() -> None:
    class Broken(Counter):
        def step(self, action: Any) -> Any:
            observation, _, *rest = super().step(action)
            return observation, math.nan, *rest

    envs = RequireFinite(FrameStack(gym.vector.SyncVectorEnv([Broken]), observe_reward=True))
    envs.reset(seed=1)
    with pytest.raises(NotFiniteError, match="in its reward"):
        envs.step(np.zeros(1, np.int64))


def test_a_reward_that_is_too_large_for_an_observation_is_the_largest_there_is() -> None:
    class Rich(Counter):
        def step(self, action: Any) -> Any:
            observation, _, *rest = super().step(action)
            return observation, 1e39, *rest

    envs = RequireFinite(FrameStack(gym.vector.SyncVectorEnv([Rich]), observe_reward=True))
    envs.reset(seed=1)
    observations, rewards, *_ = envs.step(np.zeros(1, np.int64))
    assert (observations[0, 2], rewards[0]) == (np.finfo(np.float32).max, 1e39)


class Arms(gym.Env[Any, Any]):
    """Two arms, one of which pays: which one, only rewards say. An episode has eight pulls."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.pays, self.t = int(self.np_random.integers(2)), 0
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.zeros(1, np.float32), float(action == self.pays), self.t == 8, False, {}


@pytest.mark.parametrize("shown", [True, False])
def test_with_the_reward_a_memory_finds_the_arm_that_pays(shown: bool) -> None:
    config = PPOConfig(
        updates=40 if shown else 10, rollout_steps=36, minibatches=4, epochs=4, sequence_length=36, hidden_sizes=(8,),
        lr=0.01, memory="gru", memory_size=8, entropy_coef=0.01,
    )  # fmt: skip
    session = FakeSession("", num_envs=16)

    def make() -> Any:
        envs = gym.vector.SyncVectorEnv([Arms] * 16)
        return FrameStack(envs, observe_reward=True) if shown else envs

    session._make = make
    ppo.train(session, config)
    mean = np.mean([episode.episode_return for episode in session.episodes[-200:]])
    # the first pull is a guess: 7.5 of 8 at best; without rewards each pull is, so 4
    assert mean > 7.0 if shown else abs(mean - 4.0) < 0.7
