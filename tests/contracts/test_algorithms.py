"""Every registered algorithm, and the one of the example of a plugin, keeps every contract."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gym_dr.compiled.processors import using_threads
from gym_dr.errors import ConfigError
from gym_dr.runs.checkpoint import load_newest
from gym_dr.testing.algorithms import (
    ALGORITHM_CONTRACTS,
    CONTINUOUS,
    DISCRETE,
    AlgorithmCase,
    rows,
    spaces_that_it_cannot_use_are_refused_before_training,
)
from gym_dr.testing.playing import assert_same
from gym_dr.training.api import Algorithm, Session
from gym_dr.training.registry import ALGORITHMS
from tests.plugins.installed import load

# options with which a Bandit is solved; an algorithm without an entry is tried with its own
OPTIONS: dict[str, dict[str, Any]] = {
    "a2c": {
        "updates": 30,
        "rollout_steps": 16,
        "hidden_sizes": (16,),
        "actor_lr": 0.02,
        "critic_lr": 0.02,
        "gamma": 0.0,
    },
    "ppo": {
        "updates": 12,
        "rollout_steps": 16,
        "hidden_sizes": (16,),
        "minibatches": 4,
        "lr": 0.02,
        "gamma": 0.0,
    },
    "distill": {"updates": 12, "rollout_steps": 16, "hidden_sizes": (16,), "minibatches": 4, "lr": 0.02, "gamma": 0.0},
    "reinforce": {"updates": 40, "episodes_per_env": 4, "hidden_sizes": (16,), "lr": 0.05, "gamma": 0.5}
    | {"baseline": "normalize"},
    "cem": {"updates": 10, "population": 24, "elite": 6, "episode_steps": 8},
}

# what else an algorithm can do, tried beside its defaults
MORE: dict[tuple[str, str], dict[str, Any]] = {
    (name, "memory"): {"memory": "gru", "memory_size": 4, "sequence_length": 8} for name in ("a2c", "ppo", "distill")
}


def algorithms() -> list[Algorithm]:
    found = {algorithm.name: algorithm for algorithm in ALGORITHMS.values()}
    load("own_algorithm").gym_dr_register_algorithms(lambda algorithm: found.setdefault(algorithm.name, algorithm))
    return list(found.values())


def cases() -> dict[str, AlgorithmCase]:
    found: dict[str, AlgorithmCase] = {}
    for algorithm in sorted(algorithms(), key=lambda algorithm: algorithm.name == "distill"):  # which needs a teacher
        own, teacher = OPTIONS.get(algorithm.name, {}), found["ppo"] if algorithm.name == "distill" else None
        found[algorithm.name] = AlgorithmCase(algorithm=algorithm, options=own, imitates=teacher)
        for (name, what), options in MORE.items():
            if name == algorithm.name:
                both = own | options
                found[f"{name} with {what}"] = AlgorithmCase(algorithm=algorithm, options=both, imitates=teacher)
    return found


def only(kind: type[gym.Space[Any]]) -> Algorithm:
    """A2C that refuses other actions, as its users' environments may have."""
    a2c = ALGORITHMS.get("a2c")

    def train(session: Session, config: Any) -> None:
        with contextlib.closing(session.make_envs(config.rollout_steps)) as envs:
            if not isinstance(envs.single_action_space, kind):
                raise ConfigError(f"Expected actions in a {kind.__name__}, got {envs.single_action_space}.")
        a2c.train_function()(session, config)

    return dataclasses.replace(a2c, train=train)


@pytest.mark.parametrize("contract", ALGORITHM_CONTRACTS)
@pytest.mark.parametrize(("kind", "bandit"), [(gym.spaces.Discrete, DISCRETE), (gym.spaces.Box, CONTINUOUS)])
def test_an_algorithm_of_discrete_or_continuous_actions_alone(
    kind: type[gym.Space[Any]], bandit: str, contract: Callable[[AlgorithmCase, Path], None], tmp_path: Path
) -> None:
    contract(AlgorithmCase(algorithm=only(kind), options=OPTIONS["a2c"], bandits=(bandit,)), tmp_path)


def test_an_algorithm_that_takes_actions_which_it_is_said_to_refuse_fails(tmp_path: Path) -> None:
    case = AlgorithmCase(algorithm=ALGORITHMS.get("a2c"), options=OPTIONS["a2c"], bandits=(DISCRETE,))
    with pytest.raises(AssertionError):
        spaces_that_it_cannot_use_are_refused_before_training(case, tmp_path)


# the memory is the same in all, so that PPO's is the sibling of the slow ones
SLOW = ("a2c with memory", "distill with memory")


CASES = [pytest.param(case, id=name, marks=pytest.mark.slow if name in SLOW else ()) for name, case in cases().items()]


@pytest.mark.parametrize("contract", ALGORITHM_CONTRACTS)
@pytest.mark.parametrize("case", CASES)
def test_algorithms(case: AlgorithmCase, contract: Callable[[AlgorithmCase, Path], None], tmp_path: Path) -> None:
    contract(case, tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_algorithms_train_the_same_on_any_number_of_threads(case: AlgorithmCase, tmp_path: Path) -> None:
    short: dict[str, Any] = {"updates": 2, "checkpoint_every": 2, "num_envs": 40}
    found = []
    for count in (1, 3):
        with using_threads(count):
            folder = case.train(tmp_path / f"{count}" / "run", "gym_dr/CartPoleDR-v1", **short)
        found.append([rows(folder.metrics), rows(folder.draws), load_newest(folder)["state"]])
    assert_same(*found)
