"""The agent of algorithms that learn from rollouts: networks, optimizers, schedules and saved state.

Each algorithm's loop has its own file; start with ``a2c.py``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor, nn

from gym_dr.compiled.processors import usable_threads
from gym_dr.compiled.threads import Threads
from gym_dr.envs.mirror import attribute_of, mirror_of
from gym_dr.errors import CheckpointError, ConfigError, NotFiniteError, TrainingError, warn
from gym_dr.randomization.context import context_ranges
from gym_dr.training.api import Policy, Session, TrainedNetworks, seed_for
from gym_dr.training.batch import Batch, Sequences, advantages_of, critic_inputs, make_batch, make_sequences
from gym_dr.training.behavior import make_behavior, trained_policy
from gym_dr.training.config import CONTEXT_SPAN, INITS, AgentConfig, EpochsConfig, RolloutConfig
from gym_dr.training.epochs import CompiledLearner, compiled_learner
from gym_dr.training.memory import PLAIN, GRUMemory
from gym_dr.training.networks import (
    Actor,
    GaussianActor,
    TwoHeadedGaussianActor,
    make_actor,
    mlp,
    observation_size,
    orthogonal,
)
from gym_dr.training.normalization import Moments, NormalizeObservations, NormalizeRewards
from gym_dr.training.optimizers import without_compiler
from gym_dr.training.rollout import Rollout
from gym_dr.wrappers.frame_stack import sensor_columns
from gym_dr.wrappers.vector_params import spaces_of

MakeOptimizer = Callable[..., torch.optim.Optimizer]  # parameters, lr=... -> optimizer


class ActorCritic:
    """An actor and a critic that share no weights, an optimizer for each, and the generator that samples actions.

    The critic may observe the draw even when the actor does not (Pinto et al. 2018, "Asymmetric Actor Critic for
    Image-Based Robot Learning"): it is only needed in training, where the draw is known. If the actor has a memory, the
    critic either observes the draw or has its own memory.

    Attributes:
        visible: The k parameters that an asymmetric critic observes or the memory predicts: the context of rollouts.
        critic_context: The parameters that the critic observes besides the observation.
        critic_size: How many numbers of ``info["critic"]`` it observes.
        critic_memory: The critic's own memory, if it has one.
        actor_lr: Current learning rate of the actor; ``anneal`` sets it, ``critic_lr`` and ``entropy_coef``.
        critic_lr: Current learning rate of the critic.
        entropy_coef: Current weight of the entropy bonus.
        behavior: Chooses the actions in rollouts.
        threads: For small networks, which learn in compiled code.
        compiled: The memory of this code, from its first use on.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        config: AgentConfig,
        seed: int,
        device: str,
        *,
        make_optimizer: MakeOptimizer,
        actor_lr: float,
        critic_lr: float,
    ) -> None:
        """Builds networks for the environment's spaces on ``device``. The seed determines weights and actions.

        ``make_optimizer`` makes the optimizer of each network; see ``without_compiler``.

        Raises:
            ConfigError: The networks do not support the spaces.
            RandomizationError: ``critic_context`` is set, but nothing is randomized.
        """
        informed = config.critic_context or config.predict_draw > 0
        self.visible = context_ranges(*spaces_of(envs), span=CONTEXT_SPAN) if informed else ()
        self.critic_context = self.visible if config.critic_context else ()
        self.prediction_coef, self._config = config.predict_draw, config
        # the baseline of reinforce does without
        self.critic_size = (attribute_of(envs, "critic_size") or 0) if isinstance(config, RolloutConfig) else 0
        self.critic_moments = Moments(self.critic_size) if self.critic_size else None
        remembers = 0 if config.critic_context else memory_units(config)
        inputs = observation_size(envs) + self.critic_size + len(self.critic_context) + remembers
        with torch.random.fork_rng(devices=[]):  # torch initializes layers from its global generator
            torch.manual_seed(seed_for(seed, stream=2, index=0))
            self.actor = actor_of(envs, config)
            self.critic = mlp(inputs, config.hidden_sizes, 1, config.activation)
            seen = observation_size(envs) + self.actor.code_size
            self.critic_memory = GRUMemory(seen, remembers, config.init) if remembers else None
            predicts = config.predict_draw > 0
            self.predictor = nn.Linear(memory_units(config), len(self.visible), **PLAIN) if predicts else None
            if config.init == "orthogonal":
                orthogonal(self.actor.network, last_gain=0.01)  # all actions start equally likely
                orthogonal(self.critic, last_gain=1.0)
        first = self.actor.network[0]
        self.observation_moments = first if isinstance(first, NormalizeObservations) else None
        if self.observation_moments is not None:  # one layer for both networks
            self.critic.insert(0, self.observation_moments)
            self.observation_moments.ignore(sensor_columns(envs, config.ignored_sensors))
        self.reward_moments = NormalizeRewards(config.gamma) if config.normalize_rewards else None
        policy, value_function = (
            nn.ModuleList(part for part in parts if part is not None).to(device)
            for parts in ((self.actor, self.predictor), (self.critic, self.critic_memory, self.critic_moments))
        )
        self._critic_state = torch.zeros(envs.num_envs, remembers, **PLAIN).to(device)
        self.actor_lr, self.critic_lr = actor_lr, critic_lr
        self.actor_optimizer = make_optimizer(policy.parameters(), lr=actor_lr)
        self.critic_optimizer = make_optimizer(value_function.parameters(), lr=critic_lr)
        self.entropy_coef = config.entropy_coef
        self.generator = torch.Generator("cpu").manual_seed(seed_for(seed, stream=2, index=1))
        self.threads = Threads(usable_threads())
        self.compiled: CompiledLearner | None = None  # made when it is needed
        self.behavior = make_behavior(self.actor, self.generator, device, envs.num_envs)
        self._networks = (policy, self.actor_optimizer), (value_function, self.critic_optimizer)
        self._first = actor_lr, critic_lr, config.entropy_coef

    @property
    def reward_scale(self) -> float:
        """Factor on rewards in the losses: constant, or from ``reward_moments`` if rewards are normalized."""
        return self._config.reward_scale if self.reward_moments is None else 1.0 / self.reward_moments.std().item()

    def value(self, inputs: Tensor) -> Tensor:
        """The critic's values, shape ``(...)``, of ``inputs``, shape ``(..., obs + k)``."""
        return cast(Tensor, self.critic(inputs).squeeze(-1))

    def recall(self, rollout: Rollout) -> Rollout:
        """Adds the critic's memory, the context and the draws to the latest rollout, as far as networks need them.

        The critic's own memory, if any, runs over the rollout; its states are valid until the next call. The context
        stays for an asymmetric critic, and becomes ``draws`` for a memory that predicts it. What the critic alone
        observes comes before it, normalized.
        """
        if self.predictor is not None:
            rollout = replace(rollout, draws=rollout.context)
        if not self.critic_context:
            rollout = replace(rollout, context=None)
        if rollout.critic is not None and self.critic_moments is not None:
            seen = [self.critic_moments.scaled(rollout.critic), *([] if rollout.context is None else [rollout.context])]
            rollout = replace(rollout, context=torch.cat(seen, -1))
        memory = rollout.memory
        if memory is None or self.critic_memory is None:
            return rollout
        if (learner := self._compiled(rollout)) is not None:
            after = learner.recall(rollout.observations, memory.previous, memory.starts, self._critic_state)
        else:
            with torch.no_grad():
                inputs = self.actor.memory_inputs(rollout.observations, memory.previous)
                after = self.critic_memory(inputs, self._critic_state, memory.starts)
        before = torch.cat([self._critic_state[None], after[:-2]]).masked_fill(memory.starts[:-1, :, None], 0.0)
        self._critic_state = after[-2].clone()  # the next rollout begins with the last observation of this one
        return replace(rollout, memory=replace(memory, critic_states=before, critic_memories=after))

    def values_of(self, rollout: Rollout) -> Tensor:
        """The critic's values of a rollout's observations, shape ``(T + 1, N)``, without a graph; after ``recall``."""
        inputs = critic_inputs(rollout)
        memories = None if rollout.memory is None else rollout.memory.critic_memories
        if (learner := self._compiled(rollout)) is not None:
            return learner.values(inputs, memories)
        with torch.no_grad():
            return self.value(inputs if memories is None else torch.cat([inputs, memories], -1))

    def _compiled(self, rollout: Rollout) -> CompiledLearner | None:
        """What values a rollout in compiled code, if networks are small."""
        return compiled_learner(self, self._config, rollout.observations[..., 0].numel())

    def batch_of(self, rollout: Rollout, config: RolloutConfig) -> Batch | Sequences:
        """The steps of a rollout to learn from, in sequences if the actor has a memory; after ``recall``."""
        values = self.values_of(rollout)
        factors = {"gamma": config.gamma, "gae_lambda": config.gae_lambda, "reward_scale": self.reward_scale}
        estimates = advantages_of(rollout, values, **factors)
        if rollout.memory is None:
            return make_batch(rollout, values, estimates)
        return make_sequences(rollout, rollout.memory, values, estimates, config.sequence_length)

    def unrolled(self, part: Batch | Sequences) -> Batch:
        """The steps of sequences with the current memories' states at each, with a graph; a batch unchanged.

        Truncated backpropagation through time (Williams and Peng 1990): sequences begin with the states from the
        collection of the rollout. In later minibatches these are a few gradient steps old, which costs little while
        clipping keeps policies close; computing them again would cost another pass.
        """
        if isinstance(part, Batch):
            return part
        inputs = self.actor.memory_inputs(part.observations, part.previous)
        memories = cast(GRUMemory, self.actor.memory)(inputs, part.states[0], part.starts)
        if self.critic_memory is None or part.critic_states is None:
            return part.kept_steps(memories, None)
        return part.kept_steps(memories, self.critic_memory(inputs, part.critic_states[0], part.starts))

    def anneal(self, schedule: str, progress: float) -> None:
        """Sets learning rates and the weight of the entropy bonus for an update.

        Args:
            schedule: "constant", or "linear" to decrease them to 0.
            progress: Fraction of the updates already made, 0 to 1.
        """
        remaining = 1.0 - progress if schedule == "linear" else 1.0
        self.actor_lr, self.critic_lr, self.entropy_coef = (first * remaining for first in self._first)
        for optimizer, lr in ((self.actor_optimizer, self.actor_lr), (self.critic_optimizer, self.critic_lr)):
            for group in optimizer.param_groups:
                group["lr"] = lr

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
        for _, optimizer in self._networks:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        weights = [weight for network, _ in self._networks for weight in network.parameters()]
        if not _finite([weight.grad for weight in weights if weight.grad is not None]):
            raise NotFiniteError("A gradient is not finite. Lower the learning rate.")
        for network, optimizer in self._networks:
            if self._config.max_grad_norm > 0:
                nn.utils.clip_grad_norm_(network.parameters(), self._config.max_grad_norm)
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
            valid = torch.as_tensor(np.flatnonzero(rollout.valid), device=rollout.observations.device)
            self.observation_moments.update(rollout.observations.flatten(0, 1).index_select(0, valid))
            if rollout.critic is not None and self.critic_moments is not None:
                self.critic_moments.update(rollout.critic.flatten(0, 1).index_select(0, valid))

    def prediction_loss(self, part: Batch) -> Tensor:
        """Mean squared error of the draws that the memory predicts, in units of the context, without its weight."""
        if self.predictor is None or part.memories is None or part.draws is None:
            return part.returns.new_zeros(())
        return cast(Tensor, (self.predictor(part.memories) - part.draws).pow(2).mean())

    def means(self, names: Sequence[str], losses: Sequence[Sequence[float]]) -> dict[str, float]:
        """Means over minibatches by name; the last, the loss of a prediction, only if the memory predicts."""
        if self.predictor is not None:
            names = (*names, "prediction_loss")
        return {name: sum(each) / len(each) for name, each in zip(names, zip(*losses, strict=True), strict=False)}

    @property
    def parts(self) -> dict[str, nn.Module]:
        """The modules that learn, by their names in ``state``."""
        found = {
            "actor": self.actor,
            "critic": self.critic,
            "critic_memory": self.critic_memory,
            "critic_moments": self.critic_moments,
            "predictor": self.predictor,
            "reward_moments": self.reward_moments,
        }
        return {name: part for name, part in found.items() if part is not None}

    def state(self) -> dict[str, Any]:
        """Everything needed to continue training, as tensors."""
        return {
            **{name: part.state_dict() for name, part in self.parts.items()},
            "actor_optimizer": self.actor_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }

    def start_from(self, trained: TrainedNetworks) -> None:
        """Starts from another run's weights and moments, but not its optimizers and random numbers.

        This includes the predictor of draws if both runs have one.

        Raises:
            ConfigError: The other run's networks have other inputs, outputs or sizes; nothing has changed.
        """
        before = copy.deepcopy(self.state())
        try:
            for name, part in self.parts.items():
                if name != "predictor" or name in trained.state:
                    load_weights(part, trained.state, name)
        except CheckpointError as error:
            self.load_state(before)
            raise ConfigError(
                f"init: {trained.source}: its observations, draws that a network observes, or actions differ: {error}"
            ) from None

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores the result of ``state``.

        Raises:
            CheckpointError: Something is missing or does not fit.
        """
        for name, part in self.parts.items():
            load_weights(part, state, name)
        try:
            for (network, optimizer), name in zip(self._networks, ("actor_optimizer", "critic_optimizer"), strict=True):
                _load_moments(network, optimizer, state[name]["state"])
            self.generator.set_state(state["generator"].cpu())
        except Exception as error:  # a stranger's values may raise any
            raise CheckpointError(f"The saved optimizers or generator do not fit this configuration: {error}") from None


def restore(agent: ActorCritic, session: Session, config: Any) -> None:
    """Restores a resumed run's agent, or starts it from the run that the configuration's ``init`` names.

    Raises:
        CheckpointError: The checkpoint does not fit.
        ConfigError: The other run's networks do not fit.
    """
    if session.restored is not None:
        agent.load_state(session.restored)
    elif config.init not in INITS:
        agent.start_from(session.trained(config.init))


def adam_agent(envs: VectorEnv[Any, Any, Any], config: EpochsConfig, seed: int, device: str) -> ActorCritic:
    """The agent of a configuration with one learning rate and Adam; see ``ActorCritic``."""
    optimizer = partial(without_compiler(torch.optim.Adam), eps=config.optimizer_eps, fused=True)
    return ActorCritic(envs, config, seed, device, make_optimizer=optimizer, actor_lr=config.lr, critic_lr=config.lr)


def memory_units(config: AgentConfig) -> int:
    """Size of the memory of a configuration's policy; 0 without memory."""
    return 0 if config.memory == "none" else config.memory_size


