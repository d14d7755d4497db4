"""A robot of one's own keeps the contracts that our environments keep."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS, Contract, Mode
from tests.contracts.test_environments import SAME
from tests.registered import forgotten_afterwards

ROBOT = "tests.envs.mujoco.own_robots.swing:tests/Swing-v0"
CELLS = [
    pytest.param(name, contract, marks=[pytest.mark.slow] if name == "async" and contract.__name__ != SAME else [])
    for name, contracts in ENVIRONMENT_CONTRACTS.items()
    for contract in contracts
]


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    """Has the first test import the module, as its id says, whether or not another has imported it before."""
    with forgotten_afterwards(), pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, ROBOT.partition(":")[0], raising=False)
        yield


@pytest.mark.parametrize(("name", "contract"), CELLS)
def test_the_robot(name: str, contract: Contract) -> None:
    contract(Mode(env_id=ROBOT, name=name))
