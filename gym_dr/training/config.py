"""The configuration of gym_dr's own algorithms. Nothing heavy is imported: the command line builds options from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from gym_dr.errors import ConfigError
from gym_dr.training.api import option

MAX_WEIGHTS = 2**26  # between hidden layers: a quarter of a gigabyte


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
    schedule: str = option("linear", "constant, or linear: learning rates and entropy bonus fall to 0")
    optimizer: str = option("rmsprop", "rmsprop or adam, for actor and critic")
    optimizer_eps: float = option(1e-5, "added to the root of the mean squared gradient")
    hidden_sizes: tuple[int, ...] = option((64, 64), "units of the hidden layers of both networks")
    activation: str = option("relu", "relu or tanh, between layers")
    init: str = option("orthogonal", "first weights: torch (uniform) or orthogonal (Saxe et al. 2014)")
    reward_scale: float = option(0.1, "rewards are multiplied by it for the losses, not for what is reported")
    critic_context: bool = option(False, "show the draw to the critic, which is needed in training only")
    normalize_advantages: bool = option(True, "scale each update's advantages to mean 0 and standard deviation 1")
    max_grad_norm: float = option(0.5, "largest norm of each network's gradient; 0 for no clipping")

    def __post_init__(self) -> None:
        _expect(self.updates >= 1, "updates", "at least 1", self.updates)
        _expect(self.minibatches >= 1, "minibatches", "at least 1", self.minibatches)
        # of two steps in a row at most one is a reset, so that no rollout is without a step that counts
        _expect(self.rollout_steps >= 2, "rollout_steps", "at least 2", self.rollout_steps)
        for name in ("gamma", "gae_lambda"):
            _expect(0.0 <= getattr(self, name) <= 1.0, name, "between 0 and 1", getattr(self, name))
        for name in ("actor_lr", "critic_lr", "optimizer_eps", "reward_scale"):
            _expect(0.0 < getattr(self, name) < math.inf, name, "above 0 and finite", getattr(self, name))
        for name in ("entropy_coef", "max_grad_norm"):
            _expect(0.0 <= getattr(self, name) < math.inf, name, "0 or above and finite", getattr(self, name))
        for name, choices in (
            ("optimizer", ("rmsprop", "adam")),
            ("activation", ("relu", "tanh")),
            ("schedule", ("constant", "linear")),
            ("init", ("torch", "orthogonal")),
        ):
            _expect(getattr(self, name) in choices, name, " or ".join(choices), getattr(self, name))
        _expect_layers(self.hidden_sizes)


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig:
    """REINFORCE: Monte Carlo policy gradient on complete episodes (Williams 1992)."""

    updates: int = option(250, "gradient steps, each on num_envs x episodes_per_env complete episodes")
    episodes_per_env: int = option(1, "episodes of each sub-environment in an update")
    gamma: float = option(0.99, "discount factor")
    lr: float = option(0.003, "learning rate of the policy, and of the baseline if there is one")
    schedule: str = option("linear", "constant, or linear: learning rate and entropy bonus fall to 0 over the updates")
    # "normalize" punishes the last steps of episodes that the limit cuts, since their returns lack their future;
    # "learned" knows what the rest is worth
    baseline: str = option("learned", "subtracted from returns: none, normalize (mean 0, deviation 1) or learned")
    entropy_coef: float = option(0.0, "weight of the entropy bonus")
    max_grad_norm: float = option(0.0, "largest norm of each network's gradient; 0 for no clipping")
    hidden_sizes: tuple[int, ...] = option((16, 32), "units of the hidden layers")

    def __post_init__(self) -> None:
        for name in ("updates", "episodes_per_env"):
            _expect(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        _expect(0.0 <= self.gamma <= 1.0, "gamma", "between 0 and 1", self.gamma)
        _expect(0.0 < self.lr < math.inf, "lr", "above 0 and finite", self.lr)
        for name in ("entropy_coef", "max_grad_norm"):
            _expect(0.0 <= getattr(self, name) < math.inf, name, "0 or above and finite", getattr(self, name))
        for name, choices in (
            ("schedule", ("constant", "linear")),
            ("baseline", ("none", "normalize", "learned")),
        ):
            _expect(getattr(self, name) in choices, name, " or ".join(choices), getattr(self, name))
        _expect_layers(self.hidden_sizes)


def _expect(good: bool, name: str, expected: str, got: object) -> None:
    if not good:
        raise ConfigError(f"{name}: expected {expected}, got {got!r}.")


def _expect_layers(sizes: tuple[int, ...]) -> None:
    _expect(len(sizes) >= 1 and min(sizes) >= 1, "hidden_sizes", "one or more layers of at least 1 unit", sizes)
    # a configuration may be a stranger's, and evaluating his run must not take all memory
    weights = sum(before * after for before, after in pairwise(sizes))
    small = max(sizes) <= 2**16 and weights <= MAX_WEIGHTS
    _expect(small, "hidden_sizes", f"at most {2**16} units in a layer and {MAX_WEIGHTS} weights between them", sizes)
