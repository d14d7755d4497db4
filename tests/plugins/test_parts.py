"""Two families, an algorithm, a sampler and a robot, each a plugin of one small file, take no change to gym_dr.

They are loaded as installed packages are, held to the contracts, and trained together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr.plugins import loading
from gym_dr.plugins.loading import load_plugins
from gym_dr.testing.algorithms import ALGORITHM_CONTRACTS, AlgorithmCase
from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS
from gym_dr.testing.playing import Contract, Mode
from gym_dr.training.registry import ALGORITHMS
from tests.contracts.conftest import frames_without_opengl  # noqa: F401  a fixture for all tests here
from tests.registered import forgotten_afterwards

PARTS = ("point_mass", "spring", "policy_gradient", "growing", "rod")
# with physics in Python, as compiled equations, and on MuJoCo
ENV_IDS = ("parts/PointMass-v0", "parts/Spring-v0", "parts/Rod-v0")
ENV, ALGORITHM, SAMPLER = "parts/PointMass-v0", "policy-gradient", "growing"
OPTIONS: dict[str, Any] = {"updates": 30, "lr": 0.02, "discount": 0.0}
SAME = "everything_is_as_in_a_sync_environment"
CELLS = [
    # tests/contracts has the others of equations, robots and worker processes
    pytest.param(env_id, name, contract, marks=[] if is_new or is_same else [pytest.mark.slow])
    for env_id in ENV_IDS
    for name, contracts in ENVIRONMENT_CONTRACTS.items()
    for is_new in [env_id == ENV and name != "async"]
    for contract in contracts
    for is_same in [contract.__name__ == SAME and (name != "async" or env_id == ENV)]
]


@pytest.fixture(scope="module", autouse=True)
def _installed() -> Iterator[None]:
    """Has gym_dr find the parts as entry points of packages, and forget them afterwards."""
    found = [EntryPoint(part, f"{__package__}.parts.{part}", "gym_dr") for part in PARTS]
    with forgotten_afterwards(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "entry_points", lambda group: found)
        load_plugins.cache_clear()
        load_plugins()  # warns of a broken one
        yield
    load_plugins.cache_clear()


@pytest.mark.parametrize(("env_id", "name", "contract"), CELLS)
def test_the_environments(env_id: str, name: str, contract: Contract) -> None:
    contract(Mode(env_id=env_id, name=name))


@pytest.mark.parametrize("contract", ALGORITHM_CONTRACTS)
def test_the_algorithm(contract: Callable[[AlgorithmCase, Path], None], tmp_path: Path) -> None:
    contract(AlgorithmCase(algorithm=ALGORITHMS.get(ALGORITHM), options=OPTIONS), tmp_path)


def test_the_algorithm_trains_with_the_sampler_on_the_environment_and_is_evaluated(tmp_path: Path) -> None:
    budget = {"updates": 4, "num_envs": 4, "checkpoint_every": 2, "eval_episodes": 0}
    run: Any = gym_dr.train(ALGORITHM, env=ENV, sampler=SAMPLER, run_dir=tmp_path / "run", progress=False, **budget)
    assert len(run.metrics) == 4
    masses = run.draws["mass"]
    assert masses.between(0.5, 2.0).all()
    assert masses[:4].max() < 0.65 + 1e-9  # the sampler begins with the lowest tenth of the range, 0.5 to 0.65 kg
    results = gym_dr.evaluate(run, episodes=3, progress=False)
    assert len(results.episodes) == 6  # under nominal values and under the draws that it was trained on
