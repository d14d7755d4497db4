"""Environments of one's own, from equations, robots or functions, keep the contracts that ours keep."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS
from gym_dr.testing.playing import Contract, Mode
from tests.contracts.test_environments import OWN, SAME
from tests.registered import forgotten_afterwards

IDS = (
    "examples.own_equations:mine/Quadrotor-v0",  # the tutorial's: two numbers as actions, and gusts
    "tests.envs.equations.own.tank:tests/Tank-v0",  # choices, and noise in first states and steps
    "tests.envs.equations.own.still:tests/Still-v0",  # nothing that is random, or that can be left out
    "tests.envs.mujoco.own_robots.swing:tests/Swing-v0",  # a robot
)
FUNCTIONS = ("tests.envs.slide_ids:tests/Slide-v0", "tests.envs.slide_ids:tests/Pendulum-v0")  # not native
WHOLE = IDS[0]  # the others share its code, or that of our robots, and are quick where they differ


def marks(env_id: str, name: str, contract: Contract) -> list[pytest.MarkDecorator]:
    if name == "async":  # worker processes are Gymnasium's, so one contract for one id is enough for every day
        quick = contract.__name__ == SAME and env_id == IDS[0]
    elif env_id in FUNCTIONS:
        quick = env_id == FUNCTIONS[0]  # the other one takes seconds
    else:
        quick = name != "sync" and (env_id == WHOLE or contract.__name__ in OWN)  # a function is quick in sync mode
    return [] if quick else [pytest.mark.slow]


CELLS = [
    pytest.param(env_id, name, contract, marks=marks(env_id, name, contract))
    for env_id in (*IDS, *FUNCTIONS)
    for name, contracts in ENVIRONMENT_CONTRACTS.items()
    for contract in contracts
    if env_id in IDS or name != "native"
]


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    """Has the first test import the modules, as their ids say, whether or not another has imported them before."""
    with forgotten_afterwards(), pytest.MonkeyPatch.context() as patch:
        for env_id in (*IDS, *FUNCTIONS):
            patch.delitem(sys.modules, env_id.partition(":")[0], raising=False)
        yield


@pytest.mark.parametrize(("env_id", "name", "contract"), CELLS)
def test_own_environments(env_id: str, name: str, contract: Contract) -> None:
    contract(Mode(env_id=env_id, name=name))
