"""Draws that follow finished episodes: whoever steps the environments, and whenever they reset, they are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import gym_dr.wrappers.adapt
from gym_dr import AdaptParams, EpisodeRecord, Randomization, ResampleParams
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import CheckpointError, ConfigError, RandomizationError, RandomizationWarning, UnknownNameError
from gym_dr.randomization.adaptive.adr import Adr, AdrOptions
from gym_dr.randomization.adaptive.prioritized import Prioritized, PrioritizedOptions
from gym_dr.randomization.draws import seed_word
from gym_dr.randomization.sampler import Task

ENV_ID = "gym_dr/LunarLanderDR-v3"
BOX = Randomization({"gravity": (-11.5, -5.0), "lander_density": (3.0, 9.0)})
NUM_ENVS, LIMIT = 3, 5  # sub-environments, steps of an episode
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode
# the median return of five steps is near -3
OPTIONS: dict[str, dict[str, Any]] = {
    "adr": {"success": -3.0, "cohort": 6, "bound_episodes": 2, "widen_at": 0.4},
    "doraemon": {"success": -5.0, "cohort": 12, "alpha": 0.4},
    "spdl": {"success": -5.0, "cohort": 12},
    "plr": {"min_levels": 5, "max_levels": 8, "cohort": 3},
}


def make(mode: str = "native", autoreset: AutoresetMode = NEXT_STEP, **kwargs: Any) -> Any:
    shared: Any = {"randomization": BOX, "max_episode_steps": LIMIT, **kwargs}
    if mode == "native":
        return gym.make_vec(ENV_ID, NUM_ENVS, autoreset_mode=autoreset, **shared)
    vector = {"autoreset_mode": autoreset}
    return gym.make_vec(ENV_ID, NUM_ENVS, vectorization_mode=mode, vector_kwargs=vector, **shared)


def play(envs: Any, steps: int, rollout: int = 10, see: Callable[[Any], None] = lambda result: None) -> None:
    """Steps, resets by hand where nobody else does, and gives advantages that follow from the draw after rollouts."""
    _, info = envs.reset(seed=20)
    advantages = []
    for t in range(steps):
        gravity = info["params"]["gravity"]
        result = envs.step(np.full(NUM_ENVS, t % 4))
        see(result)
        info, done = result[4], np.logical_or(result[2], result[3])
        advantages.append(gravity * (1 + t % 3))
        if envs.metadata["autoreset_mode"] == DISABLED and done.any():
            info = envs.reset(options={"reset_mask": done})[1]
        if t % rollout == rollout - 1:
            envs.score(advantages)
            advantages = []


def played(sampler: str, mode: str, autoreset: AutoresetMode, steps: int = 120) -> tuple[list[Any], list[Any]]:
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
        assert record.source is not None
        seed, index = record.source
        drawn = learner.replay(np.array([seed_word(seed)], np.uint64), np.array([index]), record.version)
        assert {name: record.params[name] for name in drawn} == {name: values[0] for name, values in drawn.items()}
    assert learner.version > 1
    assert len({record.version for record in records}) > 1
    return [(*dataclasses.astuple(record)[:-1],) for record in records], rows


@pytest.mark.parametrize("autoreset", AutoresetMode)
@pytest.mark.parametrize("sampler", OPTIONS)
def test_native_and_sync_draw_the_same_and_each_record_says_how_to_replay_its_draw(
    sampler: str, autoreset: AutoresetMode
) -> None:
    assert played(sampler, "native", autoreset) == played(sampler, "sync", autoreset)


@pytest.mark.parametrize("sampler", ["doraemon", "plr"])
def test_so_do_worker_processes(sampler: str) -> None:
    assert played(sampler, "native", SAME_STEP) == played(sampler, "async", SAME_STEP)


def test_the_next_draw_is_ready_before_an_episode_ends_and_an_update_counts_from_the_one_after_it() -> None:
    # episodes of five steps end in steps 5 and 10; with SAME_STEP the next ones begin in the same steps, just before
    # the update of step 5
    records: list[EpisodeRecord] = []
    options = {"success": -1e9, "cohort": NUM_ENVS, "bound_episodes": 1}
    envs = AdaptParams(make(autoreset=SAME_STEP), "adr", every=LIMIT, callback=records.append, **options)
    play(envs, 20)
    assert [record.version for record in records[::NUM_ENVS]] == [0, 0, 1, 1]
    envs.close()


class Watched(Prioritized):
    """Keeps what it was given."""

    def update(self, episodes: Sequence[Any]) -> list[Any]:
        self.given = [*getattr(self, "given", []), *episodes]
        return []


def watched(autoreset: AutoresetMode = NEXT_STEP) -> tuple[Any, Watched]:
    sampler = Watched(LUNAR_LANDER, BOX, PrioritizedOptions())
    return AdaptParams(make(autoreset=autoreset), sampler), sampler


@pytest.mark.parametrize("rollout", [1, 4, 10, 60])
@pytest.mark.parametrize("autoreset", AutoresetMode)
def test_a_score_is_the_mean_over_the_steps_of_an_episode_however_they_are_divided(
    autoreset: AutoresetMode, rollout: int
) -> None:
    envs, sampler = watched(autoreset)
    expected = []
    steps: list[list[float]] = [[] for _ in range(NUM_ENVS)]
    t, resetting = 0, np.zeros(NUM_ENVS, np.bool_)
    gravity = [0.0] * NUM_ENVS

    def see(result: Any) -> None:
        nonlocal t, resetting
        done = np.logical_or(result[2], result[3])
        old = result[4].get("final_info", result[4])["params"]["gravity"]
        for i in range(NUM_ENVS):
            if not resetting[i]:
                gravity[i] = (
                    float(old[i]) if autoreset == SAME_STEP and done[i] else float(result[4]["params"]["gravity"][i])
                )
                steps[i].append(abs(gravity[i] * (1 + t % 3)))
            if done[i]:
                expected.append(np.mean(steps[i]))
                steps[i].clear()
        resetting = done if autoreset == NEXT_STEP else resetting
        t += 1

    play(envs, 60, rollout, see)
    assert len(expected) > 20
    assert [episode.score for episode in sampler.given] == pytest.approx(expected)
    envs.close()


def test_steps_that_nobody_gave_advantages_of_leave_their_episodes_without_a_score() -> None:
    envs, sampler = watched()
    envs.reset(seed=20)
    for _ in range(9):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    envs.score(np.ones((3, NUM_ENVS)))  # the first episodes ended in step 5, before these
    assert sampler.given == []
    for _ in range(2):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    envs.score(np.ones((2, NUM_ENVS)))
    assert [episode.score for episode in sampler.given] == [1.0] * NUM_ENVS
    envs.close()


def test_an_episode_that_a_reset_cuts_off_gives_nothing_to_the_next_ones_score() -> None:
    envs, sampler = watched()
    envs.reset(seed=20)
    for _ in range(3):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    for _ in range(5):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    envs.score(np.repeat(np.arange(8.0)[:, None], NUM_ENVS, axis=1))
    scores = {episode.env_index: episode.score for episode in sampler.given}
    # steps 3 to 7 of the one that was reset, 0 to 4 of the others; all of five
    assert scores == {0: 5.0, 1: 2.0, 2: 2.0}
    envs.close()


@pytest.mark.parametrize("shape", [(4, NUM_ENVS), (0, NUM_ENVS), (2, NUM_ENVS + 1), (2,)])
def test_advantages_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    envs, _ = watched()
    envs.reset(seed=20)
    for _ in range(3):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    with pytest.raises(ConfigError, match=r"expected advantages of shape \(T, 3\) with T from 1 to 3"):
        envs.score(np.zeros(shape))
    envs.close()


def test_a_sampler_that_waits_for_scores_that_nobody_gives_is_no_silent_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym_dr.wrappers.adapt, "_MAX_UNSCORED", 20)
    envs, _ = watched()
    with pytest.raises(ConfigError, match=r"Expected a call of AdaptParams.score\(advantages\) after each rollout"):
        play(envs, 10, rollout=100)
    envs.close()


def test_scores_are_not_looked_at_by_samplers_that_need_none() -> None:
    envs = AdaptParams(make(), "adr", success=0.0)
    envs.score(np.zeros(1))
    assert not envs.masking
    envs.close()


def test_robust_plr_says_which_draws_are_fresh() -> None:
    records: list[EpisodeRecord] = []
    envs = AdaptParams(make(), "robust_plr", callback=records.append, masks_fresh=True, **OPTIONS["plr"])
    fresh: list[Any] = []

    def see(result: Any) -> None:
        fresh.extend(bool(envs.fresh[i]) for i in np.flatnonzero(np.logical_or(result[2], result[3])))

    play(envs, 150, see=see)
    assert envs.masking
    assert fresh == [record.source == (record.seed, record.draw_index) for record in records]
    assert 0.3 < np.mean(fresh) < 0.9
    envs.close()


def test_success_can_be_any_function_in_worker_processes_too() -> None:
    rows: list[Any] = []
    options: dict[str, Any] = {**OPTIONS["adr"], "success": lambda episode: episode.episode_return > -3.0}
    envs = AdaptParams(make("async"), "adr", every=7, on_update=rows.append, **options)
    play(envs, 60)
    envs.close()
    assert envs.sampler.version > 0
    assert rows


def test_resets_that_cut_off_nearly_all_episodes_cause_a_warning() -> None:
    envs = AdaptParams(make(), "adr", **OPTIONS["adr"])
    for _ in range(20):
        envs.reset()
        envs.step(np.zeros(NUM_ENVS, np.int64))
    with pytest.warns(RandomizationWarning, match="cut off 60 episodes, and only 0 have ended"):
        envs.reset()
    envs.close()


def test_resets_after_episodes_have_ended_cause_none() -> None:
    envs = AdaptParams(make(autoreset=SAME_STEP), "adr", **OPTIONS["adr"])
    for _ in range(21):
        envs.reset()
        for _ in range(LIMIT + 1):
            envs.step(np.zeros(NUM_ENVS, np.int64))
    envs.close()


@pytest.mark.parametrize("sampler", OPTIONS)
def test_a_damaged_state_is_refused_and_changes_nothing(sampler: str) -> None:
    envs = AdaptParams(make(), sampler, every=7, **OPTIONS[sampler])
    play(envs, 77)
    state = envs.state()
    shapes, levels = state.get("shapes"), state.get("levels")
    for bad in (
        {},
        {**state, "version": "x"},
        {**state, "shapes" if shapes else "levels": [[1.0]] if shapes else 9 * levels},
        {**state, "shapes": [[[float("nan")] * 2] * 2] * len(shapes)} if shapes else {**state, "claims": [[1]]},
    ):
        with pytest.raises(CheckpointError, match="damaged or of another sampler"):
            envs.load_state(bad)
        assert envs.state() == state
    envs.close()


class Handing:
    """Hands every call on to another sampler."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sampler, name)


