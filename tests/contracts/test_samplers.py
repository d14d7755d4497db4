"""Every sampler keeps every contract; two of the tests' own show what the contracts can tell apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gym_dr import EpisodeRecord, Randomization
from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.randomization.draws import draw
from gym_dr.randomization.presets import resolve
from gym_dr.testing.samplers import SAMPLER_CONTRACTS, SamplerCase

SUPPORT = resolve({"gravity": (-12.0, -2.0), "wind_power": (0.0, 20.0), "enable_wind": True}, LUNAR_LANDER)
EPISODES = [
    EpisodeRecord(
        env_index=i, seed=i, draw_index=0, params={}, episode_return=float(i), length=9, terminated=bool(i % 2)
    )
    for i in range(4)
]


class Keyed:
    """Keyed draws of a randomization: what the fixed sampler is."""

    version: int | None = None

    def __init__(self, support: Randomization) -> None:
        self.support = support

    def draw(self, seeds: Any, draw_index: Any) -> dict[str, Any]:
        return draw(self.support, LUNAR_LANDER, seeds, draw_index)

    def update(self, episodes: Any) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Any) -> None: ...


class Learning(Keyed):
    """Draws other values after each update."""

    version: int = 0  # type: ignore[assignment]  # here never None

    def draw(self, seeds: Any, draw_index: Any) -> dict[str, Any]:
        return super().draw(seeds ^ np.uint64(self.version << 32), draw_index)

    def update(self, episodes: Any) -> None:
        self.version += 1

    def state(self) -> dict[str, Any]:
        return {"version": self.version}

    def load_state(self, state: Any) -> None:
        self.version = state["version"]


class Forgetful(Learning):
    """Leaves its version out of its state."""

    def load_state(self, state: Any) -> None: ...


# samplers that ship, and those of the tests
SAMPLERS = {"keyed": lambda: Keyed(SUPPORT), "learning": lambda: Learning(SUPPORT)}


def case_of(make: Callable[[], Any]) -> SamplerCase:
    return SamplerCase(make=make, space=LUNAR_LANDER, episodes=EPISODES)


@pytest.mark.parametrize("contract", SAMPLER_CONTRACTS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name: str, contract: Callable[[SamplerCase], None]) -> None:
    contract(case_of(SAMPLERS[name]))


def test_a_sampler_that_forgets_breaks_its_contract() -> None:
    with pytest.raises(AssertionError):
        SAMPLER_CONTRACTS[-1](case_of(lambda: Forgetful(SUPPORT)))
