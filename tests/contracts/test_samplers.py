"""Every registered sampler, and one that learns, keeps every contract; one that forgets breaks one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gym_dr import EpisodeRecord
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import SAMPLERS, Sampler
from gym_dr.testing.samplers import SAMPLER_CONTRACTS, SamplerCase
from tests.plugins.parts.growing import GROWING, GrowingSampler

SUPPORT = resolve({"gravity": (-12.0, -2.0), "wind_power": (0.0, 20.0), "enable_wind": True}, LUNAR_LANDER)
EPISODES = [
    EpisodeRecord(
        env_index=i, seed=i, draw_index=0, params={}, episode_return=float(i), length=9, terminated=bool(i % 2)
    )
    for i in range(4)
]


class ForgetfulSampler(GrowingSampler):
    """Takes over nothing from a checkpoint."""

    def load_state(self, state: Mapping[str, Any]) -> None: ...


def case_of(sampler: Sampler) -> SamplerCase:
    return SamplerCase(make=lambda: sampler.for_space(LUNAR_LANDER, SUPPORT), space=LUNAR_LANDER, episodes=EPISODES)


@pytest.mark.parametrize("contract", SAMPLER_CONTRACTS)
@pytest.mark.parametrize("sampler", [*SAMPLERS.values(), GROWING], ids=lambda sampler: sampler.name)
def test_samplers(sampler: Sampler, contract: Callable[[SamplerCase], None]) -> None:
    contract(case_of(sampler))


def test_a_sampler_that_forgets_breaks_its_contract() -> None:
    with pytest.raises(AssertionError):
        SAMPLER_CONTRACTS[-1](case_of(Sampler(name="forgetful", summary="", make=ForgetfulSampler)))