def test_a_sampler_may_hand_calls_on_to_one_that_scores_and_replays() -> None:
    envs = make()
    sampler = Prioritized(LUNAR_LANDER, BOX, PrioritizedOptions(), Task(num_envs=NUM_ENVS))
    wrapped = AdaptParams(envs, Handing(sampler))  # type: ignore[arg-type]
    assert wrapped._scorer is not None
    assert wrapped._levels is not None
    wrapped.close()


def test_a_sampler_that_offers_a_part_of_what_levels_need_is_refused() -> None:
    class Partial(Adr):
        only_replays = True

    envs = make()
    sampler = Partial(LUNAR_LANDER, BOX, AdrOptions(success=0.0), Task(num_envs=NUM_ENVS))
    with pytest.raises(ConfigError, match=r"Partial: expected all of only_replays, level_of \(LevelSampler\) or none"):
        AdaptParams(envs, sampler)
    envs.close()


def test_a_sampler_for_another_number_of_sub_environments_is_refused() -> None:
    options = AdrOptions(success=0.0)
    sampler = Adr(LUNAR_LANDER, BOX, options, Task(num_envs=NUM_ENVS + 1))
    with pytest.raises(ConfigError, match="a sampler for 3 sub-environments, got one for 4"):
        AdaptParams(make(), sampler)


