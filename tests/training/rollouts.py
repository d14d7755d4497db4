"""Rollouts that tests learn from, made without an environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gym_dr.training import epochs
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.batch import Batch, Sequences
from gym_dr.training.behavior import Behavior, CompiledBehavior, allocate_steps
from gym_dr.training.networks import Actor
from gym_dr.training.rollout import Rollout


def known_rollout() -> Rollout:
    """Two steps, two sub-environments; the second one's second step is a reset."""
    return Rollout(
        observations=torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]),
        actions=torch.tensor([[0, 1], [1, 0]]),
        log_probs=torch.tensor([[-0.25, -0.5], [-0.75, -1.0]]),
        rewards=np.array([[1.0, 2.0], [3.0, 0.0]], dtype=np.float32),
        terminated=np.array([[False, True], [False, False]]),
        truncated=np.zeros((2, 2), dtype=bool),
        valid=np.array([[True, True], [True, False]]),
    )


def cart_pole_rollout() -> Rollout:
    """Four steps of two sub-environments, whose episodes terminate with the last."""
    torch.manual_seed(0)
    false = np.zeros((4, 2), dtype=bool)
    terminated = false.copy()
    terminated[-1] = True
    return Rollout(
        observations=torch.randn(5, 2, 4),
        actions=torch.randint(2, (4, 2)),
        log_probs=torch.full((4, 2), -0.5),
        rewards=np.ones((4, 2), dtype=np.float32),
        terminated=terminated,
        truncated=false,
        valid=~false,
    )


def acted(behavior: Behavior, observations: Any, noise: Any, starts: Any = None) -> tuple[Any, ...]:
    """One step, within an episode unless it ``starts``.

    Returns:
        Actions as the network outputs them, their log-probabilities, the states of memory before the step, and actions
        as environments take them.
    """
    steps = allocate_steps(behavior, 1, observations)
    starts = np.zeros(len(observations), np.bool_) if starts is None else starts
    env_actions = behavior.act(steps, 0, noise, starts)
    actions = steps.raw_actions if steps.raw_actions.shape[2] else steps.discrete
    return actions[0], steps.log_probs[0], steps.states[0], env_actions


def chosen_by(actor: Actor, rollout: Rollout) -> Rollout:
    """A rollout with the log-probabilities that its actions have under an actor without memory."""
    with torch.no_grad():
        log_probs, _ = actor.log_prob_and_entropy(
            rollout.observations[:-1].flatten(0, 1), rollout.actions.flatten(0, 1)
        )
    return replace(rollout, log_probs=log_probs.view(rollout.valid.shape))


def batch_of(agent: ActorCritic, rollout: Rollout, config: Any) -> Batch | Sequences:
    """What an agent would learn from a rollout if its actor had chosen the actions."""
    return learned_from(agent, chosen_by(agent.actor, rollout), config)


def learned_as_torch_does(
    module: Any, make: Callable[[], tuple[ActorCritic, Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, float]]:
    """Learns twice with compiled epochs and with torch's, and compares losses, networks and Adam's moments.

    Args:
        module: Of the algorithm.
        make: Makes an agent, what it learns from and the configuration.

    Returns:
        Torch's losses.
    """
    found = []
    for kinds in ((CompiledBehavior,), ()):
        agent, batch, config = make()
        monkeypatch.setattr(epochs, "CompiledBehavior", kinds)
        found.append(([module.learn(agent, batch, config) for _ in range(2)], agent.state()))
    (mine, state), (theirs, expected) = found
    for ours, torchs in zip(mine, theirs, strict=True):
        assert ours == pytest.approx(torchs, rel=1e-3, abs=1e-5)
    for part in expected.keys() & {"actor", "critic", "critic_memory", "predictor"}:
        torch.testing.assert_close(state[part], expected[part], rtol=1e-3, atol=1e-4)
    for part in ("actor_optimizer", "critic_optimizer"):
        torch.testing.assert_close(state[part]["state"], expected[part]["state"], rtol=1e-2, atol=1e-5)
    losses: list[dict[str, float]] = theirs
    return losses


def learned_from(agent: ActorCritic, rollout: Rollout, config: Any) -> Batch | Sequences:
    """What an agent learns from in training."""
    return agent.batch_of(agent.recall(rollout), config)