def actor_of(envs: VectorEnv[Any, Any, Any], config: AgentConfig) -> Actor:
    """The actor of a configuration; see ``make_actor``."""
    mirror = mirror_of(envs)
    if mirror is not None and memory_units(config):
        warn(
            "The mirror image that the environment declares has no effect on a policy with memory: what it remembers "
            "has none. Use `memory='none'`, with FrameStack if it needs the past."
        )
    return make_actor(
        envs,
        config.hidden_sizes,
        config.activation,
        TwoHeadedGaussianActor if config.state_dependent_std else GaussianActor,
        config.normalize_observations,
        memory_size=memory_units(config),
        init=config.init,
        mirror=mirror,
    )


def load_policy(
    state: Mapping[str, Any], envs: VectorEnv[Any, Any, Any], config: AgentConfig, *, deterministic: bool = False
) -> Policy:
    """The policy of an actor with the weights from ``ActorCritic.state``; see ``trained_policy``.

    Raises:
        CheckpointError: The weights do not fit.
    """
    actor = actor_of(envs, config)
    load_weights(actor, state, "actor")
    return trained_policy(actor, deterministic=deterministic)


def _finite(tensors: Sequence[Tensor]) -> bool:
    """Whether all numbers are finite; one call for all tensors, since they are small."""
    return bool(torch.isfinite(torch.cat([tensor.detach().flatten() for tensor in tensors])).all())


def _load_moments(network: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[int, Any]) -> None:
    """Loads the state of a network's optimizer, whose settings are those of the configuration.

    Raises:
        ValueError: It is not the state of such an optimizer, which torch would find out at the next step.
    """
    network, trial = copy.deepcopy((network, optimizer))
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    trial.step()
    expected = trial.state_dict()["state"]
    for index, moments in state.items():
        if [(name, one.shape) for name, one in moments.items()] != [
            (n, one.shape) for n, one in expected[index].items()
        ]:
            raise ValueError(f"expected other values for weights {index}.")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def load_weights(network: nn.Module, state: Mapping[str, Any], name: str) -> None:
    """Loads a part of a saved state.

    Raises:
        CheckpointError: The weights do not fit.
    """
    try:
        network.load_state_dict(state[name])
    except Exception as error:  # a stranger's values may raise any
        detail = str(error).replace("\n", " ")
        raise CheckpointError(f"The saved weights of {name!r} do not fit this configuration: {detail}") from None
