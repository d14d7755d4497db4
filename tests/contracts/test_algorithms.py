"""Every registered algorithm, and the one of the example of a plugin, keeps every contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gym_dr.testing.algorithms import ALGORITHM_CONTRACTS, AlgorithmCase
from gym_dr.training.api import Algorithm
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


# the memory is the same in all, so that PPO's is the sibling of the slow ones
SLOW = ("a2c with memory", "distill with memory")


@pytest.mark.parametrize("contract", ALGORITHM_CONTRACTS)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=pytest.mark.slow if name in SLOW else ()) for name, case in cases().items()],
)
def test_algorithms(case: AlgorithmCase, contract: Callable[[AlgorithmCase, Path], None], tmp_path: Path) -> None:
    contract(case, tmp_path)
