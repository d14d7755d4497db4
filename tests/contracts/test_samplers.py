"""Every registered sampler, and one that learns, keeps every contract."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import UnknownNameError
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler, TrainingInfo
from gym_dr.testing.samplers import (
    NUM_ENVS,
    SAMPLER_CONTRACTS,
    SamplerCase,
    episodes_of,
)
from tests.plugins.installed import load
from tests.plugins.parts.growing import GROWING

SUPPORT = resolve({"gravity": (-12.0, -2.0), "wind_power": (0.0, 20.0), "enable_wind": True}, LUNAR_LANDER)
ALL: list[Sampler] = [*SAMPLERS.values(), GROWING, load("own_sampler").WIDENING]
LEARNING = [sampler for sampler in ALL if sampler.name != UNIFORM]


def case_of(sampler: Sampler) -> SamplerCase:
    training = TrainingInfo(num_envs=NUM_ENVS, reward_threshold=0.0)
    return SamplerCase(make=lambda: sampler.for_space(LUNAR_LANDER, SUPPORT, training=training), space=LUNAR_LANDER)


@pytest.mark.parametrize("contract", SAMPLER_CONTRACTS)
@pytest.mark.parametrize("sampler", ALL, ids=lambda sampler: sampler.name)
def test_samplers(sampler: Sampler, contract: Callable[[SamplerCase], None]) -> None:
    contract(case_of(sampler))


@pytest.mark.parametrize("sampler", ALL, ids=lambda sampler: sampler.name)
def test_options_are_frozen_and_documented_and_unknown_ones_refused_with_the_nearest(sampler: Sampler) -> None:
    fields = sampler.option_fields()
    assert sampler.summary
    assert all(field.metadata["help"] for field in fields)
    with pytest.raises(UnknownNameError, match="Did you mean" if fields else "no_such"):
        sampler.make_options({f"{fields[0].name}x" if fields else "no_such": 1})
    if fields:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(sampler.make_options({}), fields[0].name, 1)


@pytest.mark.parametrize("sampler", LEARNING, ids=lambda sampler: sampler.name)
def test_those_that_learn_do_so_in_these_cases(sampler: Sampler) -> None:
    case = case_of(sampler)
    made = case.make()
    made.update(episodes_of(case, made))
    assert made.version > 0
