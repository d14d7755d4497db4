"""Epochs: in compiled code for small networks on the CPU, with a step of torch's for others.

Weights are copied from torch before each update's epochs and back afterwards, so all other code sees only torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gym_dr.compiled import gradients
from gym_dr.compiled.gradients import Learner, Settings, Transitions
from gym_dr.compiled.gru import AT_ONCE, TrainedMemory
from gym_dr.compiled.network import BLOCK, LANES, MirrorImage, Optimizer, Trained
from gym_dr.compiled.structs import Struct, job_of
from gym_dr.errors import NotFiniteError, TrainingError
from gym_dr.training.batch import Batch, Sequences
from gym_dr.training.behavior import CompiledBehavior
from gym_dr.training.config import AgentConfig, DistillConfig, PPOConfig, RolloutConfig
from gym_dr.training.memory import PLAIN, GRUMemory
from gym_dr.training.networks import STD_FLOOR, CategoricalActor, activation_of, linear_layers

ActorCritic: TypeAlias = Any  # its module imports this one
Epoch = Callable[[Sequence[Tensor | slice]], Sequence[Sequence[float]]]  # rows of minibatches -> losses of each
Step = Callable[[ActorCritic, Batch, Any], Sequence[float]]  # agent, minibatch, configuration -> losses


@contextlib.contextmanager
def epochs(agent: ActorCritic, batch: Batch | Sequences, config: RolloutConfig, step: Step) -> Iterator[Epoch]:
    """Runs epochs over a batch: in compiled code if networks are small, or else with torch.

    Args:
        agent: Its weights and optimizers are up to date after the block.
        batch: The steps to learn from.
        config: Defines the losses.
        step: Makes torch's gradient step of a minibatch; returns its losses.

    Yields:
        A function that runs one epoch: rows of minibatches -> losses of each, those of the prediction last.
    """
    learner = compiled_learner(agent, config, batch.log_probs.numel())
    if learner is None:
        yield lambda parts: [step(agent, agent.unrolled(batch[rows]), config) for rows in parts]
        return
    learner.begin(batch)
    try:
        yield learner.epoch
    finally:
        learner.copy_back()


def compiled_learner(agent: ActorCritic, config: AgentConfig, rows: int) -> CompiledLearner | None:
    """A small agent's, made anew for another configuration or more rows than it has memory for; else None."""
    if not (isinstance(agent.behavior, CompiledBehavior) and isinstance(config, RolloutConfig)):
        return None
    if agent.compiled is None or agent.compiled.config != config or agent.compiled.capacity < rows:
        agent.compiled = CompiledLearner(agent, config, rows)
    return cast(CompiledLearner, agent.compiled)


