from __future__ import annotations

from typing import Any

import pytest

from gym_dr.errors import ConfigError, UnknownNameError
from gym_dr.training.actor_critic import memory_units
from gym_dr.training.config import MAX_MEMORY, A2CConfig, PPOConfig, ReinforceConfig


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
        ({"episodes_per_env": 0}, "episodes_per_env: expected at least 1"),
        ({"lr": 0.0}, "lr: expected above 0"),
        ({"schedule": "cosine"}, "Unknown schedule 'cosine'"),
        ({"baseline": "mean"}, "Unknown baseline 'mean'. Did you mean 'learned'"),
    ],
)
def test_impossible_values_of_reinforce_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        ReinforceConfig(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"memory": "lstm"}, "Unknown memory 'lstm'. Known: gru, none"),
        ({"memory_size": 32}, "memory_size: has no effect without a memory: add `memory='gru'`"),
        ({"sequence_length": 16}, "sequence_length: has no effect without a memory: add `memory='gru'`"),
        ({"memory": "gru", "memory_size": 0}, f"memory_size: expected 1 to {MAX_MEMORY}, got 0"),
        ({"memory": "gru", "sequence_length": 0}, "sequence_length: expected a divisor of rollout_steps"),
        (
            {"memory": "gru", "rollout_steps": 12, "sequence_length": 5},
            r"sequence_length: expected a divisor of rollout_steps \(12\), such as 3, 4, 6, 12, got 5",
        ),
    ],
)
@pytest.mark.parametrize("cls", [A2CConfig, PPOConfig])
def test_impossible_memories_are_refused(cls: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        cls(**values)


@pytest.mark.parametrize("cls", [A2CConfig, PPOConfig])
def test_memories_may_have_any_size_and_sequences_any_length_that_divides_a_rollout(cls: Any) -> None:
    for size, length in ((1, 1), (MAX_MEMORY, 12), (7, 6)):
        config = cls(memory="gru", memory_size=size, sequence_length=length, rollout_steps=12)
        assert memory_units(config) == size
    assert memory_units(cls(rollout_steps=7)) == 0  # that the default length divides it does not matter then


def test_reinforce_refuses_a_memory_and_says_why_and_what_to_use() -> None:
    with pytest.raises(ConfigError, match=r"memory: expected none, got 'gru'\. .*complete episodes.*ppo or a2c"):
        ReinforceConfig(memory="gru")
