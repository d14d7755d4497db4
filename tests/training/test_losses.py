from __future__ import annotations

import pytest
import torch

from gym_dr.training.losses import normalize, policy_gradient_loss, value_loss

LOG_PROBS = torch.tensor([-1.0, -2.0, -0.5])
WEIGHTS = torch.tensor([3.0, -1.0, 2.0])


def test_the_policy_gradient_loss_is_the_negative_mean_of_log_probability_times_weight() -> None:
    # products -3, 2, -1: their sum is -2
    assert policy_gradient_loss(LOG_PROBS, WEIGHTS).item() == pytest.approx(2 / 3)


def test_of_complete_episodes_it_is_the_negative_sum_per_episode() -> None:
    assert policy_gradient_loss(LOG_PROBS, WEIGHTS, episodes=2).item() == pytest.approx(1.0)


def test_its_gradient_makes_actions_likelier_in_proportion_to_their_weights() -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    policy_gradient_loss(log_probs, WEIGHTS).backward()
    assert log_probs.grad is not None
    assert log_probs.grad.tolist() == pytest.approx([-1.0, 1 / 3, -2 / 3])


def test_the_value_loss_is_the_mean_squared_error() -> None:
    # errors 1, 2 and 0: (1 + 4 + 0) / 3
    assert value_loss(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 4.0, 3.0])).item() == pytest.approx(5 / 3)


def test_normalized_advantages_have_mean_0_and_deviation_1() -> None:
    advantages = normalize(WEIGHTS)
    assert advantages.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert advantages.std(correction=0).item() == pytest.approx(1.0, rel=1e-5)


def test_advantages_that_are_equal_become_0() -> None:
    assert normalize(torch.full((3,), 7.0)).tolist() == [0.0, 0.0, 0.0]
