"""The configuration of gym_dr's own algorithms. Nothing heavy is imported: the command line builds options from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gym_dr.errors import ConfigError
from gym_dr.training.api import option


@dataclass(frozen=True, kw_only=True)
class A2CConfig:
    """A2C: advantage actor-critic with separate networks and optimizers (Mnih et al. 2016)."""

    updates: int = option(1000, "gradient steps, each on rollout_steps x num_envs transitions")
    rollout_steps: int = option(128, "steps of each sub-environment between two updates")
    gamma: float = option(0.999, "discount factor")
    gae_lambda: float = option(0.95, "lambda of generalized advantage estimation: 0 one step, 1 Monte Carlo")
    entropy_coef: float = option(0.01, "weight of the entropy bonus")
    actor_lr: float = option(0.001, "learning rate of the actor")
    critic_lr: float = option(0.005, "learning rate of the critic")
    optimizer: str = option("rmsprop", "rmsprop or adam, for actor and critic")
    hidden_sizes: tuple[int, ...] = option((32, 32), "units of the hidden layers of both networks")
    activation: str = option("relu", "relu or tanh, between layers")
    normalize_advantages: bool = option(False, "scale each update's advantages to mean 0 and standard deviation 1")
    max_grad_norm: float = option(0.0, "largest norm of each network's gradient; 0 for no clipping")

    def __post_init__(self) -> None:
        for name in ("updates", "rollout_steps"):
            _expect(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("gamma", "gae_lambda"):
            _expect(0.0 <= getattr(self, name) <= 1.0, name, "between 0 and 1", getattr(self, name))
        for name in ("actor_lr", "critic_lr"):
            _expect(0.0 < getattr(self, name) < math.inf, name, "above 0 and finite", getattr(self, name))
        for name in ("entropy_coef", "max_grad_norm"):
            _expect(0.0 <= getattr(self, name) < math.inf, name, "0 or above and finite", getattr(self, name))
        _expect(self.optimizer in ("rmsprop", "adam"), "optimizer", "rmsprop or adam", self.optimizer)
        _expect(self.activation in ("relu", "tanh"), "activation", "relu or tanh", self.activation)
        _expect(
            len(self.hidden_sizes) >= 1 and min(self.hidden_sizes) >= 1,
            "hidden_sizes",
            "one or more layers of at least 1 unit",
            self.hidden_sizes,
        )


def _expect(good: bool, name: str, expected: str, got: object) -> None:
    if not good:
        raise ConfigError(f"{name}: expected {expected}, got {got!r}.")
