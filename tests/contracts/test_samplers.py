"""Every registered sampler, and one that learns, keeps every contract; one that forgets breaks one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler, Task
from gym_dr.testing.samplers import NUM_ENVS, SAMPLER_CONTRACTS, SamplerCase, episodes_of
from tests.plugins.parts.growing import GROWING, GrowingSampler

SUPPORT = resolve({"gravity": (-12.0, -2.0), "wind_power": (0.0, 20.0), "enable_wind": True}, LUNAR_LANDER)
LEARNING = [sampler for sampler in SAMPLERS.values() if sampler.name != UNIFORM] + [GROWING]


class ForgetfulSampler(GrowingSampler):
    """Takes over nothing from a checkpoint."""

    def load_state(self, state: Mapping[str, Any]) -> None: ...


def case_of(sampler: Sampler) -> SamplerCase:
    task = Task(num_envs=NUM_ENVS, reward_threshold=0.0)
    return SamplerCase(make=lambda: sampler.for_space(LUNAR_LANDER, SUPPORT, task=task), space=LUNAR_LANDER)


@pytest.mark.parametrize("contract", SAMPLER_CONTRACTS)
@pytest.mark.parametrize("sampler", [*SAMPLERS.values(), GROWING], ids=lambda sampler: sampler.name)
def test_samplers(sampler: Sampler, contract: Callable[[SamplerCase], None]) -> None:
    contract(case_of(sampler))


@pytest.mark.parametrize("sampler", LEARNING, ids=lambda sampler: sampler.name)
def test_those_that_learn_do_so_in_these_cases(sampler: Sampler) -> None:
    case = case_of(sampler)
    made = case.make()
    made.update(episodes_of(case, made))
    assert made.version > 0


def test_a_sampler_that_forgets_breaks_its_contract() -> None:
    with pytest.raises(AssertionError):
        SAMPLER_CONTRACTS[-1](case_of(Sampler(name="forgetful", summary="", make=ForgetfulSampler)))
