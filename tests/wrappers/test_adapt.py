"""Draws that follow finished episodes: whoever steps the environments, and whenever they reset, they are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import AdaptParams, Choice, EpisodeRecord, Randomization, ResampleParams, Scale, VectorParams
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import CheckpointError, ConfigError, RandomizationError, UnknownNameError
from gym_dr.randomization.adaptive.adr import Adr, AdrOptions
from gym_dr.randomization.sampler import FixedSampler, TrainingInfo, seed_word
from gym_dr.testing.playing import play

ENV_ID = "gym_dr/LunarLanderDR-v3"
BOX = Randomization({"gravity": (-11.5, -5.0), "lander_density": (3.0, 9.0)})
NUM_ENVS, LIMIT = 3, 5  # sub-environments, steps of an episode
NEXT_STEP, SAME_STEP, _ = AutoresetMode
# the median return of five steps is near -3
OPTIONS: dict[str, dict[str, Any]] = {
    "adr": {"success": -3.0, "cohort": 6, "bound_episodes": 2, "widen_at": 0.4},
    "doraemon": {"success": -5.0, "cohort": 12, "alpha": 0.4},
    "spdl": {"success": -5.0, "cohort": 12},
}


def make(mode: str = "native", autoreset: AutoresetMode = NEXT_STEP, **kwargs: Any) -> Any:
    shared: Any = {"randomization": BOX, "max_episode_steps": LIMIT, **kwargs}
    if mode == "native":
        return gym.make_vec(ENV_ID, NUM_ENVS, autoreset_mode=autoreset, **shared)
    vector = {"autoreset_mode": autoreset}
    return gym.make_vec(ENV_ID, NUM_ENVS, vectorization_mode=mode, vector_kwargs=vector, **shared)


@pytest.mark.filterwarnings("ignore:.*diverged")
@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_samplers_are_not_told_of_simulations_that_diverged(mode: str) -> None:
    told: list[EpisodeRecord] = []

    class Told(FixedSampler):
        def update(self, episodes: Sequence[EpisodeRecord]) -> None:
            told.extend(episodes)

    recorded: list[EpisodeRecord] = []
    # motors a thousand times as strong make simulations diverge within a few steps
    factors = {"actuator_gear": Scale(Choice((1.0, 1000.0)))}
    envs: Any = gym.make_vec(
        "gym_dr/HalfCheetahDR-v5", 2, vectorization_mode=mode, randomization=factors, max_episode_steps=5
    )
    envs = envs if mode != "sync" else VectorParams(envs)
    envs = AdaptParams(envs, Told(envs.param_space, envs.randomization), every=1, callback=recorded.append)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(40):
        envs.step(envs.action_space.sample())
    strong = [record for record in recorded if record.params["actuator_gear"] == 1000.0]
    assert [record.diverged for record in strong] == [True] * len(strong)
    assert told == [record for record in recorded if record not in strong]
    assert len(told) > 2
    assert len(strong) > 2


def played(
    sampler: str, mode: str, autoreset: AutoresetMode, steps: int = 120
) -> tuple[list[EpisodeRecord], list[Any]]:
    records: list[EpisodeRecord] = []
    rows: list[Any] = []
    envs = AdaptParams(
        make(mode, autoreset),
        sampler,
        every=7,
        callback=records.append,
        on_update=lambda row: rows.append(dict(row)),
        **OPTIONS[sampler],
    )
    play(envs, steps)
    envs.close()
    learner: Any = envs.sampler
    for record in records:
        assert record.seed is not None
        key = np.array([seed_word(record.seed)], np.uint64), np.array([record.draw_index])
        drawn = learner.draw(*key, record.version)
        assert {name: record.params[name] for name in drawn} == {name: values[0] for name, values in drawn.items()}
    assert learner.version > 1
    assert len({record.version for record in records}) > 1
    return records, rows


@pytest.mark.parametrize(("sampler", "autoreset"), [*zip(OPTIONS, AutoresetMode, strict=True)])
def test_native_and_sync_draw_the_same_and_each_record_says_how_to_replay_its_draw(
    sampler: str, autoreset: AutoresetMode
) -> None:
    assert played(sampler, "native", autoreset) == played(sampler, "sync", autoreset)


def test_so_do_worker_processes() -> None:
    assert played("doraemon", "native", SAME_STEP) == played("doraemon", "async", SAME_STEP)


def test_the_next_draw_is_ready_before_an_episode_ends_and_an_update_counts_from_the_one_after_it() -> None:
    # episodes of five steps end in steps 5 and 10; with SAME_STEP the next ones begin in the same steps, just before
    # the update of step 5
    records: list[EpisodeRecord] = []
    options = {"success": -1e9, "cohort": NUM_ENVS, "bound_episodes": 1}
    envs = AdaptParams(make(autoreset=SAME_STEP), "adr", every=LIMIT, callback=records.append, **options)
    play(envs, 20)
    assert [record.version for record in records[::NUM_ENVS]] == [0, 0, 1, 1]
    envs.close()


def test_success_can_be_any_function() -> None:
    rows: list[Any] = []
    options: dict[str, Any] = {**OPTIONS["adr"], "success": lambda episode: episode.episode_return > -3.0}
    envs = AdaptParams(make(), "adr", every=7, on_update=rows.append, **options)
    play(envs, 60)
    envs.close()
    assert envs.sampler.version > 0
    assert rows


@pytest.mark.parametrize("sampler", OPTIONS)
def test_a_damaged_state_is_refused_and_changes_nothing(sampler: str) -> None:
    envs = AdaptParams(make(), sampler, every=7, **OPTIONS[sampler])
    play(envs, 77)
    state = envs.state()
    nowhere = [[[float("nan")] * 2] * 2] * len(state["shapes"])
    for bad in ({}, {**state, "version": "x"}, {**state, "shapes": [[1.0]]}, {**state, "shapes": nowhere}):
        with pytest.raises(CheckpointError, match="damaged or another"):
            envs.load_state(bad)
        assert envs.state() == state
    envs.close()


def test_a_sampler_for_another_number_of_sub_environments_is_refused() -> None:
    options = AdrOptions(success=0.0)
    sampler = Adr(LUNAR_LANDER, BOX, options, TrainingInfo(num_envs=NUM_ENVS + 1))
    with pytest.raises(ConfigError, match="a sampler for 3 sub-environments, got one for 4"):
        AdaptParams(make(), sampler)


@pytest.mark.parametrize(
    ("wrap", "error", "message"),
    [
        (lambda: AdaptParams(make(), "doremon"), UnknownNameError, "Did you mean 'doraemon'"),
        (lambda: AdaptParams(make(), "uniform", alpha=0.4), UnknownNameError, "alpha"),
        (lambda: AdaptParams(make(), "doraemon", alpha=2.0), ConfigError, "alpha: expected between 0 and 1"),
        (lambda: AdaptParams(make(), "doraemon", every=0), ConfigError, "every"),
        (
            lambda: AdaptParams(make(), FixedSampler(LUNAR_LANDER, BOX), alpha=0.5),
            ConfigError,
            "options only with a sampler's name",
        ),
        (
            lambda: AdaptParams(ResampleParams(make(), rollout_steps=2), "adr"),
            RandomizationError,
            "draws at each reset",
        ),
        (lambda: AdaptParams(AdaptParams(make(), "adr"), "adr"), RandomizationError, "draws at each reset"),
        (lambda: AdaptParams(make(context="hidden"), "adr").reset(), RandomizationError, "that hides it"),
        (lambda: AdaptParams(make(randomization="none"), "adr"), RandomizationError, "a parameter that varies"),
        (lambda: AdaptParams(gym.make_vec("CartPole-v1", 2), "adr"), RandomizationError, "are randomized"),
    ],
)
def test_what_cannot_be_is_refused(wrap: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrap()
