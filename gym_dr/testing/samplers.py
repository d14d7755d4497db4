"""What every sampler of parameters promises, the fixed one and those that learn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.randomization.space import ParamSpace
from gym_dr.testing.environments import assert_same
from gym_dr.wrappers.record import EpisodeRecord

SEEDS = np.arange(40, 52, dtype=np.uint64)
INDEX = np.arange(12) % 5


@dataclass(frozen=True, kw_only=True)
class SamplerCase:
    """A sampler of one space and episodes that it may learn from."""

    make: Callable[[], Any]  # a fresh ParamSampler
    space: ParamSpace
    episodes: Sequence[EpisodeRecord]


def the_same_key_gives_the_same_draw_however_many_are_drawn_at_once(case: SamplerCase) -> None:
    sampler, order = case.make(), np.random.default_rng(0).permutation(len(SEEDS))
    drawn = sampler.draw(SEEDS, INDEX)
    assert set(drawn) == set(sampler.support)
    assert_same(sampler.draw(SEEDS[order], INDEX[order]), {name: values[order] for name, values in drawn.items()})
    assert_same(case.make().draw(SEEDS[3:4], INDEX[3:4]), {name: values[3:4] for name, values in drawn.items()})
    for seeds, index in ((SEEDS + np.uint64(100), INDEX), (SEEDS, INDEX + 100)):
        assert any((sampler.draw(seeds, index)[name] != values).any() for name, values in drawn.items())


def draws_stay_in_the_widest_support_and_change_with_the_version_alone(case: SamplerCase) -> None:
    sampler = case.make()
    for _ in range(3):
        version, drawn, state = sampler.version, sampler.draw(SEEDS, INDEX), sampler.state()
        assert sampler.version == version  # looking changes nothing
        for name, values in drawn.items():
            low, high = sampler.support[name].support(case.space[name].nominal)
            assert (values.dtype, values.shape) == (np.float64, SEEDS.shape)
            assert ((values >= low) & (values <= high)).all(), name
            assert case.space[name].low <= low <= high <= case.space[name].high
        sampler.update(case.episodes)
        after = sampler.draw(SEEDS, INDEX)
        assert all((after[name] == values).all() for name, values in drawn.items()) == (sampler.version == version)
        assert (sampler.version is None) == (version is None)
        assert version is not None or sampler.state() == state


def its_state_goes_through_a_file_and_gives_the_same_draws(case: SamplerCase) -> None:
    sampler, restored = case.make(), case.make()
    sampler.update(case.episodes)
    restored.load_state(json.loads(json.dumps(sampler.state())))  # plain values, as checkpoints hold them
    for _ in range(2):
        assert restored.version == sampler.version
        assert_same(restored.draw(SEEDS, INDEX), sampler.draw(SEEDS, INDEX))
        sampler.update(case.episodes), restored.update(case.episodes)


SAMPLER_CONTRACTS: tuple[Callable[[SamplerCase], None], ...] = (
    the_same_key_gives_the_same_draw_however_many_are_drawn_at_once,
    draws_stay_in_the_widest_support_and_change_with_the_version_alone,
    its_state_goes_through_a_file_and_gives_the_same_draws,
)
