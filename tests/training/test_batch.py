from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gym_dr.training.batch import (
    Batch,
    Sequences,
    advantages_of,
    critic_inputs,
    make_batch,
    make_sequences,
    minibatches,
)
from gym_dr.training.rollout import Rollout, RolloutMemory
from tests.training.rollouts import known_rollout

VALUES = known_rollout().observations[..., 0]  # a critic that repeats the observation


def batch_of(**changes: Any) -> Batch:
    rollout = known_rollout()
    factors = {"gamma": 0.5, "gae_lambda": 1.0, "reward_scale": 1.0, **changes}
    return make_batch(rollout, VALUES, advantages_of(rollout, VALUES, **factors))


@pytest.mark.parametrize(("size", "count", "expected"), [(80, 32, 32), (33, 32, 32), (64, 32, 32), (3, 8, 3)])
def test_there_are_as_many_minibatches_as_asked_for_if_each_gets_a_row(size: int, count: int, expected: int) -> None:
    parts = minibatches(size, count, torch.Generator().manual_seed(1))
    assert sorted(row for part in parts for row in torch.arange(size)[part].tolist()) == list(range(size))
    assert len(parts) == expected  # 80 in parts of equal size would be 27 of 3, and one of 2


def test_reset_steps_are_left_out() -> None:
    batch = batch_of()
    assert len(batch) == 3
    assert batch.observations.flatten().tolist() == [1.0, 2.0, 3.0]
    assert batch.actions.tolist() == [0, 1, 1]
    assert batch.log_probs.tolist() == [-0.25, -0.5, -0.75]


def test_advantages_and_returns_of_a_known_rollout() -> None:
    # values are the observations; gamma 0.5, lambda 1
    # env 0: delta_1 = 3 + 0.5*5 - 3 = 2.5; delta_0 = 1 + 0.5*3 - 1 = 1.5; A_0 = 1.5 + 0.5*2.5 = 2.75
    # env 1: terminates at once: 2 - 2 = 0
    assert batch_of().advantages.tolist() == [2.75, 0.0, 2.5]
    assert batch_of().returns.tolist() == [3.75, 2.0, 5.5]  # advantage + value


def test_rewards_are_scaled_for_the_advantages() -> None:
    # env 0 as above with rewards 0.1 and 0.3: delta_1 = 0.3 + 2.5 - 3 = -0.2; delta_0 = 0.1 + 1.5 - 1 = 0.6
    assert batch_of(reward_scale=0.1).advantages.tolist() == pytest.approx([0.5, -1.8, -0.2])


def test_the_critic_is_given_draws_behind_the_observation_where_a_rollout_has_them() -> None:
    context = torch.full((3, 2, 1), 0.25)
    assert critic_inputs(known_rollout()) is not None
    assert critic_inputs(replace(known_rollout(), context=context))[0].tolist() == [[1.0, 0.25], [2.0, 0.25]]
    assert batch_of().critic_inputs.tolist() == batch_of().observations.tolist()


def test_one_minibatch_is_all_steps_as_they_are_and_draws_nothing() -> None:
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    assert torch.arange(4)[minibatches(4, 1, generator)[0]].tolist() == [0, 1, 2, 3]
    assert torch.equal(generator.get_state(), before)


def sequences_of(length: int = 2, learned: Any = True) -> Sequences:
    """Of four steps of two sub-environments; every number but the values says its sub-environment and its step.

    Step 1 of the first is a reset; so is step 3 of the second.
    """
    numbers = torch.tensor([[10.0, 20.0]]) + torch.arange(5.0)[:, None]  # [[10, 20], [11, 21], ...]
    valid = np.ones((4, 2), bool)
    valid[1, 0] = valid[3, 1] = False
    begins = np.concatenate([[[True, True]], ~valid])
    rollout = Rollout(
        observations=numbers[..., None],
        actions=numbers[:-1].long(),
        log_probs=-numbers[:-1],
        rewards=np.zeros((4, 2), np.float32),
        terminated=np.zeros((4, 2), bool),
        truncated=np.zeros((4, 2), bool),
        valid=valid & learned,
    )
    memory = RolloutMemory(
        starts=torch.from_numpy(begins),
        previous=100.0 * numbers[..., None],
        states=1000.0 * numbers[:-1, :, None],
        critic_states=-1000.0 * numbers[:-1, :, None],
    )
    return make_sequences(rollout, memory, torch.ones(5, 2), numbers[:-1].numpy(), length)


def test_sequences_without_a_step_to_learn_from_are_left_out() -> None:
    masked = np.ones((4, 2), bool)
    masked[:2, 1] = False  # the second sequence; the first one's second step is a reset
    masked[2, 1] = False  # the last one's first step; its second is a reset
    sequences = sequences_of(learned=masked)
    assert sequences.observations[..., 0].tolist() == [[10.0, 12.0], [11.0, 13.0]]
    assert sequences.states[0, :, 0].tolist() == [10_000.0, 12_000.0]
    assert sequences.kept.tolist() == [[True, True], [False, True]]
