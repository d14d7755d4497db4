"""Configurations of the built-in algorithms. Nothing heavy is imported: the command line builds options from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

from gym_dr.errors import ConfigError
from gym_dr.options import (
    AT_LEAST_1,
    AT_LEAST_2,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Check,
    Checked,
    changed,
    expect,
    option,
)

MAX_WEIGHTS = 2**26  # between hidden layers: a quarter of a gigabyte

# The draw is constant within an episode, so a batch has few examples and networks overfit to it. They learn more
# slowly from smaller inputs: with draws in [-1, 1] A2C learned worse than without them, with a quarter of that better
CONTEXT_SPAN = 0.25
# what to do about observations that lack these
AS_IN_TRAINING = (
    "Wrap the environment as in training: in FrameStack for run.config.frames, in DrawContext for "
    f"run.config.context_ranges with span={CONTEXT_SPAN}."
)

MAX_MEMORY = 4096  # numbers; 50 million weights

SCHEDULES, ACTIVATIONS, INITS = ("constant", "linear"), ("relu", "tanh", "elu"), ("torch", "orthogonal")
MEMORIES = ("none", "gru")
INIT_HELP = (
    "initial weights: torch's default, orthogonal (Saxe et al. 2014), or those of a run, named by its folder; a folder "
    "of several seeds stands for its run with the same seed"
)


class AgentConfig(Checked):
    """Base of configurations of an ``ActorCritic``. These values hold for algorithms without such an option."""

    hidden_sizes: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    init: str = "torch"
    memory: str = "none"
    memory_size: int = 64
    sequence_length: int = 32
    predict_draw: float = 0.0
    state_dependent_std: bool = False
    critic_context: bool = False
    normalize_observations: bool = False
    ignored_sensors: tuple[str, ...] = ()
    normalize_rewards: bool = False
    reward_scale: float = 1.0
    gamma: float = 0.99  # of the returns that normalize rewards
    entropy_coef: float = 0.0
    max_grad_norm: float = 0.5


# options that must be equal for weights to fit
SHARED_BY_NETWORKS = (
    *("hidden_sizes", "activation", "memory", "memory_size", "state_dependent_std", "critic_context"),
    *("normalize_observations", "ignored_sensors", "normalize_rewards", "reward_scale"),
)


# ---- checks of several values: see ``options.check_values`` ----------------------------------------------------------


def _check_hidden_sizes(sizes: tuple[int, ...]) -> None:
    expect(len(sizes) >= 1 and min(sizes) >= 1, "hidden_sizes", "one or more layers of at least 1 unit", sizes)
    # an untrusted configuration must not exhaust memory when its run is evaluated
    weights = sum(before * after for before, after in pairwise(sizes))
    small = max(sizes) <= 2**16 and weights <= MAX_WEIGHTS
    expect(small, "hidden_sizes", f"at most {2**16} units in a layer and {MAX_WEIGHTS} weights between them", sizes)


def _check_memory(memory: str, size: int, length: int, predict_draw: float, steps: int) -> None:
    if memory == "none":
        for name, value in (("memory_size", size), ("sequence_length", length), ("predict_draw", predict_draw)):
            if value != getattr(AgentConfig, name):
                raise ConfigError(f"{name}: has no effect without a memory: add `memory='gru'`")
        return
    expect(1 <= size <= MAX_MEMORY, "memory_size", f"1 to {MAX_MEMORY}", size)
    divisors = [str(d) for d in range(1, steps + 1) if steps % d == 0]
    expected = f"a divisor of rollout_steps ({steps}), such as {', '.join(divisors[-4:])}"
    expect(length >= 1 and steps % length == 0, "sequence_length", expected, length)


def _check_no_memory(memory: str) -> None:
    if memory != "none":
        raise ConfigError(
            "memory: expected none, got 'gru'. REINFORCE takes one gradient step on complete episodes, of hundreds of "
            "steps, and backpropagation through all of them is slow and unstable. Use ppo or a2c, which learn from "
            "short sequences."
        )


def _check_ignored_sensors(sensors: tuple[str, ...], normalize_observations: bool) -> None:
    if sensors and not normalize_observations:
        raise ConfigError(
            "ignored_sensors: only the layer that normalizes observations can ignore sensors: use "
            "`normalize_observations=True`, or `ignored_sensors=()` for none"
        )


# ---- configurations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RolloutConfig(AgentConfig):
    """Options of algorithms that learn from rollouts, with the defaults of PPO."""

    updates: int = option(
        488, "number of updates, each on one rollout of rollout_steps x num_envs transitions", within=AT_LEAST_1
    )
    # at most one of two consecutive steps is a reset, so every rollout has a valid step
    rollout_steps: int = option(256, "steps of each sub-environment between two updates", within=AT_LEAST_2)
    minibatches: int = option(32, "minibatches per epoch, each with a gradient step of its own", within=AT_LEAST_1)
    gamma: float = option(0.99, "discount factor", within=SHARE)
    gae_lambda: float = option(
        0.95, "lambda of generalized advantage estimation: 0 is one step, 1 Monte Carlo", within=SHARE
    )
    entropy_coef: float = option(0.0, "weight of the entropy bonus", within=NOT_NEGATIVE)
    schedule: str = option("linear", "linear: decrease learning rates and entropy bonus to 0", SCHEDULES)
    optimizer_eps: float = option(1e-5, "epsilon of the optimizer, for numerical stability", within=POSITIVE)
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("tanh", "activation between layers", ACTIVATIONS)
    init: str = option("orthogonal", INIT_HELP, INITS, run="weights")
    memory: str = option("none", "memory of the policy within an episode: none, or gated recurrent units", MEMORIES)
    memory_size: int = option(64, "size of the memory's state")
    sequence_length: int = option(32, "steps through which gradients of a memory flow back; must divide rollout_steps")
    predict_draw: float = option(
        0.0, "weight of a loss that trains the memory to predict the draw; 0 for none", within=NOT_NEGATIVE
    )
    critic_context: bool = option(
        False,
        "asymmetric critic: it observes the draw, instead of having a memory of its own; only training uses the critic",
    )
    normalize_observations: bool = option(True, "shift and scale observations by their running moments")
    max_grad_norm: float = option(
        0.5, "clip each network's gradient to this norm; 0 for no clipping", within=NOT_NEGATIVE
    )

    CHECKS: ClassVar[tuple[Check, ...]] = (
        (_check_hidden_sizes, ("hidden_sizes",)),
        (_check_memory, ("memory", "memory_size", "sequence_length", "predict_draw", "rollout_steps")),
    )


@dataclass(frozen=True, kw_only=True)
class EpochsConfig(RolloutConfig):
    """Options of algorithms that learn from a rollout for several epochs, with the defaults of PPO."""

    epochs: int = option(10, "passes over each rollout", within=AT_LEAST_1)
    lr: float = option(0.0003, "learning rate of actor and critic (Adam)", within=POSITIVE)
    state_dependent_std: bool = option(
        False,
        "let the standard deviation of continuous actions depend on the observation; a student must match its teacher",
        continuous=True,
    )
    ignored_sensors: tuple[str, ...] = option(
        (), "sensors that the networks do not use, named as in obs_hide:SENSOR; empty for none"
    )
    normalize_rewards: bool = option(
        True, "divide rewards by the running standard deviation of returns; reported returns are unscaled"
    )

    CHECKS: ClassVar[tuple[Check, ...]] = (
        *RolloutConfig.CHECKS,
        (_check_ignored_sensors, ("ignored_sensors", "normalize_observations")),
    )


@dataclass(frozen=True, kw_only=True)
class A2CConfig(RolloutConfig):
    """A2C: advantage actor-critic with separate networks and optimizers (Mnih et al. 2016).

    The defaults were tuned on LunarLander, on seeds of no published result.
    """

    updates: int = changed(RolloutConfig, "updates", 6000)
    rollout_steps: int = changed(RolloutConfig, "rollout_steps", 64)
    minibatches: int = option(1, "minibatches per rollout, each with a gradient step of its own", within=AT_LEAST_1)
    gamma: float = changed(RolloutConfig, "gamma", 0.996)
    gae_lambda: float = changed(RolloutConfig, "gae_lambda", 0.98)
    entropy_coef: float = changed(RolloutConfig, "entropy_coef", 0.003)
    actor_lr: float = option(0.002, "learning rate of the actor", within=POSITIVE)
    critic_lr: float = option(0.002, "learning rate of the critic", within=POSITIVE)
    optimizer: str = option("rmsprop", "optimizer of actor and critic", ("rmsprop", "adam"))
    activation: str = changed(RolloutConfig, "activation", "relu")
    reward_scale: float = option(0.1, "factor on rewards in the losses; reported returns are unscaled", within=POSITIVE)
    normalize_observations: bool = changed(RolloutConfig, "normalize_observations", False)
    normalize_advantages: bool = option(True, "scale each minibatch's advantages to mean 0 and standard deviation 1")


@dataclass(frozen=True, kw_only=True)
class PPOConfig(EpochsConfig):
    """PPO: clipped policy steps, several epochs a rollout (Schulman et al. 2017).

    The defaults are those of CleanRL and the paper for robots, with the same 2,048 transitions per rollout and
    minibatches of 64, but from 8 environments and with smaller initial standard deviations, which matter much
    (Andrychowicz et al. 2021, "What Matters In On-Policy Reinforcement Learning", section 3.2). A family of
    environments may override them (``EnvFamily.defaults``).
    """

    clip_range: float = option(0.2, "clip probability ratios to [1 - clip_range, 1 + clip_range]", within=POSITIVE)
    value_clip: float = option(
        0.0, "clip changes of the value function to this; 0 for no clipping", within=NOT_NEGATIVE
    )
    target_kl: float = option(
        0.0, "stop an update's epochs above this mean KL divergence; 0 for no limit", within=NOT_NEGATIVE
    )
    initial_std: float = option(
        0.5,
        "initial standard deviation of continuous actions; 1 is half of their range",
        continuous=True,
        within=POSITIVE,
    )
    normalize_advantages: bool = option(True, "scale each minibatch's advantages to mean 0 and standard deviation 1")


@dataclass(frozen=True, kw_only=True)
class DistillConfig(EpochsConfig):
    """Distillation: a student acts and imitates a teacher that observes the draw (Ross et al. 2011; Kumar et al. 2021).

    The critic learns the values of the student's policy, for algorithms that start from it.
    """

    teacher: str = option(
        "",
        "folder of the run to imitate, or of several seeds; its policy may observe the draw",
        run="teacher",
    )
    epochs: int = changed(EpochsConfig, "epochs", 4)
    lr: float = changed(EpochsConfig, "lr", 0.001)


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(AgentConfig):
    """REINFORCE: Monte Carlo policy gradient on complete episodes (Williams 1992)."""

    updates: int = option(
        250, "number of updates, each on num_envs x episodes_per_env complete episodes", within=AT_LEAST_1
    )
    episodes_per_env: int = option(1, "episodes of each sub-environment per update", within=AT_LEAST_1)
    gamma: float = changed(RolloutConfig, "gamma", 0.99)
    lr: float = option(0.003, "learning rate of the policy, and of the baseline if there is one", within=POSITIVE)
    schedule: str = changed(RolloutConfig, "schedule", "linear")
    # "normalize" punishes the last steps of truncated episodes, whose returns lack the rewards after the limit;
    # "learned" estimates them
    baseline: str = option(
        "learned",
        "baseline of returns: none, a learned value function, or normalization to mean 0 and standard deviation 1",
        ("none", "normalize", "learned"),
    )
    entropy_coef: float = changed(RolloutConfig, "entropy_coef", 0.0)
    max_grad_norm: float = changed(RolloutConfig, "max_grad_norm", 0.0)
    hidden_sizes: tuple[int, ...] = option((16, 32), "units of the hidden layers")
    memory: str = option("none", "only none; ppo and a2c train policies that remember", MEMORIES)

    state_dependent_std = True  # as in Gymnasium's tutorial

    CHECKS: ClassVar[tuple[Check, ...]] = (
        (_check_hidden_sizes, ("hidden_sizes",)),
        (_check_no_memory, ("memory",)),
    )


def check_same_networks(options: Any, others: Any, name: str, source: str) -> None:
    """Checks that networks can start from the weights of another run.

    Args:
        options: Configuration of the new run.
        others: Configuration of the other run.
        name: The option that names the other run, for messages.
        source: The other run's folder, for messages.

    Raises:
        ConfigError: Networks, or the scaling of observations or rewards, differ.
    """
    _check_actor(others, name, source)
    offered = [field.name for field in fields(options)]
    for shared in SHARED_BY_NETWORKS:
        mine, theirs = (getattr(each, shared) for each in (options, others))
        if mine != theirs and not (shared == "ignored_sensors" and {*mine} == {*theirs}):  # in any order
            if shared not in offered:
                raise ConfigError(f"{name}: {source} has {shared} {theirs!r}, which this algorithm does not offer.")
            check_same(shared, mine, theirs, name, source)


def check_same(option: str, mine: object, theirs: object, name: str, source: str) -> None:
    """Checks that a run has the same value of an option as the run that ``name`` names.

    Raises:
        ConfigError: Their values differ.
    """
    if mine != theirs:
        raise ConfigError(
            f"{name}: {source} has {option} {theirs!r}, and this run {mine!r}, so its weights do not fit. Give both "
            f"the same: `{option}={theirs!r}`"
        )


def _check_actor(others: Any, name: str, source: str) -> None:
    if not isinstance(others, RolloutConfig):
        raise ConfigError(f"{name}: {source} has other networks; expected a run of a2c, ppo or distill.")


def check_teacher(options: Any, others: Any, name: str, source: str) -> None:
    """Checks that the policy of another run can be imitated; for arguments see ``check_same_networks``.

    Raises:
        ConfigError: The policy is not of a2c, ppo or distill, has a memory, or other standard deviations.
    """
    _check_actor(others, name, source)
    if others.memory != "none":
        raise ConfigError(
            f"{name}: {source} has a memory; expected a policy without one, which observes the draw instead."
        )
    theirs = others.state_dependent_std
    if theirs != options.state_dependent_std:
        raise ConfigError(
            f"{name}: {source} has state_dependent_std {theirs}, and its student needs the same: "
            f"`state_dependent_std={theirs}`"
        )
