"""The configuration of gym_dr's own algorithms. Nothing heavy is imported: the command line builds options from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gym_dr.options import check_choices, expect, option

MAX_WEIGHTS = 2**26  # between hidden layers: a quarter of a gigabyte

# What holds for a whole episode, and of which a batch has few examples, is easily memorised. Smaller inputs are
# learned more slowly: from [-1, 1] A2C learned worse than without the draw, from a quarter of it better
CONTEXT_SPAN = 0.25

SCHEDULES, ACTIVATIONS, INITS = ("constant", "linear"), ("relu", "tanh"), ("torch", "orthogonal")

_BOUNDS: dict[str, Callable[[float], bool]] = {
    "at least 1": lambda value: value >= 1,
    "between 0 and 1": lambda value: 0.0 <= value <= 1.0,
    "above 0 and finite": lambda value: 0.0 < value < math.inf,
    "0 or above and finite": lambda value: 0.0 <= value < math.inf,
}


@dataclass(frozen=True, kw_only=True)
class A2CConfig:
    """A2C: advantage actor-critic with separate networks and optimizers (Mnih et al. 2016).

    The defaults were searched on LunarLander with ``benchmarks/search_a2c.py``.
    """

    updates: int = option(6000, "rollouts of rollout_steps x num_envs transitions, each learned from once")
    rollout_steps: int = option(64, "steps of each sub-environment between two updates")
    minibatches: int = option(1, "parts of a rollout, each with a gradient step of its own")
    gamma: float = option(0.996, "discount factor")
    gae_lambda: float = option(0.98, "lambda of generalized advantage estimation: 0 one step, 1 Monte Carlo")
    entropy_coef: float = option(0.003, "weight of the entropy bonus")
    actor_lr: float = option(0.002, "learning rate of the actor")
    critic_lr: float = option(0.002, "learning rate of the critic")
    schedule: str = option("linear", "linear: learning rates and entropy bonus fall to 0", SCHEDULES)
    optimizer: str = option("rmsprop", "of actor and critic", ("rmsprop", "adam"))
    optimizer_eps: float = option(1e-5, "added to the root of the mean squared gradient")
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("relu", "between layers", ACTIVATIONS)
    init: str = option("orthogonal", "first weights: torch's uniform ones or orthogonal (Saxe et al. 2014)", INITS)
    reward_scale: float = option(0.1, "rewards are multiplied by it for the losses, not for what is reported")
    critic_context: bool = option(False, "show the draw to the critic, which is needed in training only")
    normalize_observations: bool = option(False, "shift and scale observations by their running moments")
    normalize_advantages: bool = option(True, "scale each update's advantages to mean 0 and standard deviation 1")
    max_grad_norm: float = option(0.5, "largest norm of each network's gradient; 0 for no clipping")

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


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """PPO: clipped policy steps, several epochs a rollout (Schulman et al. 2017).

    The defaults are those that CleanRL and the paper have for robots, with the same 2,048 transitions a rollout and
    minibatches of 64, but from 8 environments and with smaller deviations at first, which matter much (Andrychowicz et
    al. 2021, "What Matters In On-Policy Reinforcement Learning", section 3.2). A family of environments may have others
    (``EnvFamily.defaults``).
    """

    updates: int = option(488, "rollouts of rollout_steps x num_envs transitions, each learned from for some epochs")
    rollout_steps: int = option(256, "steps of each sub-environment between two updates")
    epochs: int = option(10, "times that a rollout is learned from")
    minibatches: int = option(32, "parts of a rollout in an epoch, each with a gradient step of its own")
    gamma: float = option(0.99, "discount factor")
    gae_lambda: float = option(0.95, "lambda of generalized advantage estimation: 0 one step, 1 Monte Carlo")
    clip_range: float = option(0.2, "how far from 1 a ratio of probabilities still pulls")
    value_clip: float = option(0.0, "how far values may move from those before the first epoch; 0 for anywhere")
    target_kl: float = option(0.0, "mean KL divergence of an epoch after which there is no further one; 0 for any")
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    lr: float = option(0.0003, "learning rate of actor and critic, by Adam")
    schedule: str = option("linear", "linear: learning rate and entropy bonus fall to 0", SCHEDULES)
    optimizer_eps: float = option(1e-5, "added to the root of the mean squared gradient")
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("tanh", "between layers", ACTIVATIONS)
    init: str = option("orthogonal", "first weights: torch's uniform ones or orthogonal (Saxe et al. 2014)", INITS)
    initial_std: float = option(0.5, "standard deviation of continuous actions at first, in halves of their range")
    state_dependent_std: bool = option(False, "let the actor choose the deviation of continuous actions by observation")
    critic_context: bool = option(False, "show the draw to the critic, which is needed in training only")
    normalize_observations: bool = option(True, "shift and scale observations by their running moments")
    normalize_rewards: bool = option(True, "divide rewards by the running deviation of returns, not what is reported")
    normalize_advantages: bool = option(True, "scale each minibatch's advantages to mean 0 and standard deviation 1")
    max_grad_norm: float = option(0.5, "largest norm of each network's gradient; 0 for no clipping")

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


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig:
    """REINFORCE: Monte Carlo policy gradient on complete episodes (Williams 1992)."""

    updates: int = option(250, "gradient steps, each on num_envs x episodes_per_env complete episodes")
    episodes_per_env: int = option(1, "episodes of each sub-environment in an update")
    gamma: float = option(0.99, "discount factor")
    lr: float = option(0.003, "learning rate of the policy, and of the baseline if there is one")
    schedule: str = option("linear", "linear: learning rate and entropy bonus fall to 0 over the updates", SCHEDULES)
    # "normalize" punishes the last steps of episodes that the limit cuts, since their returns lack their future;
    # "learned" knows what the rest is worth
    baseline: str = option(
        "learned", "subtracted from returns; normalize: mean 0, deviation 1", ("none", "normalize", "learned")
    )
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    max_grad_norm: float = option(0.0, "largest norm of each network's gradient; 0 for no clipping")
    hidden_sizes: tuple[int, ...] = option((16, 32), "units of the hidden layers")

    def __post_init__(self) -> None:
        _check(
            self,
            {
                "at least 1": ("updates", "episodes_per_env"),
                "between 0 and 1": ("gamma",),
                "above 0 and finite": ("lr",),
            },
        )


def _check(config: Any, bounds: dict[str, tuple[str, ...]]) -> None:
    """Checks fields by name, and those that every algorithm here has."""
    always = {"0 or above and finite": ("entropy_coef", "max_grad_norm")}
    for expected, names in itertools.chain(bounds.items(), always.items()):
        for name in names:
            expect(_BOUNDS[expected](getattr(config, name)), name, expected, getattr(config, name))
    check_choices(config)
    sizes = config.hidden_sizes
    expect(len(sizes) >= 1 and min(sizes) >= 1, "hidden_sizes", "one or more layers of at least 1 unit", sizes)
    # a configuration may be a stranger's, and evaluating his run must not take all memory
    weights = sum(before * after for before, after in pairwise(sizes))
    small = max(sizes) <= 2**16 and weights <= MAX_WEIGHTS
    expect(small, "hidden_sizes", f"at most {2**16} units in a layer and {MAX_WEIGHTS} weights between them", sizes)


def _check_rollout_steps(config: Any) -> None:
    # of two steps in a row at most one is a reset, so that no rollout is without a step that counts
    expect(config.rollout_steps >= 2, "rollout_steps", "at least 2", config.rollout_steps)
