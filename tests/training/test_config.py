from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from gym_dr.errors import ConfigError, UnknownNameError
from gym_dr.training.config import A2CConfig, ReinforceConfig


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"updates": 0}, "updates: expected at least 1, got 0"),
        ({"rollout_steps": -1}, "rollout_steps: expected at least 2"),
        ({"gamma": 1.5}, "gamma: expected between 0 and 1"),
        ({"gae_lambda": -0.1}, "gae_lambda: expected between 0 and 1"),
        ({"gamma": float("nan")}, "gamma"),
        ({"actor_lr": 0.0}, "actor_lr: expected above 0"),
        ({"critic_lr": float("inf")}, "critic_lr"),
        ({"entropy_coef": -1.0}, "entropy_coef: expected 0 or above"),
        ({"max_grad_norm": -1.0}, "max_grad_norm: expected 0 or above"),
        ({"optimizer": "sgd"}, "Unknown optimizer 'sgd'. Known: adam, rmsprop"),
        ({"activation": "gelu"}, "Unknown activation 'gelu'"),
        ({"hidden_sizes": ()}, "hidden_sizes: expected one or more layers"),
        ({"hidden_sizes": (32, 0)}, "hidden_sizes"),
    ],
)
def test_impossible_values_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        A2CConfig(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"updates": 0}, "updates: expected at least 1"),
        ({"episodes_per_env": 0}, "episodes_per_env: expected at least 1"),
        ({"gamma": -0.1}, "gamma: expected between 0 and 1"),
        ({"lr": 0.0}, "lr: expected above 0"),
        ({"entropy_coef": -1.0}, "entropy_coef: expected 0 or above"),
        ({"schedule": "cosine"}, "Unknown schedule 'cosine'"),
        ({"baseline": "mean"}, "Unknown baseline 'mean'. Did you mean 'learned'"),
        ({"hidden_sizes": ()}, "hidden_sizes: expected one or more layers"),
    ],
)
def test_impossible_values_of_reinforce_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        ReinforceConfig(**values)


@pytest.mark.parametrize("cls", [A2CConfig, ReinforceConfig])
def test_every_field_is_documented(cls: Any) -> None:
    assert all(len(field.metadata["help"]) > 10 for field in fields(cls))


def test_it_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        A2CConfig().gamma = 0.5  # type: ignore[misc]