class CompiledLearner:
    """Networks, moments of their optimizers and a batch, in memory that threads share.

    Attributes:
        config: Defines the losses.
        capacity: The most steps in a batch, and the most observations in a rollout, which comes first.
    """

    def __init__(self, agent: ActorCritic, config: RolloutConfig, capacity: int) -> None:
        """Allocates the memory; weights and steps come with ``begin``."""
        self._agent, self.config, self.capacity = agent, config, capacity
        memory, remembering = agent.actor.memory, agent.critic_memory
        length = 1 if memory is None else config.sequence_length
        largest = -(-capacity // length // min(config.minibatches, capacity // length))
        shares = gradients.shares_of.py_func(largest, memory is not None)
        threads = agent.threads
        sizes = {"threads": threads.count, "shares": shares}
        self._actor = _Copy(
            agent.actor.network,
            agent.actor_optimizer,
            {**sizes, "rows": BLOCK if agent.actor.mirror is None else 2 * BLOCK},
        )
        self._critic = _Copy(agent.critic, agent.critic_optimizer, sizes)
        data = _transitions(agent, config, capacity, length)
        weights = max(each.trained.network.weights.size for each in (self._actor, self._critic))
        columns = max(data.observations.shape[1], data.critic_inputs.shape[1])
        self._learner = Learner(
            actor=self._actor.trained,
            critic=self._critic.trained,
            actor_memory=_working_memory(memory, length, threads.count),
            critic_memory=_working_memory(remembering, length, threads.count),
            data=data,
            settings=_settings(agent, config),
            mirror=agent.actor.mirror or MirrorImage(),
            shift=np.zeros(columns, np.float32),
            spread=np.ones(columns, np.float32),
            every=np.arange(capacity),
            rows=np.zeros(capacity // length, np.int64),
            starts=np.zeros(config.minibatches + 1, np.int64),
            losses=np.zeros((config.minibatches, gradients.LOSSES)),
            calls=np.zeros(4, np.int64),
            now=np.zeros(5, np.int64),
            rates=np.zeros(3),
            scale=np.zeros(6),
            found=np.zeros((2 * shares, gradients.LOSSES)),
            lanes=np.zeros((2 * -(-weights // gradients.RANGE), LANES)),
        )
        self._struct = Struct(self._learner)
        learn = gradients.learn_rows if memory is None else gradients.learn_sequences
        kind, what = self._struct.kind, "gradient steps of small networks"
        self._chunks, self._epoch = (job_of(each, kind, what) for each in (learn, gradients.learn_epoch))
        self._learner.calls[:] = threads.pool, self._chunks.address, self._struct.address, threads.count

    def begin(self, batch: Batch | Sequences) -> None:
        """Copies weights, moments, the agent's current rates and a batch."""
        agent = self._agent
        self._learner.scale[5] = self._actor.copy()
        self._learner.rates[:] = agent.actor_lr, agent.critic_lr, agent.entropy_coef
        given = {name: part for name, part in vars(batch).items() if part is not None}
        given["discrete" if isinstance(agent.actor, CategoricalActor) else "raw_actions"] = given.pop("actions")
        if not isinstance(self.config, PPOConfig):
            given["log_probs"] = torch.zeros_like(batch.log_probs)
        if not isinstance(batch, Sequences):
            given["kept"] = torch.ones(len(batch), dtype=torch.bool, device="cpu")
        self._fill(2 if isinstance(batch, Sequences) else 1, given, batch.log_probs.numel())

    def _fill(self, axes: int, given: Mapping[str, Tensor], rows: int) -> None:
        """Copies the critic's weights, moments of observations, and arrays whose first ``axes`` are rows."""
        self._critic.copy()
        learner, moments = self._learner, self._agent.observation_moments
        if moments is not None:
            learner.shift[: len(moments.mean)] = moments.mean.float().numpy()
            learner.spread[: len(moments.mean)] = moments.std().float().numpy()
        learner.data.size[0] = rows
        every = learner.data._asdict()
        for name, part in given.items():
            if (target := every.get(name)) is not None and target.size:
                target[: int(np.prod(part.shape[:axes]))] = part.numpy().reshape(-1, *part.shape[axes:])

    def recall(self, observations: Tensor, previous: Tensor, starts: Tensor, states: Tensor) -> Tensor:
        """The critic's memory of a rollout; for arguments see ``GRUMemory`` and ``RolloutMemory``.

        Returns:
            The states after each observation, shape ``(T + 1, N, H)``, valid until the next call.
        """
        given = {"observations": observations, "previous": previous, "starts": starts, "critic_states": states[None]}
        self._fill(2, given, starts.numel())
        self._learner.now[:2] = gradients.RECALL, len(states)
        self._agent.threads.run(self._chunks, self._struct, -(-len(states) // AT_ONCE))
        memories = self._learner.data.critic_memories[: starts.numel()]
        return torch.from_numpy(memories).view(*starts.shape, states.shape[1])

    def values(self, inputs: Tensor, states: Tensor | None) -> Tensor:
        """The critic's values ``(T + 1, N)`` of ``inputs`` ``(T + 1, N, obs + k)`` and its memory's states."""
        rows, data = inputs.shape[0] * inputs.shape[1], self._learner.data
        self._fill(2, {"critic_inputs": inputs} | ({} if states is None else {"critic_memories": states}), rows)
        self._learner.now[0] = gradients.VALUE
        self._agent.threads.run(self._chunks, self._struct, -(-rows // BLOCK))
        return torch.from_numpy(data.values[:rows].copy()).view(inputs.shape[:2])

    def epoch(self, parts: Sequence[Tensor | slice]) -> Sequence[Sequence[float]]:
        """Runs one epoch: rows of minibatches -> losses of each."""
        learner = self._learner
        every = learner.every[: learner.data.size[0] // learner.data.length]
        pieces = [every[part.numpy() if isinstance(part, Tensor) else part] for part in parts]
        learner.rows[: len(every)] = np.concatenate(pieces)
        learner.starts[:] = len(every)
        learner.starts[: len(parts)] = np.cumsum([0, *map(len, pieces[:-1])])
        self._agent.threads.start()
        self._agent.threads.run(self._epoch, self._struct, 1)
        if learner.now[4] == gradients.BAD_GRADIENT:
            raise NotFiniteError("The loss or a gradient is not finite. Lower the learning rate or set max_grad_norm.")
        if learner.now[4] == gradients.BAD_WEIGHT:
            raise TrainingError("A weight is not finite after the update. Lower the learning rate.")
        return cast(Sequence[Sequence[float]], learner.losses[: len(parts)].tolist())

    def copy_back(self) -> None:
        """Copies weights and moments back to torch."""
        steps = float(self._learner.scale[5])
        self._actor.copy_back(steps)
        self._critic.copy_back(steps)


def _settings(agent: ActorCritic, config: RolloutConfig) -> Settings:
    ppo = config if isinstance(config, PPOConfig) else None  # others do not clip
    return Settings(
        kind=cast(CompiledBehavior, agent.behavior).policy.kind,
        floor=np.float32(STD_FLOOR),
        layers=sum(weights.numel() for layer in linear_layers(agent.actor.network) for weights in layer.parameters()),
        clip_range=np.float32(ppo.clip_range if ppo else 0.0),
        value_clip=np.float32(ppo.value_clip if ppo else 0.0),
        normalize_advantages=getattr(config, "normalize_advantages", False),
        prediction_coef=np.float32(agent.prediction_coef),
        optimizer=Optimizer(
            adam=isinstance(agent.actor_optimizer, torch.optim.Adam),
            eps=config.optimizer_eps,
            max_grad_norm=config.max_grad_norm,
        ),
    )


def _transitions(agent: ActorCritic, config: RolloutConfig, rows: int, length: int) -> Transitions:
    """Memory for a batch, flat in time-major order."""
    memories = [0 if memory is None else memory.size for memory in (agent.actor.memory, agent.critic_memory)]
    seen, valued = (
        linear_layers(network)[0].in_features - size
        for network, size in zip((agent.actor.network, agent.critic), memories, strict=True)
    )
    discrete, imitates = isinstance(agent.actor, CategoricalActor), isinstance(config, DistillConfig)
    code = agent.actor.code_size

    def numbers(columns: int, count: int = rows) -> npt.NDArray[np.float32]:
        return np.zeros((count, columns), np.float32)

    return Transitions(
        observations=numbers(seen),
        critic_inputs=numbers(valued),
        discrete=np.zeros(rows, np.int64),
        raw_actions=numbers(0 if discrete else code),
        log_probs=np.zeros(rows, np.float32),
        advantages=np.zeros(rows, np.float32),
        returns=np.zeros(rows, np.float32),
        values=np.zeros(rows, np.float32),
        labels=numbers((code if discrete else 2 * code) if imitates else 0),
        kept=np.ones(rows, np.bool_),
        size=np.zeros(1, np.int64),
        length=length,
        previous=numbers(code if memories[0] else 0),
        starts=np.zeros(rows, np.bool_),
        states=numbers(memories[0], rows // length),
        critic_states=numbers(memories[1], rows // length),
        critic_memories=numbers(memories[1]),
        draws=numbers(len(agent.visible) if agent.predictor is not None else 0),
    )


def _working_memory(memory: GRUMemory | None, length: int, threads: int) -> TrainedMemory:
    """Of a network's units, for sequences of ``length`` steps."""
    inputs, units = (0, 0) if memory is None else (memory.unit.input_size, memory.size)
    return TrainedMemory.allocate(inputs=inputs, units=units, length=length, sequences=AT_ONCE, threads=threads)


class _Copy:
    """A copy of a network's weights and its optimizer's moments for compiled code."""

    def __init__(self, network: nn.Sequential, optimizer: torch.optim.Optimizer, sizes: dict[str, int]) -> None:
        """For the layers of ``network``, then the other parameters of its optimizer."""
        layers = linear_layers(network)
        layered = [weights for layer in layers for weights in (layer.weight, layer.bias)]
        every = optimizer.param_groups[0]["params"]
        rest = [weights for weights in every if all(weights is not other for other in layered)]
        self._parameters, self._optimizer = [*layered, *rest], optimizer
        self.trained = Trained.allocate(
            sizes=[layers[0].in_features, *(layer.out_features for layer in layers)],
            activation=activation_of(network),
            extra=sum(weights.numel() for weights in rest),
            **sizes,
        )
        self._weights = self._views(self.trained.network.weights)
        self._moments = {"square_avg": self._views(self.trained.second)}
        if isinstance(optimizer, torch.optim.Adam):
            self._moments = {"exp_avg": self._views(self.trained.first), "exp_avg_sq": self._views(self.trained.second)}

    def _views(self, flat: npt.NDArray[np.float32]) -> list[Tensor]:
        """Parts of a flat array with the shapes of the parameters."""
        parts = torch.split(torch.from_numpy(flat), [weights.numel() for weights in self._parameters])
        return [part.view_as(weights) for part, weights in zip(parts, self._parameters, strict=True)]

    def copy(self) -> float:
        """Copies weights, and moments unless torch's are these; returns the optimizer's steps so far."""
        with torch.no_grad():
            torch._foreach_copy_(self._weights, self._parameters)
            states = [self._optimizer.state[weights] for weights in self._parameters]
            for name, views in self._moments.items():
                if not states[0]:
                    torch._foreach_zero_(views)
                elif states[0][name] is not views[0]:
                    torch._foreach_copy_(views, [state[name] for state in states])
        return float(states[0]["step"]) if states[0] else 0.0

    def copy_back(self, steps: float) -> None:
        """Copies weights back to torch, whose moments, after so many steps, become views of these."""
        with torch.no_grad():
            torch._foreach_copy_(self._parameters, self._weights)
        counts = torch.full((len(self._parameters),), steps, **PLAIN).unbind()
        for i, weights in enumerate(self._parameters):
            moments = {name: views[i] for name, views in self._moments.items()}
            self._optimizer.state[weights] = {"step": counts[i], **moments}
