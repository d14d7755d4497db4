"""PPO's epochs in compiled code, for small networks on the CPU; ``ppo.py`` has the torch version.

Weights and optimizer state are copied from torch before each update's epochs and back afterwards, so checkpoints,
policies and all other code see only torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from gym_dr.compiled import gradients
from gym_dr.compiled.gradients import Settings, Transitions
from gym_dr.compiled.network import Trained
from gym_dr.errors import NotFiniteError, TrainingError
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.batch import Batch
from gym_dr.training.behavior import CompiledBehavior
from gym_dr.training.config import PPOConfig
from gym_dr.training.networks import STD_FLOOR, linear_layers

Epoch = Callable[[Sequence[Tensor | slice]], Sequence[Sequence[float]]]  # minibatches' rows -> losses of each


@contextlib.contextmanager
def compiled_epochs(agent: ActorCritic, batch: Batch, log_probs: Tensor, config: PPOConfig) -> Iterator[Epoch]:
    """Runs epochs over a batch in compiled code.

    Args:
        agent: Must have a ``CompiledBehavior``; its weights and optimizers are up to date when the block ends.
        batch: The steps to learn from.
        log_probs: Log-probabilities of their actions under the policy that chose them, shape ``(B,)``.
        config: Defines the losses.

    Yields:
        A function that runs one epoch: rows of minibatches -> losses of each.
    """
    actor = _Copy(agent.actor.network, agent.actor, agent.actor_optimizer)
    critic = _Copy(agent.critic, agent.critic, agent.critic_optimizer)
    first = agent.observation_moments if agent.observation_moments is not None else nn.Identity()
    discrete = batch.actions.ndim == 1
    data = Transitions(
        observations=first(batch.observations).numpy(),
        critic_inputs=first(batch.critic_inputs).numpy(),
        choices=batch.actions.numpy() if discrete else np.empty(0, np.int64),
        raw_actions=np.empty((0, 0), np.float32) if discrete else batch.actions.numpy(),
        log_probs=log_probs.numpy(),
        advantages=batch.advantages.numpy(),
        returns=batch.returns.numpy(),
    )
    settings = Settings(
        kind=cast(CompiledBehavior, agent.behavior).policy.kind,
        floor=np.float32(STD_FLOOR),
        clip_range=np.float32(config.clip_range),
        value_clip=np.float32(config.value_clip),
        entropy_coef=np.float32(agent.entropy_coef),
        normalize_advantages=config.normalize_advantages,
        actor_lr=float(agent.actor_optimizer.param_groups[0]["lr"]),
        critic_lr=float(agent.critic_optimizer.param_groups[0]["lr"]),
        eps=config.optimizer_eps,
        max_grad_norm=config.max_grad_norm,
    )

    def epoch(parts: Sequence[Tensor | slice]) -> Sequence[Sequence[float]]:
        every = np.arange(len(batch))
        pieces = [every[part.numpy() if isinstance(part, Tensor) else part] for part in parts]
        starts = np.cumsum([0, *map(len, pieces)])
        losses = np.zeros((len(pieces), gradients.LOSSES), np.float64)
        arguments = actor.trained, critic.trained, data, np.concatenate(pieces), starts, actor.steps, settings, losses
        end, made = cast(Any, gradients.ppo_epoch)(*arguments)
        actor.steps, critic.steps = actor.steps + made, critic.steps + made
        if end == gradients.BAD_GRADIENT:
            raise NotFiniteError("The loss or a gradient is not finite. Lower the learning rate or set max_grad_norm.")
        if end == gradients.BAD_WEIGHT:
            raise TrainingError("A weight is not finite after the update. Lower the learning rate.")
        found: list[list[float]] = losses.tolist()
        return found

    try:
        yield epoch
    finally:
        actor.copy_back()
        critic.copy_back()


class _Copy:
    """A copy of a network's weights and Adam moments for compiled code."""

    def __init__(self, network: nn.Sequential, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Copies the layers of ``network``, then the other parameters of ``module``, which contains it."""
        layers = linear_layers(network)
        layered = [weights for layer in layers for weights in (layer.weight, layer.bias)]
        rest = [weights for weights in module.parameters() if all(weights is not other for other in layered)]
        self._parameters, self._optimizer = [*layered, *rest], optimizer
        self.trained = Trained.allocate(
            sizes=[layers[0].in_features, *(layer.out_features for layer in layers)],
            tanh=any(isinstance(layer, nn.Tanh) for layer in network),
            extra=sum(weights.numel() for weights in rest),
        )
        self.steps = 0
        with torch.no_grad():
            torch.cat(
                [weights.flatten() for weights in self._parameters], out=torch.from_numpy(self.trained.network.weights)
            )
            if known := [optimizer.state[weights] for weights in self._parameters if optimizer.state[weights]]:
                self.steps = int(known[0]["step"])
                for name, memory in self._moments.items():
                    torch.cat([state[name].flatten() for state in known], out=torch.from_numpy(memory))

    @property
    def _moments(self) -> dict[str, Any]:
        return {"exp_avg": self.trained.first, "exp_avg_sq": self.trained.second}

    def copy_back(self) -> None:
        """Copies weights and moments back to torch."""
        at = 0
        with torch.no_grad():
            for weights in self._parameters:
                here = slice(at, at := at + weights.numel())
                weights.copy_(torch.from_numpy(self.trained.network.weights[here]).view_as(weights))
                self._optimizer.state[weights] = {
                    "step": torch.tensor(float(self.steps)),
                    **{
                        name: torch.from_numpy(memory[here].copy()).view_as(weights)
                        for name, memory in self._moments.items()
                    },
                }
