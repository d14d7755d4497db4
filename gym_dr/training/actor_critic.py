"""What learning from rollouts has in common: actor and critic, their optimizers and schedules, and saved state.

How an algorithm learns is in a file of its own; ``a2c.py`` is one to begin with.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from torch import Tensor, nn

from gym_dr.errors import CheckpointError, NotFiniteError, TrainingError
from gym_dr.randomization.context import context_ranges
from gym_dr.training.api import Policy, Session, seed_for
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.training.networks import (
    Actor,
    GaussianActor,
    TwoHeadedGaussianActor,
    make_actor,
    mlp,
    observation_size,
    orthogonal,
)
from gym_dr.training.sampling import make_sampler, trained_policy
from gym_dr.wrappers.vector_params import spaces_of

MakeOptimizer = Callable[..., torch.optim.Optimizer]  # parameters, lr=... -> optimizer


class ActorCritic:
    """An actor and a critic that share no weights, an optimizer for each, and the generator that samples actions.

    The critic may see the draw that the actor must do without (Pinto et al. 2018, "Asymmetric Actor Critic for
    Image-Based Robot Learning"): it is needed in training only, where the draw is known.

    Attributes:
        critic_context: The parameters that the critic sees besides the observation; k of them.
        entropy_coef: Weight of the entropy bonus, as ``anneal`` has left it.
        sampler: Acts in rollouts.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        seed: int,
        device: str,
        *,
        hidden_sizes: Sequence[int],
        optimizer: MakeOptimizer,
        actor_lr: float,
        critic_lr: float,
        entropy_coef: float,
        max_grad_norm: float,
        activation: str = "tanh",
        init: str = "torch",
        continuous: type[GaussianActor] | type[TwoHeadedGaussianActor] = GaussianActor,
        critic_context: bool = False,
    ) -> None:
        """Builds networks for the environment's spaces, on ``device``; weights and actions follow from the run's seed.

        ``optimizer`` makes the optimizer of each network, ``continuous`` is the actor for continuous actions, and the
        other keywords are the options that ``A2CConfig`` documents.

        Raises:
            ConfigError: The spaces are not of a kind that the networks know.
            RandomizationError: The critic is to see draws, but nothing is randomized.
        """
        self.critic_context = context_ranges(*spaces_of(envs), span=CONTEXT_SPAN) if critic_context else ()
        inputs = observation_size(envs) + len(self.critic_context)
        with torch.random.fork_rng(devices=[]):  # torch initialises layers from its global generator
            torch.manual_seed(seed_for(seed, stream=2, index=0))
            self.actor = make_actor(envs, hidden_sizes, activation, continuous)
            self.critic = mlp(inputs, hidden_sizes, 1, activation)
            if init == "orthogonal":
                orthogonal(self.actor.network, last_gain=0.01)  # all actions are as likely at first
                orthogonal(self.critic, last_gain=1.0)
        self.actor.to(device)
        self.critic.to(device)
        self.actor_optimizer = optimizer(self.actor.parameters(), lr=actor_lr)
        self.critic_optimizer = optimizer(self.critic.parameters(), lr=critic_lr)
        self.entropy_coef = entropy_coef
        self.generator = torch.Generator().manual_seed(seed_for(seed, stream=2, index=1))
        self.sampler = make_sampler(self.actor, self.generator, device, envs.num_envs)
        self._networks = (self.actor, self.actor_optimizer, actor_lr), (self.critic, self.critic_optimizer, critic_lr)
        self._first_entropy_coef, self._max_grad_norm = entropy_coef, max_grad_norm

    def value(self, inputs: Tensor) -> Tensor:
        """The critic's values of ``inputs`` ``(..., obs + k)``, shape ``(...)``."""
        values: Tensor = self.critic(inputs).squeeze(-1)
        return values

    def anneal(self, schedule: str, progress: float) -> None:
        """Sets learning rates and the weight of the entropy bonus for an update.

        Args:
            schedule: "constant", or "linear", by which they fall to 0.
            progress: Share of the updates that have been made, 0 to 1.
        """
        remaining = 1.0 - progress if schedule == "linear" else 1.0
        self.entropy_coef = self._first_entropy_coef * remaining
        for _, optimizer, first_lr in self._networks:
            for group in optimizer.param_groups:
                group["lr"] = first_lr * remaining

    def gradient_step(self, loss: Tensor) -> None:
        """Back-propagates a loss once and takes a step with each optimizer; a network that it does not use stays.

        Raises:
            NotFiniteError: The loss or a gradient is not finite; nothing has changed.
            TrainingError: The step has led to weights that are not finite.
        """
        if not torch.isfinite(loss):
            raise NotFiniteError(
                f"The loss is not finite: {loss.item()}. Lower the learning rate or set max_grad_norm."
            )
        for _, optimizer, _ in self._networks:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        weights = [weight for network, _, _ in self._networks for weight in network.parameters()]
        if not _finite([weight.grad for weight in weights if weight.grad is not None]):
            raise NotFiniteError("A gradient is not finite. Lower the learning rate.")
        for network, optimizer, _ in self._networks:
            if self._max_grad_norm > 0:
                nn.utils.clip_grad_norm_(network.parameters(), self._max_grad_norm)
            optimizer.step()
        if not _finite(weights):
            raise TrainingError("A weight is not finite after the update. Lower the learning rate.")

    def state(self) -> dict[str, Any]:
        """All that training needs to go on, as tensors."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "actor_optimizer": self.actor_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what ``state`` gave.

        Raises:
            CheckpointError: Something is missing or does not fit.
        """
        _load_weights(self.actor, state, "actor")
        _load_weights(self.critic, state, "critic")
        try:
            self.actor_optimizer.load_state_dict(state["actor_optimizer"])
            self.critic_optimizer.load_state_dict(state["critic_optimizer"])
            self.generator.set_state(state["generator"].cpu())
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"The saved optimizers or generator do not fit this configuration: {error}") from None


@contextlib.contextmanager
def training_update(
    session: Session, update: int, agent: ActorCritic, losses: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Around an update: the session guards it, then logs and saves it.

    Args:
        session: What the algorithm was given.
        update: Which update it is.
        agent: What is saved.
        losses: Their names, in the order of the metrics' columns.

    Yields:
        The row of metrics: the block sets ``steps`` and losses at its end. An update that is left out has no steps, and
        NaN for each loss.
    """
    row: dict[str, Any] = {"steps": 0, **dict.fromkeys(losses, math.nan)}
    with session.guard_update(update):
        yield row
    session.log(update, **row)
    session.save(update, agent.state)


def actor_policy(actor: Actor, state: Mapping[str, Any]) -> Policy:
    """What an actor does with the weights that ``ActorCritic.state`` gave; see ``trained_policy``.

    Raises:
        CheckpointError: They do not fit.
    """
    _load_weights(actor, state, "actor")
    return trained_policy(actor)


def _finite(tensors: Sequence[Tensor]) -> bool:
    """Whether all numbers are; one call for all, since the tensors are small."""
    return bool(torch.isfinite(torch.cat([tensor.detach().flatten() for tensor in tensors])).all())


def _load_weights(network: nn.Module, state: Mapping[str, Any], name: str) -> None:
    try:
        network.load_state_dict(state[name])
    except (KeyError, RuntimeError, TypeError, AttributeError) as error:
        detail = str(error).replace("\n", " ")
        raise CheckpointError(f"The saved weights of {name!r} do not fit this configuration: {detail}") from None