def test_what_was_learned_can_be_taken_over() -> None:
    first = AdaptParams(make(), "adr", every=7, **OPTIONS["adr"])
    second = AdaptParams(make(), "adr", every=7, **OPTIONS["adr"])
    play(first, 77)
    second.load_state(first.state())
    drawn = [envs.reset(seed=99)[1]["params"]["gravity"].tolist() for envs in (first, second)]
    assert drawn[0] == drawn[1]
    first.close(), second.close()


@pytest.mark.parametrize(
    ("wrap", "error", "message"),
    [
        (lambda: AdaptParams(make(), "doremon"), UnknownNameError, "Did you mean 'doraemon'"),
        (lambda: AdaptParams(make(), "doraemon", alfa=0.4), UnknownNameError, "Did you mean 'alpha'"),
        (lambda: AdaptParams(make(), "uniform", alpha=0.4), UnknownNameError, "alpha"),
        (lambda: AdaptParams(make(), "doraemon", alpha=2.0), ConfigError, "alpha: expected between 0 and 1"),
        (lambda: AdaptParams(make(), "doraemon", every=0), ConfigError, "every: expected a whole number of at least 1"),
        (
            lambda: AdaptParams(make(), "doraemon", every=True),
            ConfigError,
            "every: expected a whole number of at least 1",
        ),
        (lambda: AdaptParams(make(), "robust_plr"), ConfigError, "needs losses without fresh draws"),
        (lambda: AdaptParams(make(), watched()[1], alpha=0.5), ConfigError, "options only with a sampler's name"),
        (
            lambda: AdaptParams(ResampleParams(make(), rollout_steps=2), "adr"),
            RandomizationError,
            "draws at each reset",
        ),
        (lambda: AdaptParams(AdaptParams(make(), "adr"), "adr"), RandomizationError, "draws at each reset"),
        (lambda: AdaptParams(make(context="hidden"), "adr").reset(), RandomizationError, "that hides it"),
        (lambda: AdaptParams(make(randomization="none"), "adr"), RandomizationError, "a parameter that varies"),
        (lambda: AdaptParams(make(randomization="none"), "plr"), RandomizationError, "a parameter that varies"),
        (lambda: AdaptParams(gym.make_vec("CartPole-v1", 2), "adr"), RandomizationError, "are randomized"),
    ],
)
def test_what_cannot_be_is_refused(wrap: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrap()
