"""Rollouts of an environment whose every number is known: it counts its steps and ends after three."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv

from gym_dr import AdaptParams, EpisodeRecord, RecordEpisodes, ResampleParams
from gym_dr.envs.stack import supports
from gym_dr.randomization.context import context_ranges
from gym_dr.training import rollout as rollout_module
from gym_dr.training.behavior import Behavior, CompiledBehavior, TorchBehavior, make_behavior
from gym_dr.training.networks import GaussianActor, TwoHeadedGaussianActor, make_actor
from gym_dr.training.rollout import RolloutCollector, collect_episodes


class Counter(gym.Env[Any, Any]):
    """Observes [episode, step]; reward 10 * episode + step; ends after ``length`` steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int, terminates: bool) -> None:
        self.length, self.terminates = length, terminates
        self.episode = 0

    def _observe(self) -> Any:
        return np.array([self.episode, self.t], dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        over = self.t == self.length
        return self._observe(), 10.0 * self.episode + self.t, over and self.terminates, over and not self.terminates, {}


def behavior_of(envs: Any) -> Behavior:
    """Some policy; the environment takes any action alike."""
    return make_behavior(make_actor(envs, (4,), "relu"), torch.Generator().manual_seed(0), "cpu", envs.num_envs)


BEHAVIOR = behavior_of(SyncVectorEnv([lambda: Counter(3, True)] * 2))


def collector(steps: int) -> RolloutCollector:
    envs = SyncVectorEnv([lambda: Counter(3, True), lambda: Counter(3, False)])
    made = RolloutCollector(envs, steps, "cpu")
    made.reset(seed=0)
    return made


def test_rows_are_the_steps_in_order() -> None:
    # step:      0        1        2 (end)   3 (reset)  4        5
    # obs:     [1,0]    [1,1]    [1,2]     [1,3]      [2,0]    [2,1]  | last row [2,2]
    rollout = collector(6).collect(BEHAVIOR)
    assert rollout.observations[:, 0].tolist() == [[1, 0], [1, 1], [1, 2], [1, 3], [2, 0], [2, 1], [2, 2]]
    assert rollout.rewards[:, 0].tolist() == [11, 12, 13, 0, 21, 22]
    assert rollout.terminated[:, 0].tolist() == [False, False, True, False, False, False]
    assert not rollout.terminated[:, 1].any()
    assert rollout.truncated[:, 1].tolist() == [False, False, True, False, False, False]
    assert rollout.valid[:, 0].tolist() == [True, True, True, False, True, True]


def test_rollouts_continue_where_the_last_one_stopped() -> None:
    halves = collector(3)
    first, second = halves.collect(BEHAVIOR), halves.collect(BEHAVIOR)
    whole = collector(6).collect(BEHAVIOR)
    assert torch.equal(torch.cat([first.observations[:-1], second.observations]), whole.observations)
    assert (np.concatenate([first.valid, second.valid]) == whole.valid).all()
    assert second.valid[0].tolist() == [False, False]  # the end was the last step of the rollout before


def test_reset_begins_new_episodes_everywhere() -> None:
    made = collector(3)
    made.collect(BEHAVIOR)
    made.reset(seed=1)
    rollout = made.collect(BEHAVIOR)
    assert rollout.valid.all()
    assert rollout.observations[0].tolist() == [[2, 0], [2, 0]]


def test_nothing_that_is_collected_has_a_graph() -> None:
    rollout = collector(4).collect(TorchBehavior(BEHAVIOR.actor, torch.Generator(), "cpu", 2))
    assert not rollout.observations.requires_grad
    assert not rollout.actions.requires_grad
    assert not rollout.log_probs.requires_grad


def unequal(records: list[EpisodeRecord]) -> RecordEpisodes:
    """One sub-environment with episodes of 3 steps that terminate, one with 7 that are truncated."""
    return RecordEpisodes(SyncVectorEnv([lambda: Counter(3, True), lambda: Counter(7, False)]), records.append)


def test_every_sub_environment_plays_the_same_number_of_complete_episodes() -> None:
    # two episodes of 7 steps and the reset between them: 15 rows; the fast one is through after 3 + 1 + 3 = 7
    rollout = collect_episodes(unequal([]), BEHAVIOR, 2, seed=0, device="cpu")
    assert rollout.valid.shape == (15, 2)
    assert rollout.valid[:, 0].tolist() == [True] * 3 + [False] + [True] * 3 + [False] * 8
    assert rollout.valid[:, 1].tolist() == [True] * 7 + [False] + [True] * 7
    ends = (rollout.terminated | rollout.truncated) & rollout.valid
    assert ends.sum(axis=0).tolist() == [2, 2]


def test_episodes_beyond_the_quota_are_not_recorded() -> None:
    records: list[EpisodeRecord] = []
    collect_episodes(unequal(records), BEHAVIOR, 2, seed=0, device="cpu")
    assert sorted((r.env_index, r.length) for r in records) == [(0, 3), (0, 3), (1, 7), (1, 7)]


def test_the_next_collection_begins_with_new_episodes_and_counts_again() -> None:
    records: list[EpisodeRecord] = []
    envs = unequal(records)
    collect_episodes(envs, BEHAVIOR, 1, seed=0, device="cpu")
    rollout = collect_episodes(envs, BEHAVIOR, 1, seed=None, device="cpu")
    assert rollout.observations[0, :, 1].tolist() == [0, 0]
    assert len(records) == 4


def test_episodes_may_be_of_any_length() -> None:
    envs = RecordEpisodes(SyncVectorEnv([lambda: Counter(150, True), lambda: Counter(64, False)]), print)
    rollout = collect_episodes(envs, behavior_of(envs), 1, seed=0, device="cpu")
    assert rollout.observations[:, 0, 1].tolist() == list(range(151))
    assert rollout.valid.sum(axis=0).tolist() == [150, 64]
    assert np.flatnonzero(rollout.terminated[:, 0]).tolist() == [149]


def rollouts_of(env_id: str, how: str, monkeypatch: pytest.MonkeyPatch, memory_size: int = 0, **every: int) -> Any:
    """Rollouts of fixed length, then of complete episodes, and everything that was recorded of them.

    ``every`` few steps, draws are made by hand, or by a sampler that has learned.
    """
    records: list[EpisodeRecord] = []
    shown = "observation" if memory_size else "info"
    envs: Any = gym.make_vec(env_id, 5, randomization="wide", max_episode_steps=150, context=shown)
    visible = context_ranges(envs.param_space, envs.randomization)
    if "learn" in every:
        envs = AdaptParams(
            envs, "adr", every=every["learn"], callback=records.append, success=-1e9, cohort=5, bound_episodes=1
        )
    else:
        envs = RecordEpisodes(ResampleParams(envs, **every) if every else envs, records.append)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        kind = TwoHeadedGaussianActor if "Pendulum" in env_id else GaussianActor
        actor = make_actor(envs, (16, 8), "tanh", kind, memory_size=memory_size)
    generator = torch.Generator().manual_seed(4)
    behavior: Any = make_behavior(actor, generator, "cpu", 5)
    assert isinstance(behavior, CompiledBehavior)
    assert supports(envs, "rollout")
    if how == "torch":
        behavior = TorchBehavior(actor, generator, "cpu", 5)
    elif how == "stepwise":
        monkeypatch.setattr(rollout_module, "supports", lambda envs, capability: False)
    collector = RolloutCollector(envs, 300, "cpu", visible)
    collector.reset(seed=5)
    rollouts = [collector.collect(behavior) for _ in range(2)]
    if not memory_size:
        rollouts += [collect_episodes(envs, behavior, 2, seed=6, device="cpu")]
    envs.close()
    return rollouts, records


@pytest.mark.parametrize(
    ("env_id", "how", "options"),
    [
        ("gym_dr/CartPoleDR-v1", "stepwise", {"memory_size": 4}),
        pytest.param("gym_dr/LunarLanderContinuousDR-v3", "stepwise", {"memory_size": 4}, marks=pytest.mark.slow),
        ("gym_dr/InvertedPendulumDR-v5", "stepwise", {"memory_size": 4}),
        pytest.param("gym_dr/LunarLanderDR-v3", "stepwise", {}, marks=pytest.mark.slow),
        ("gym_dr/LunarLanderDR-v3", "torch", {"rollout_steps": 70, "every": 2}),
        ("gym_dr/LunarLanderContinuousDR-v3", "stepwise", {"rollout_steps": 70, "every": 2}),
        pytest.param("gym_dr/LunarLanderContinuousDR-v3", "torch", {}, marks=pytest.mark.slow),
        pytest.param(
            "gym_dr/InvertedPendulumDR-v5", "stepwise", {"rollout_steps": 70, "every": 2}, marks=pytest.mark.slow
        ),
        ("gym_dr/CartPoleDR-v1", "stepwise", {"learn": 110}),
    ],
)
def test_playing_in_one_call_gives_what_stepping_gives(
    env_id: str, how: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    played, played_records = rollouts_of(env_id, "played", monkeypatch, **options)
    stepped, stepped_records = rollouts_of(env_id, how, monkeypatch, **options)
    # by torch a continuous action differs in its last digits, and an episode of a few hundred steps may then go
    # another way: only how it begins can be compared
    close = how == "torch" and "Continuous" in env_id
    for one, other in zip(played[: 1 if close else 3], stepped, strict=False):
        for name in ("observations", "actions", "log_probs", "rewards", "terminated", "truncated", "valid"):
            a, b = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
            if close:
                np.testing.assert_allclose(a[:30], b[:30], atol=1e-3)
            elif how == "torch" and name == "log_probs":
                np.testing.assert_allclose(a, b, atol=1e-5)
            else:
                np.testing.assert_array_equal(a, b)
        if one.context is not None:  # of rollouts of fixed length
            assert torch.equal(one.context[: 30 if close else None], other.context[: 30 if close else None])
        for name in ("states", "previous", "starts") if "memory_size" in options else ():
            assert torch.equal(getattr(one.memory, name), getattr(other.memory, name)), name
    assert len(played_records) > 10
    assert ("learn" in options) == (len({record.version for record in played_records}) > 1)
    if not close:
        assert played_records == stepped_records
