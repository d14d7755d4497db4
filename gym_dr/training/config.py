"""Configurations of the built-in algorithms. Nothing heavy is imported: the command line builds options from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from gym_dr.errors import ConfigError
from gym_dr.options import check_choices, expect, option
from gym_dr.wording import spelled

MAX_WEIGHTS = 2**26  # between hidden layers: a quarter of a gigabyte

# The draw is constant within an episode, so a batch has few examples of it and networks overfit to it. They learn more
# slowly from smaller inputs: with draws in [-1, 1] A2C learned worse than without them, with a quarter of that better
CONTEXT_SPAN = 0.25

MAX_MEMORY = 4096  # numbers; 50 million weights

SCHEDULES, ACTIVATIONS, INITS = ("constant", "linear"), ("relu", "tanh"), ("torch", "orthogonal")
MEMORIES = ("none", "gru")
INIT_HELP = (
    "initial weights: torch's default, orthogonal (Saxe et al. 2014), or those of a run, named by its folder; of a "
    "folder with several seeds, the run with the same seed"
)
IGNORED_HELP = "sensors that the networks do not use, by the names that obs_hide:SENSOR has, or empty for none"
MEMORY_HELP = "memory of the policy within an episode: none, or gated recurrent units"

# options that networks must share to have the same weights, and what they are for algorithms without them
SHARED_BY_NETWORKS: Mapping[str, Any] = {
    "hidden_sizes": None,
    "activation": "tanh",
    "memory": "none",
    "memory_size": 64,
    "state_dependent_std": False,
    "critic_context": False,
    "normalize_observations": False,
    "ignored_sensors": (),
    "normalize_rewards": False,
    "reward_scale": 1.0,
}

_OF_AN_ACTOR = ("hidden_sizes", "activation", "memory", "normalize_observations")  # what only some algorithms have

_BOUNDS: dict[str, Callable[[float], bool]] = {
    "at least 1": lambda value: value >= 1,
    "between 0 and 1": lambda value: 0.0 <= value <= 1.0,
    "above 0 and finite": lambda value: 0.0 < value < math.inf,
    "0 or above and finite": lambda value: 0.0 <= value < math.inf,
}


@dataclass(frozen=True, kw_only=True)
class A2CConfig:
    """A2C: advantage actor-critic with separate networks and optimizers (Mnih et al. 2016).

    The defaults were tuned on LunarLander, on seeds that no published figure has.
    """

    updates: int = option(6000, "number of updates, each on one rollout of rollout_steps x num_envs transitions")
    rollout_steps: int = option(64, "steps of each sub-environment between two updates")
    minibatches: int = option(1, "minibatches per rollout, each with a gradient step of its own")
    gamma: float = option(0.996, "discount factor")
    gae_lambda: float = option(0.98, "lambda of generalized advantage estimation: 0 is one step, 1 Monte Carlo")
    entropy_coef: float = option(0.003, "weight of the entropy bonus")
    actor_lr: float = option(0.002, "learning rate of the actor")
    critic_lr: float = option(0.002, "learning rate of the critic")
    schedule: str = option("linear", "linear: decrease learning rates and entropy bonus to 0", SCHEDULES)
    optimizer: str = option("rmsprop", "optimizer of actor and critic", ("rmsprop", "adam"))
    optimizer_eps: float = option(1e-5, "epsilon of the optimizer, for numerical stability")
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("relu", "activation between layers", ACTIVATIONS)
    init: str = option("orthogonal", INIT_HELP, INITS, run="weights")
    reward_scale: float = option(0.1, "factor on rewards in the losses; reported returns are unscaled")
    memory: str = option("none", MEMORY_HELP, MEMORIES)
    memory_size: int = option(64, "size of the memory's state")
    sequence_length: int = option(32, "steps through which gradients of a memory flow back; must divide rollout_steps")
    predict_draw: float = option(0.0, "weight of a loss that trains the memory to predict the draw; 0 for none")
    critic_context: bool = option(
        False, "let the critic, which only training uses, observe the draw instead of having a memory of its own"
    )
    normalize_observations: bool = option(False, "shift and scale observations by their running moments")
    normalize_advantages: bool = option(True, "scale each update's advantages to mean 0 and standard deviation 1")
    max_grad_norm: float = option(0.5, "clip each network's gradient to this norm; 0 for no clipping")

    def __post_init__(self) -> None:
        _check(
            self,
            {
                "at least 1": ("updates", "minibatches"),
                "between 0 and 1": ("gamma", "gae_lambda"),
                "above 0 and finite": ("actor_lr", "critic_lr", "optimizer_eps", "reward_scale"),
            },
        )
        _check_rollout_steps(self)
        _check_memory(self)


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """PPO: clipped policy steps, several epochs a rollout (Schulman et al. 2017).

    The defaults are those of CleanRL and the paper for robots, with the same 2,048 transitions per rollout and
    minibatches of 64, but from 8 environments and with smaller initial standard deviations, which matter a lot
    (Andrychowicz et al. 2021, "What Matters In On-Policy Reinforcement Learning", section 3.2). A family of
    environments may override them (``EnvFamily.defaults``).
    """

    updates: int = option(488, "number of updates, each on one rollout of rollout_steps x num_envs transitions")
    rollout_steps: int = option(256, "steps of each sub-environment between two updates")
    epochs: int = option(10, "passes over each rollout")
    minibatches: int = option(32, "minibatches per epoch, each with a gradient step of its own")
    gamma: float = option(0.99, "discount factor")
    gae_lambda: float = option(0.95, "lambda of generalized advantage estimation: 0 is one step, 1 Monte Carlo")
    clip_range: float = option(0.2, "clip probability ratios to [1 - clip_range, 1 + clip_range]")
    value_clip: float = option(0.0, "clip changes of the value function to this; 0 for no clipping")
    target_kl: float = option(0.0, "stop an update's epochs above this mean KL divergence; 0 for no limit")
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    lr: float = option(0.0003, "learning rate of actor and critic (Adam)")
    schedule: str = option("linear", "linear: decrease learning rate and entropy bonus to 0", SCHEDULES)
    optimizer_eps: float = option(1e-5, "epsilon of Adam, for numerical stability")
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("tanh", "activation between layers", ACTIVATIONS)
    init: str = option("orthogonal", INIT_HELP, INITS, run="weights")
    initial_std: float = option(
        0.5, "initial standard deviation of continuous actions; 1 is half of their range", continuous=True
    )
    state_dependent_std: bool = option(
        False, "let the standard deviation of continuous actions depend on the observation", continuous=True
    )
    memory: str = option("none", MEMORY_HELP, MEMORIES)
    memory_size: int = option(64, "size of the memory's state")
    sequence_length: int = option(32, "steps through which gradients of a memory flow back; must divide rollout_steps")
    predict_draw: float = option(0.0, "weight of a loss that trains the memory to predict the draw; 0 for none")
    critic_context: bool = option(
        False, "let the critic, which only training uses, observe the draw instead of having a memory of its own"
    )
    normalize_observations: bool = option(True, "shift and scale observations by their running moments")
    ignored_sensors: tuple[str, ...] = option((), IGNORED_HELP)
    normalize_rewards: bool = option(
        True, "divide rewards by the running standard deviation of returns; reported returns are unscaled"
    )
    normalize_advantages: bool = option(True, "scale each minibatch's advantages to mean 0 and standard deviation 1")
    max_grad_norm: float = option(0.5, "clip each network's gradient to this norm; 0 for no clipping")

    def __post_init__(self) -> None:
        _check(
            self,
            {
                "at least 1": ("updates", "epochs", "minibatches"),
                "between 0 and 1": ("gamma", "gae_lambda"),
                "above 0 and finite": ("clip_range", "lr", "optimizer_eps", "initial_std"),
                "0 or above and finite": ("value_clip", "target_kl"),
            },
        )
        _check_rollout_steps(self)
        _check_memory(self)
        _check_ignored(self)


@dataclass(frozen=True, kw_only=True)
class DistillConfig:
    """Distillation: a student acts and imitates a teacher that observes the draw (Ross et al. 2011; Kumar et al. 2021).

    The critic learns the values of the student's policy, for algorithms that go on from it.
    """

    teacher: str = option(
        "",
        "the run to imitate, named by its folder, or by a folder with several seeds; its policy may observe the draw",
        run="teacher",
    )
    updates: int = option(488, "number of updates, each on one rollout of rollout_steps x num_envs transitions")
    rollout_steps: int = option(256, "steps of each sub-environment between two updates")
    epochs: int = option(4, "passes over each rollout")
    minibatches: int = option(32, "minibatches per epoch, each with a gradient step of its own")
    gamma: float = option(0.99, "discount factor of the critic")
    gae_lambda: float = option(0.95, "lambda of generalized advantage estimation, for the critic's targets")
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    lr: float = option(0.001, "learning rate of actor and critic (Adam)")
    schedule: str = option("linear", "linear: decrease learning rate and entropy bonus to 0", SCHEDULES)
    optimizer_eps: float = option(1e-5, "epsilon of Adam, for numerical stability")
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("tanh", "activation between layers", ACTIVATIONS)
    init: str = option("orthogonal", INIT_HELP, INITS, run="weights")
    state_dependent_std: bool = option(
        False,
        "let the standard deviation of continuous actions depend on the observation, as the teacher's does",
        continuous=True,
    )
    memory: str = option("none", MEMORY_HELP, MEMORIES)
    memory_size: int = option(64, "size of the memory's state")
    sequence_length: int = option(32, "steps through which gradients of a memory flow back; must divide rollout_steps")
    predict_draw: float = option(0.0, "weight of a loss that trains the memory to predict the draw; 0 for none")
    critic_context: bool = option(
        False, "let the critic, which only training uses, observe the draw instead of having a memory of its own"
    )
    normalize_observations: bool = option(True, "shift and scale observations by their running moments")
    ignored_sensors: tuple[str, ...] = option((), IGNORED_HELP)
    normalize_rewards: bool = option(
        True, "divide rewards by the running standard deviation of returns; reported returns are unscaled"
    )
    max_grad_norm: float = option(0.5, "clip each network's gradient to this norm; 0 for no clipping")

    def __post_init__(self) -> None:
        _check(
            self,
            {
                "at least 1": ("updates", "epochs", "minibatches"),
                "between 0 and 1": ("gamma", "gae_lambda"),
                "above 0 and finite": ("lr", "optimizer_eps"),
            },
        )
        _check_rollout_steps(self)
        _check_memory(self)
        _check_ignored(self)


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig:
    """REINFORCE: Monte Carlo policy gradient on complete episodes (Williams 1992)."""

    updates: int = option(250, "number of updates, each on num_envs x episodes_per_env complete episodes")
    episodes_per_env: int = option(1, "episodes of each sub-environment per update")
    gamma: float = option(0.99, "discount factor")
    lr: float = option(0.003, "learning rate of the policy, and of the baseline if there is one")
    schedule: str = option("linear", "linear: decrease learning rate and entropy bonus to 0", SCHEDULES)
    # "normalize" punishes the last steps of truncated episodes, whose returns lack the rewards after the limit;
    # "learned" estimates them
    baseline: str = option(
        "learned",
        "baseline of returns: none, a learned value function, or normalization to mean 0 and standard deviation 1",
        ("none", "normalize", "learned"),
    )
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    max_grad_norm: float = option(0.0, "clip each network's gradient to this norm; 0 for no clipping")
    hidden_sizes: tuple[int, ...] = option((16, 32), "units of the hidden layers")
    memory: str = option("none", "only none; ppo and a2c train policies that remember", MEMORIES)

    def __post_init__(self) -> None:
        _check(
            self,
            {
                "at least 1": ("updates", "episodes_per_env"),
                "between 0 and 1": ("gamma",),
                "above 0 and finite": ("lr",),
            },
        )
        if self.memory != "none":
            raise ConfigError(
                "memory: expected none, got 'gru'. REINFORCE makes one gradient step on complete episodes, of hundreds "
                "of steps, and backpropagation through all of them is slow and unstable; ppo and a2c learn from short "
                "sequences. Use one of these."
            )


def memory_size(config: Any) -> int:
    """Numbers that a configuration's policy remembers; 0 without memory."""
    return 0 if config.memory == "none" else int(config.memory_size)


