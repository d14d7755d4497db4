from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gym_dr.training.batch import Batch, advantages_of, critic_inputs, make_batch, minibatches
from tests.training.rollouts import known_rollout

VALUES = known_rollout().observations[..., 0]  # a critic that repeats the observation


def batch_of(learned: Any = None, **changes: Any) -> Batch:
    rollout = replace(known_rollout(), learned=learned)
    factors = {"gamma": 0.5, "gae_lambda": 1.0, "reward_scale": 1.0, **changes}
    return make_batch(rollout, VALUES, advantages_of(rollout, VALUES, **factors))


def test_reset_steps_are_left_out() -> None:
    batch = batch_of()
    assert len(batch) == 3
    assert batch.observations.flatten().tolist() == [1.0, 2.0, 3.0]
    assert batch.actions.tolist() == [0, 1, 1]


def test_advantages_and_returns_of_a_known_rollout() -> None:
    # values are the observations; gamma 0.5, lambda 1
    # env 0: delta_1 = 3 + 0.5*5 - 3 = 2.5; delta_0 = 1 + 0.5*3 - 1 = 1.5; A_0 = 1.5 + 0.5*2.5 = 2.75
    # env 1: terminates at once: 2 - 2 = 0
    assert batch_of().advantages.tolist() == [2.75, 0.0, 2.5]
    assert batch_of().returns.tolist() == [3.75, 2.0, 5.5]  # advantage + value


def test_steps_that_count_in_no_loss_are_left_out_and_change_no_advantage() -> None:
    batch = batch_of(learned=np.array([[False, True], [True, True]]))
    assert batch.observations.flatten().tolist() == [2.0, 3.0]
    assert batch.advantages.tolist() == [0.0, 2.5]


def test_rewards_are_scaled_for_the_advantages() -> None:
    # env 0 as above with rewards 0.1 and 0.3: delta_1 = 0.3 + 2.5 - 3 = -0.2; delta_0 = 0.1 + 1.5 - 1 = 0.6
    assert batch_of(reward_scale=0.1).advantages.tolist() == pytest.approx([0.5, -1.8, -0.2])


def test_the_critic_is_given_draws_behind_the_observation_where_a_rollout_has_them() -> None:
    context = torch.full((3, 2, 1), 0.25)
    assert critic_inputs(known_rollout()) is not None
    assert critic_inputs(replace(known_rollout(), context=context))[0].tolist() == [[1.0, 0.25], [2.0, 0.25]]
    assert batch_of().critic_inputs.tolist() == batch_of().observations.tolist()


def test_rows_of_a_batch_belong_together() -> None:
    part = batch_of()[torch.tensor([2, 0])]
    assert part.observations.flatten().tolist() == [3.0, 1.0]
    assert part.actions.tolist() == [1, 0]
    assert part.advantages.tolist() == [2.5, 2.75]
    assert part.returns.tolist() == [5.5, 3.75]


def test_minibatches_use_every_step_once_in_random_order() -> None:
    parts = minibatches(10, 3, torch.Generator().manual_seed(1))
    rows = [row for part in parts if isinstance(part, torch.Tensor) for row in part.tolist()]
    assert [len(part) for part in parts if isinstance(part, torch.Tensor)] == [4, 4, 2]
    assert sorted(rows) == list(range(10))
    assert rows != sorted(rows)


def test_one_minibatch_is_all_steps_as_they_are_and_draws_nothing() -> None:
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    assert torch.arange(4)[minibatches(4, 1, generator)[0]].tolist() == [0, 1, 2, 3]
    assert torch.equal(generator.get_state(), before)
