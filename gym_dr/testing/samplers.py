"""What every sampler of parameters promises."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_dr.errors import GymDrError
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.randomization.space import ParamSpace
from gym_dr.testing.playing import assert_same, refused

NUM_ENVS = 12
SEEDS = np.arange(40, 40 + NUM_ENVS, dtype=np.uint64)
INDEX = np.arange(NUM_ENVS) % 5
EPISODES = 40  # of each sub-environment between two updates


@dataclass(frozen=True, kw_only=True)
class SamplerCase:
    """A sampler of one space."""

    make: Callable[[], Any]  # a fresh ParamSampler, for NUM_ENVS sub-environments
    space: ParamSpace


def episodes_of(case: SamplerCase, sampler: Any) -> list[EpisodeRecord]:
    """Episodes with draws of the sampler; most have a return of 100, some of -100."""
    records = []
    for index in range(EPISODES):
        drawn = sampler.draw(SEEDS, np.full(NUM_ENVS, index))
        for env, seed in enumerate(SEEDS.tolist()):
            params = {**case.space.nominal, **{name: float(values[env]) for name, values in drawn.items()}}
            gained = -100.0 if (env + index) % 7 == 0 else 100.0
            record = EpisodeRecord(
                env_index=env,
                seed=seed,
                draw_index=index,
                params=params,
                episode_return=gained,
                length=9 + env,
                terminated=gained > 0,
            )
            records.append(record)
    return records


def the_same_key_gives_the_same_draw_however_many_are_drawn_at_once(case: SamplerCase) -> None:
    sampler, order = case.make(), np.random.default_rng(0).permutation(len(SEEDS))
    for _ in range(2):
        drawn = sampler.draw(SEEDS, INDEX)
        assert set(drawn) == set(sampler.support)
        assert_same(sampler.draw(SEEDS[order], INDEX[order]), {name: values[order] for name, values in drawn.items()})
        assert_same(sampler.draw(SEEDS[3:4], INDEX[3:4]), {name: values[3:4] for name, values in drawn.items()})
        for seeds, index in ((SEEDS + np.uint64(100), INDEX), (SEEDS, INDEX + 100)):
            assert any((sampler.draw(seeds, index)[name] != values).any() for name, values in drawn.items())
        sampler.update(episodes_of(case, sampler))


def draws_stay_in_the_widest_support_and_change_with_the_version_alone(case: SamplerCase) -> None:
    sampler = case.make()
    for _ in range(3):
        version, drawn, state = sampler.version, sampler.draw(SEEDS, INDEX), sampler.state()
        assert sampler.version == version  # drawing changes nothing
        for name, values in drawn.items():
            low, high = sampler.support[name].support(case.space[name].nominal)
            assert (values.dtype, values.shape) == (np.float64, SEEDS.shape)
            assert ((values >= low) & (values <= high)).all(), name
            assert case.space[name].low <= low <= high <= case.space[name].high
        sampler.update(episodes_of(case, sampler))
        after = sampler.draw(SEEDS, INDEX)
        assert all((after[name] == values).all() for name, values in drawn.items()) == (sampler.version == version)
        assert (sampler.version is None) == (version is None)
        assert version is not None or sampler.state() == state


def its_state_goes_through_a_file_and_gives_the_same_draws(case: SamplerCase) -> None:
    sampler, restored = case.make(), case.make()
    records = episodes_of(case, sampler)
    sampler.update(records)
    sampler.update(episodes_of(case, sampler)[:50])  # and keeps some for later
    restored.load_state(json.loads(json.dumps(sampler.state())))  # plain values, as checkpoints hold them
    for _ in range(2):
        assert restored.version == sampler.version
        assert restored.state() == sampler.state()
        assert_same(restored.draw(SEEDS, INDEX), sampler.draw(SEEDS, INDEX))
        records = episodes_of(case, sampler)
        assert restored.update(records) == sampler.update(records)


def any_draw_can_be_repeated_from_its_version_also_from_a_file(case: SamplerCase) -> None:
    sampler, restored = case.make(), case.make()
    drawn = []
    for _ in range(3):
        drawn.append((sampler.version, sampler.draw(SEEDS, INDEX)))
        sampler.update(episodes_of(case, sampler))
    restored.load_state(json.loads(json.dumps(sampler.state())))
    for version, values in drawn:
        assert_same(sampler.draw(SEEDS, INDEX, version), values)
        assert_same(restored.draw(SEEDS, INDEX, version), values)
    if sampler.version is not None:
        for version in (-1, sampler.version + 1):
            with refused(GymDrError):
                sampler.draw(SEEDS, INDEX, version)


def nothing_is_learned_without_episodes_and_all_rows_have_the_same_columns(case: SamplerCase) -> None:
    sampler = case.make()
    columns = set()
    for _ in range(3):
        version, drawn = sampler.version, sampler.draw(SEEDS, INDEX)
        assert not sampler.update([])
        assert sampler.version == version
        assert_same(sampler.draw(SEEDS, INDEX), drawn)
        columns |= {tuple(row) for row in sampler.update(episodes_of(case, sampler)) or ()}
    assert len(columns) <= 1


SAMPLER_CONTRACTS: tuple[Callable[[SamplerCase], None], ...] = (
    the_same_key_gives_the_same_draw_however_many_are_drawn_at_once,
    draws_stay_in_the_widest_support_and_change_with_the_version_alone,
    any_draw_can_be_repeated_from_its_version_also_from_a_file,
    nothing_is_learned_without_episodes_and_all_rows_have_the_same_columns,
    its_state_goes_through_a_file_and_gives_the_same_draws,
)