def check_minibatches(config: Any, num_envs: int) -> None:
    """Checks that each minibatch gets a sequence or, without memory, steps to learn from.

    PPO scales the advantages of each minibatch: those of a single step would be 0. Plugins check their own.

    Raises:
        ConfigError: There are more minibatches than that.
    """
    if not isinstance(config, A2CConfig | PPOConfig | DistillConfig):
        return
    steps, of = num_envs * config.rollout_steps, f"num_envs {num_envs} x rollout_steps {config.rollout_steps}"
    if config.memory != "none":
        most = steps // config.sequence_length
        what = f"the sequences of an update ({of} / sequence_length {config.sequence_length})"
    elif isinstance(config, PPOConfig) and config.normalize_advantages:
        most, what = steps // 2, f"for two steps each ({of})"
    else:
        most, what = steps, f"for a step each ({of})"
    expect(config.minibatches <= most, "minibatches", f"at most {most}, {what}", config.minibatches)


def check_same_networks(options: Any, others: Any, name: str, source: str) -> None:
    """Checks that networks can go on from the weights of another run.

    Args:
        options: Configuration of the new run.
        others: Of the other one.
        name: The option that names the other run, for messages.
        source: The other run's folder, for messages.

    Raises:
        ConfigError: They have other networks, or scale observations or rewards differently.
    """
    _check_actor(others, name, source)
    for shared, absent in SHARED_BY_NETWORKS.items():
        mine, theirs = getattr(options, shared, absent), getattr(others, shared, absent)
        if mine != theirs and not (shared == "ignored_sensors" and {*mine} == {*theirs}):  # whose order is free
            if not hasattr(options, shared):
                raise ConfigError(f"{name}: {source} has {shared} {theirs!r}, which this algorithm does not offer.")
            raise ConfigError(
                f"{name}: {source} has {shared} {theirs!r}, and this run {mine!r}, so its weights do not fit. Give "
                f"both the same: {spelled(shared, theirs)}"
            )


