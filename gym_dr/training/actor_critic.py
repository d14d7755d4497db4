"""The agent of algorithms that learn from rollouts: networks, optimizers, schedules and saved state.

Each algorithm's loop is in a file of its own; start with ``a2c.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from gymnasium.vector import VectorEnv
from torch import Tensor, nn

from gym_dr.errors import CheckpointError, NotFiniteError, TrainingError
from gym_dr.randomization.context import context_ranges
from gym_dr.renamed import old_names
from gym_dr.training.api import Policy, seed_for
from gym_dr.training.batch import critic_inputs
from gym_dr.training.behavior import Behavior, make_behavior, trained_policy
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
from gym_dr.training.normalization import NormalizeObservations, NormalizeRewards
from gym_dr.training.rollout import Rollout
from gym_dr.wrappers.vector_params import spaces_of

MakeOptimizer = Callable[..., torch.optim.Optimizer]  # parameters, lr=... -> optimizer


class ActorCritic:
    """An actor and a critic that share no weights, an optimizer for each, and the generator that samples actions.

    The critic may observe the draw even when the actor does not (Pinto et al. 2018, "Asymmetric Actor Critic for
    Image-Based Robot Learning"): it is only needed in training, where the draw is known.

    Attributes:
        critic_context: The k parameters that the critic observes besides the observation.
        entropy_coef: Current weight of the entropy bonus, set by ``anneal``.
        behavior: Chooses the actions in rollouts.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        seed: int,
        device: str,
        *,
        hidden_sizes: Sequence[int],
        make_optimizer: MakeOptimizer,
        actor_lr: float,
        critic_lr: float,
        entropy_coef: float,
        max_grad_norm: float,
        activation: str = "tanh",
        init: str = "torch",
        continuous: type[GaussianActor] | type[TwoHeadedGaussianActor] = GaussianActor,
        critic_context: bool = False,
        normalize_observations: bool = False,
        reward_scale: float = 1.0,
        reward_moments: NormalizeRewards | None = None,
    ) -> None:
        """Builds networks for the environment's spaces on ``device``. The seed determines weights and actions.

        ``make_optimizer`` makes the optimizer of each network, ``continuous`` is the actor for continuous actions,
        ``reward_moments`` normalizes rewards, and ``A2CConfig`` documents the other keywords.

        Raises:
            ConfigError: The networks do not support the spaces.
            RandomizationError: ``critic_context`` is set, but nothing is randomized.
        """
        self.critic_context = context_ranges(*spaces_of(envs), span=CONTEXT_SPAN) if critic_context else ()
        inputs = observation_size(envs) + len(self.critic_context)
        with torch.random.fork_rng(devices=[]):  # torch initializes layers from its global generator
            torch.manual_seed(seed_for(seed, stream=2, index=0))
            self.actor = make_actor(envs, hidden_sizes, activation, continuous, normalize_observations)
            self.critic = mlp(inputs, hidden_sizes, 1, activation)
            if init == "orthogonal":
                orthogonal(self.actor.network, last_gain=0.01)  # all actions start equally likely
                orthogonal(self.critic, last_gain=1.0)
        first = self.actor.network[0]
        self.observation_moments = first if isinstance(first, NormalizeObservations) else None
        if self.observation_moments is not None:  # one layer in both networks
            self.critic.insert(0, self.observation_moments)
        self.reward_moments, self._reward_scale = reward_moments, reward_scale
        self.actor.to(device)
        self.critic.to(device)
        self.actor_optimizer = make_optimizer(self.actor.parameters(), lr=actor_lr)
        self.critic_optimizer = make_optimizer(self.critic.parameters(), lr=critic_lr)
        self.entropy_coef = entropy_coef
        self.generator = torch.Generator().manual_seed(seed_for(seed, stream=2, index=1))
        self.behavior = make_behavior(self.actor, self.generator, device, envs.num_envs)
        self._networks = (self.actor, self.actor_optimizer, actor_lr), (self.critic, self.critic_optimizer, critic_lr)
        self._first_entropy_coef, self._max_grad_norm = entropy_coef, max_grad_norm

    @property
    def sampler(self) -> Behavior:
        """The old name of ``behavior``."""
        warnings.warn("ActorCritic.sampler works until gym_dr 0.4: use behavior.", DeprecationWarning, stacklevel=2)
        return self.behavior

    @property
    def reward_scale(self) -> float:
        """Factor on rewards in the losses: constant, or from ``reward_moments`` if rewards are normalized."""
        return self._reward_scale if self.reward_moments is None else 1.0 / self.reward_moments.std().item()

    def value(self, inputs: Tensor) -> Tensor:
        """The critic's values, shape ``(...)``, of ``inputs``, shape ``(..., obs + k)``."""
        values: Tensor = self.critic(inputs).squeeze(-1)
        return values

    def values_of(self, rollout: Rollout) -> Tensor:
        """The critic's values of a rollout's observations, shape ``(T + 1, N)``, without a graph."""
        with torch.no_grad():
            return self.value(critic_inputs(rollout))

    def anneal(self, schedule: str, progress: float) -> None:
        """Sets learning rates and the weight of the entropy bonus for an update.

        Args:
            schedule: "constant", or "linear" to decrease them to 0.
            progress: Fraction of the updates already made, 0 to 1.
        """
        remaining = 1.0 - progress if schedule == "linear" else 1.0
        self.entropy_coef = self._first_entropy_coef * remaining
        for _, optimizer, first_lr in self._networks:
            for group in optimizer.param_groups:
                group["lr"] = first_lr * remaining

    def gradient_step(self, loss: Tensor) -> None:
        """Backpropagates a loss once and steps each optimizer; networks that the loss does not use are unchanged.

        Raises:
            NotFiniteError: The loss or a gradient is not finite; nothing has changed.
            TrainingError: A weight is not finite after the step.
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

    def observe_rewards(self, rollout: Rollout, *, fresh: bool) -> None:
        """Updates the moments of rewards with a rollout; ``fresh`` if all episodes were reset before it."""
        if self.reward_moments is not None:
            ends = rollout.terminated | rollout.truncated
            self.reward_moments.observe(rollout.rewards, ends, rollout.valid, fresh=fresh)

    def observe_observations(self, rollout: Rollout) -> None:
        """Updates the moments of observations with a rollout, after learning from it."""
        if self.observation_moments is not None:
            valid = torch.as_tensor(rollout.valid, device=rollout.observations.device)
            self.observation_moments.update(rollout.observations[:-1][valid])

    def state(self) -> dict[str, Any]:
        """Everything needed to continue training, as tensors."""
        moments = {} if self.reward_moments is None else {"reward_moments": self.reward_moments.state_dict()}
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "actor_optimizer": self.actor_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "generator": self.generator.get_state(),
            **moments,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores the result of ``state``.

        Raises:
            CheckpointError: Something is missing or does not fit.
        """
        _load_weights(self.actor, state, "actor")
        _load_weights(self.critic, state, "critic")
        if self.reward_moments is not None:
            _load_weights(self.reward_moments, state, "reward_moments")
        try:
            self.actor_optimizer.load_state_dict(state["actor_optimizer"])
            self.critic_optimizer.load_state_dict(state["critic_optimizer"])
            self.generator.set_state(state["generator"].cpu())
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"The saved optimizers or generator do not fit this configuration: {error}") from None


