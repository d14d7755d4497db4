"""Epochs in compiled code, for small networks on the CPU; ``ppo.py`` and ``distill.py`` have the torch versions.

Weights and optimizer state are copied from torch before each update's epochs and back afterwards, so all other code
sees only torch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gym_dr.compiled import gradients
from gym_dr.compiled.gradients import Learner, Remembered, Settings, Transitions
from gym_dr.compiled.gru import AT_ONCE, TrainedMemory
from gym_dr.compiled.network import LANES, Optimizer, Trained
from gym_dr.compiled.structs import Job, Struct
from gym_dr.errors import NotFiniteError, TrainingError
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.batch import Batch, Sequences
from gym_dr.training.behavior import CompiledBehavior
from gym_dr.training.config import PPOConfig, RolloutConfig
from gym_dr.training.memory import PLAIN
from gym_dr.training.networks import STD_FLOOR, CategoricalActor, linear_layers

Epoch = Callable[[Sequence[Tensor | slice]], Sequence[Sequence[float]]]  # rows of minibatches -> losses of each


@contextlib.contextmanager
def compiled_epochs(agent: ActorCritic, batch: Batch | Sequences, config: RolloutConfig) -> Iterator[Epoch]:
    """Runs epochs over a batch in compiled code.

    Args:
        agent: With a ``CompiledBehavior``; its weights and optimizers are up to date after the block.
        batch: The steps to learn from.
        config: Defines the losses.

    Yields:
        A function that runs one epoch: rows of minibatches -> losses of each.
    """
    threads, remembers = agent.threads, isinstance(batch, Sequences)
    largest = -(-len(batch) // min(config.minibatches, len(batch)))
    sizes = {"threads": threads.count, "shares": gradients.shares_of.py_func(largest, remembers)}
    predicting = [] if agent.predictor is None else [agent.predictor]
    actor = _Copy(agent.actor.network, [agent.actor, *predicting], agent.actor_optimizer, sizes)
    remembering = [] if agent.critic_memory is None else [agent.critic_memory]
    critic = _Copy(agent.critic, [agent.critic, *remembering], agent.critic_optimizer, sizes)
    ranges = gradients.ranges_of.py_func(actor.trained) + gradients.ranges_of.py_func(critic.trained)
    learner = Learner(
        actor.trained,
        critic.trained,
        *_memories(agent, batch),
        data=_transitions(agent, batch, config),
        settings=_settings(agent, config),
        rows=np.zeros(len(batch), np.int64),
        now=np.zeros(4, np.int64),
        scale=np.array([0.0, 0.0, 0.0, actor.steps]),
        found=np.zeros((2 * sizes["shares"], gradients.LOSSES)),
        lanes=np.zeros((ranges, LANES)),
        norms=np.zeros(2),
    )
    shared = Struct(learner)
    job = _job(gradients.learn_sequences if remembers else gradients.learn_rows, shared.kind)
    parts = min(config.minibatches, len(batch))
    whole = gradients.Epoch(
        learner=learner,
        address=shared.address,
        pool=threads.pool,
        job=job.address,
        threads=threads.count,
        starts=np.zeros(parts + 1, np.int64),
        losses=np.zeros((parts, gradients.LOSSES)),
        result=np.zeros(2, np.int64),
    )
    struct = Struct(whole)
    epoch_job = _job(gradients.learn_epoch, struct.kind)

    def epoch(parts: Sequence[Tensor | slice]) -> Sequence[Sequence[float]]:
        every = np.arange(len(batch))
        pieces = [every[part.numpy() if isinstance(part, Tensor) else part] for part in parts]
        np.concatenate(pieces, out=learner.rows)
        whole.starts[:] = np.cumsum([0, *map(len, pieces)])
        threads.start()
        threads.run(epoch_job, struct, 1)
        actor.steps = critic.steps = int(learner.scale[3])
        if whole.result[0] == gradients.BAD_GRADIENT:
            raise NotFiniteError("The loss or a gradient is not finite. Lower the learning rate or set max_grad_norm.")
        if whole.result[0] == gradients.BAD_WEIGHT:
            raise TrainingError("A weight is not finite after the update. Lower the learning rate.")
        losses: Sequence[Sequence[float]] = whole.losses.tolist()
        return losses

    try:
        yield epoch
    finally:
        actor.copy_back()
        critic.copy_back()


@functools.cache
def _job(function: Any, kind: Any) -> Job:
    return Job(function, kind, "gradient steps of small networks")


def _settings(agent: ActorCritic, config: RolloutConfig) -> Settings:
    ppo = config if isinstance(config, PPOConfig) else None  # others do not clip
    return Settings(
        kind=cast(CompiledBehavior, agent.behavior).policy.kind,
        floor=np.float32(STD_FLOOR),
        clip_range=np.float32(ppo.clip_range if ppo else 0.0),
        value_clip=np.float32(ppo.value_clip if ppo else 0.0),
        entropy_coef=np.float32(agent.entropy_coef),
        normalize_advantages=ppo is not None and ppo.normalize_advantages,
        actor_lr=agent.actor_lr,
        critic_lr=agent.critic_lr,
        prediction_coef=np.float32(agent.prediction_coef),
        optimizer=Optimizer(
            adam=isinstance(agent.actor_optimizer, torch.optim.Adam),
            eps=config.optimizer_eps,
            max_grad_norm=config.max_grad_norm,
        ),
    )


def _transitions(agent: ActorCritic, batch: Batch | Sequences, config: RolloutConfig) -> Transitions:
    """The arrays that compiled code learns from, flat in time-major order, with normalized observations."""
    first = agent.observation_moments if agent.observation_moments is not None else nn.Identity()
    discrete = isinstance(agent.actor, CategoricalActor)
    log_probs = _flat(batch.log_probs, batch)
    return Transitions(
        observations=_flat(first(batch.observations), batch),
        critic_inputs=_flat(first(batch.critic_inputs), batch),
        discrete=_flat(batch.actions, batch) if discrete else np.empty(0, np.int64),
        raw_actions=np.empty((0, 0), np.float32) if discrete else _flat(batch.actions, batch),
        log_probs=log_probs if isinstance(config, PPOConfig) else np.zeros_like(log_probs),
        advantages=_flat(batch.advantages, batch),
        returns=_flat(batch.returns, batch),
        labels=np.empty((0, 0), np.float32) if batch.labels is None else _flat(batch.labels, batch),
        kept=_flat(batch.kept, batch) if isinstance(batch, Sequences) else np.ones(len(batch), np.bool_),
        length=len(batch.kept) if isinstance(batch, Sequences) else 1,
        remembered=_remembered(batch),
    )


def _remembered(batch: Batch | Sequences) -> Remembered:
    nothing = np.empty((0, 0), np.float32)
    if isinstance(batch, Batch):
        return Remembered(nothing, np.empty(0, np.bool_), nothing, nothing, nothing)
    states = batch.states[:, :, :0] if batch.critic_states is None else batch.critic_states
    return Remembered(
        previous=_flat(batch.previous, batch),
        starts=_flat(batch.starts, batch),
        actor_states=_flat(batch.states, batch),
        critic_states=_flat(states, batch),
        draws=_flat(batch.observations[..., :0] if batch.draws is None else batch.draws, batch),
    )


def _flat(steps: Tensor, batch: Batch | Sequences) -> npt.NDArray[Any]:
    """Steps ``(L, S, ...)`` of sequences as ``(L * S, ...)``; a batch is flat already."""
    return np.asarray((steps.flatten(0, 1).contiguous() if isinstance(batch, Sequences) else steps).numpy())


def _memories(agent: ActorCritic, batch: Batch | Sequences) -> tuple[TrainedMemory, TrainedMemory]:
    """Working memory for sequences through the memories of actor and critic."""
    made = []
    for memory in (agent.actor.memory, agent.critic_memory):
        inputs, units, length = 0, 0, 0
        if memory is not None and isinstance(batch, Sequences):
            inputs, units, length = memory.unit.input_size, memory.size, len(batch.kept)
        size = {"inputs": inputs, "units": units, "length": length}
        made.append(TrainedMemory.allocate(**size, sequences=AT_ONCE, threads=agent.threads.count))
    return made[0], made[1]


class _Copy:
    """A copy of a network's weights and its optimizer's moments for compiled code."""

    def __init__(
        self,
        network: nn.Sequential,
        modules: Sequence[nn.Module],
        optimizer: torch.optim.Optimizer,
        sizes: dict[str, int],
    ) -> None:
        """Copies the layers of ``network``, then the other parameters of ``modules``, one of which contains it."""
        layers = linear_layers(network)
        layered = [weights for layer in layers for weights in (layer.weight, layer.bias)]
        every = [weights for module in modules for weights in module.parameters()]
        rest = [weights for weights in every if all(weights is not other for other in layered)]
        self._parameters, self._optimizer = [*layered, *rest], optimizer
        self.trained = Trained.allocate(
            sizes=[layers[0].in_features, *(layer.out_features for layer in layers)],
            tanh=any(isinstance(layer, nn.Tanh) for layer in network),
            extra=sum(weights.numel() for weights in rest),
            **sizes,
        )
        self._moments = {"exp_avg": self.trained.first, "exp_avg_sq": self.trained.second}
        if not isinstance(optimizer, torch.optim.Adam):
            self._moments = {"square_avg": self.trained.second}
        self.steps = 0
        with torch.no_grad():
            torch.cat(
                [weights.flatten() for weights in self._parameters], out=torch.from_numpy(self.trained.network.weights)
            )
            if known := [optimizer.state[weights] for weights in self._parameters if optimizer.state[weights]]:
                self.steps = int(known[0]["step"])
                for name, memory in self._moments.items():
                    torch.cat([state[name].flatten() for state in known], out=torch.from_numpy(memory))

    def copy_back(self) -> None:
        """Copies weights and moments back to torch."""
        at = 0
        with torch.no_grad():
            for weights in self._parameters:
                here = slice(at, at := at + weights.numel())
                weights.copy_(torch.from_numpy(self.trained.network.weights[here]).view_as(weights))
                self._optimizer.state[weights] = {
                    "step": torch.tensor(float(self.steps), **PLAIN),
                    **{
                        name: torch.from_numpy(memory[here].copy()).view_as(weights)
                        for name, memory in self._moments.items()
                    },
                }