def _check_actor(others: Any, name: str, source: str) -> None:
    if not all(hasattr(others, option) for option in _OF_AN_ACTOR):
        raise ConfigError(f"{name}: {source} has other networks; expected a run of a2c, ppo or distill.")


def check_teacher(options: Any, others: Any, name: str, source: str) -> None:
    """Checks that the policy of another run can be imitated; for the arguments see ``check_same_networks``.

    Raises:
        ConfigError: It is no policy of a2c, ppo or distill, has a memory, or other standard deviations.
    """
    _check_actor(others, name, source)
    if memory_size(others):
        raise ConfigError(
            f"{name}: {source} has a memory; expected a policy without one, which observes the draw instead."
        )
    theirs = getattr(others, "state_dependent_std", False)
    if theirs != options.state_dependent_std:
        raise ConfigError(
            f"{name}: {source} has state_dependent_std {theirs}, and its student needs the same: "
            f"{spelled('state_dependent_std', theirs)}"
        )


def _check(config: Any, bounds: dict[str, tuple[str, ...]]) -> None:
    """Checks fields by name, and the fields that all algorithms here share."""
    always = {"0 or above and finite": ("entropy_coef", "max_grad_norm")}
    for expected, names in itertools.chain(bounds.items(), always.items()):
        for name in names:
            expect(_BOUNDS[expected](getattr(config, name)), name, expected, getattr(config, name))
    check_choices(config)
    sizes = config.hidden_sizes
    expect(len(sizes) >= 1 and min(sizes) >= 1, "hidden_sizes", "one or more layers of at least 1 unit", sizes)
    # a configuration may be untrusted, and evaluating its run must not exhaust memory
    weights = sum(before * after for before, after in pairwise(sizes))
    small = max(sizes) <= 2**16 and weights <= MAX_WEIGHTS
    expect(small, "hidden_sizes", f"at most {2**16} units in a layer and {MAX_WEIGHTS} weights between them", sizes)