def actor_policy(actor: Actor, state: Mapping[str, Any], deterministic: bool = False) -> Policy:
    """The policy of an actor with the weights from ``ActorCritic.state``; see ``trained_policy``.

    Raises:
        CheckpointError: The weights do not fit.
    """
    _load_weights(actor, state, "actor")
    return trained_policy(actor, deterministic=deterministic)


def _finite(tensors: Sequence[Tensor]) -> bool:
    """Whether all numbers are finite; one call for all tensors, since they are small."""
    return bool(torch.isfinite(torch.cat([tensor.detach().flatten() for tensor in tensors])).all())


def _load_weights(network: nn.Module, state: Mapping[str, Any], name: str) -> None:
    try:
        network.load_state_dict(state[name])
    except (KeyError, RuntimeError, TypeError, AttributeError) as error:
        detail = str(error).replace("\n", " ")
        raise CheckpointError(f"The saved weights of {name!r} do not fit this configuration: {detail}") from None


if not TYPE_CHECKING:  # a checker shall report names that do not exist
    __getattr__ = old_names(
        __name__,
        {
            "shared_options": (
                "gym_dr.training.superseded:shared_options",
                "works until gym_dr 0.4: pass options by name, such as actor_lr=config.actor_lr",
            ),
            "train_on_rollouts": (
                "gym_dr.training.superseded:train_on_rollouts",
                "works until gym_dr 0.4: write the loop as gym_dr/training/a2c.py does",
            ),
            "train_agent": (
                "gym_dr.training.superseded:train_agent",
                "works until gym_dr 0.4: write the loop as gym_dr/training/reinforce.py does",
            ),
            "training_update": (
                "gym_dr.training.update:training_update",
                "works until gym_dr 0.4: import it from gym_dr.training.update",
            ),
        },
    )