def _check_rollout_steps(config: Any) -> None:
    # at most one of two steps in a row is a reset, so every rollout has a valid step
    expect(config.rollout_steps >= 2, "rollout_steps", "at least 2", config.rollout_steps)


def _check_ignored(config: Any) -> None:
    if config.ignored_sensors and not config.normalize_observations:
        raise ConfigError(
            "ignored_sensors: the layer that normalizes observations ignores sensors, so it has no effect without: "
            f"use {spelled('normalize_observations', True)}, or {spelled('ignored_sensors', ())} for none"
        )


def _check_memory(config: Any) -> None:
    if config.memory == "none":
        for field in fields(config):
            if (
                field.name in ("memory_size", "sequence_length", "predict_draw")
                and getattr(config, field.name) != field.default
            ):
                raise ConfigError(f"{field.name}: has no effect without a memory: add {spelled('memory', 'gru')}")
        return
    size, length, steps = config.memory_size, config.sequence_length, config.rollout_steps
    expect(0.0 <= config.predict_draw < math.inf, "predict_draw", "0 or above and finite", config.predict_draw)
    expect(1 <= size <= MAX_MEMORY, "memory_size", f"1 to {MAX_MEMORY}", size)
    divisors = [str(d) for d in range(1, steps + 1) if steps % d == 0]
    expected = f"a divisor of rollout_steps ({steps}), such as {', '.join(divisors[-4:])}"
    expect(length >= 1 and steps % length == 0, "sequence_length", expected, length)
