"""Wrappers' own parts of a state: histories of delays, draws that are due, sums of episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr import (
    AdaptParams,
    Bernoulli,
    Disturb,
    DisturbVector,
    DrawContext,
    Integer,
    ObservePast,
    RecordEpisodes,
    ResampleParams,
)
from gym_dr.errors import EnvStateError
from gym_dr.testing.playing import DISABLED, NEXT_STEP, SAME_STEP, assert_same
from gym_dr.wrappers.finite import RequireFinite

NUM_ENVS = 4
DELAYED = {
    "obs_noise": (0.0, 0.1),
    "obs_bias": (0.0, 0.1),
    "obs_delay": Integer(0, 4),
    "obs_drop": (0.0, 0.5),
    "obs_drop:theta": (0.0, 0.9),
    "obs_hide:x": Bernoulli(0.5),
    "action_delay": Integer(0, 3),
    "action_drop": (0.0, 0.5),
    "push_speed": (0.0, 1.0),
    "push_probability": (0.0, 0.5),
}
NOISE = {"obs_noise": (0.0, 0.1)}
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "delays": lambda envs: DisturbVector(envs, DELAYED),
    "draws every few steps": lambda envs: ResampleParams(envs, rollout_steps=5),
    "one draw for all": lambda envs: ResampleParams(envs, rollout_steps=5, shared=True),
    "what the policy saw before": lambda envs: ObservePast(envs, stack_observations=3, observe_reward=True),
    "what the policy sees": lambda envs: DrawContext(envs, "observation"),
    "all of them": lambda envs: RequireFinite(
        DrawContext(
            ObservePast(
                RecordEpisodes(DisturbVector(ResampleParams(envs, rollout_steps=3), DELAYED), lambda record: None),
                stack_observations=3,
                observe_reward=True,
            ),
            "observation",
        )
    ),
}


def play(envs: Any, first: int, steps: int) -> list[Any]:
    rng = np.random.default_rng(first)
    rows = []
    for _ in range(steps):
        rows.append(envs.step(rng.integers(0, 2, NUM_ENVS)))
        done = rows[-1][2] | rows[-1][3]
        if envs.metadata["autoreset_mode"] == DISABLED and done.any():
            rows.append(envs.reset(options={"reset_mask": done}))
    return rows


def made(name: str, **kwargs: Any) -> Any:
    return WRAPPERS[name](gym.make_vec("gym_dr/CartPoleDR-v1", NUM_ENVS, max_episode_steps=12, **kwargs))


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP, DISABLED])
@pytest.mark.parametrize("name", WRAPPERS)
def test_going_on_from_a_state_equals_going_on(name: str, mode: Any) -> None:
    envs, fresh = made(name, autoreset_mode=mode), made(name, autoreset_mode=mode)
    envs.reset(seed=1)
    play(envs, 0, 17)
    state = envs.get_state()
    expected = play(envs, 1, 40)
    for each in (envs, fresh):
        assert_same(each.set_state(state).shape, (NUM_ENVS, *each.single_observation_space.shape))
        assert_same(play(each, 1, 40), expected)


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_observations_of_a_restored_state_are_those_of_its_step(name: str) -> None:
    envs = made(name)
    envs.reset(seed=1)
    seen = play(envs, 0, 9)[-1][0]
    state = envs.get_state()
    play(envs, 1, 9)
    np.testing.assert_array_equal(envs.set_state(state), seen)


def test_other_sub_environments_keep_their_histories() -> None:
    envs, twin = made("delays"), made("delays")
    for each in (envs, twin):
        each.reset(seed=1)
        play(each, 0, 8)
    mask = np.array([False, True, False, True])
    state = envs.get_state()
    play(envs, 1, 1), play(twin, 1, 1)
    envs.set_state(state, mask)
    left, right = play(envs, 2, 6), play(twin, 2, 6)
    assert_same(
        [[part[~mask] for part in row[:4]] for row in left], [[part[~mask] for part in row[:4]] for row in right]
    )
    assert any((a[0][mask] != b[0][mask]).any() for a, b in zip(left, right, strict=True))


def test_records_go_on_where_their_episodes_were() -> None:
    records: list[Any] = []
    envs = RecordEpisodes(gym.make_vec("gym_dr/CartPoleDR-v1", NUM_ENVS, max_episode_steps=12), records.append)
    envs.reset(seed=1)
    play(envs, 0, 5)
    state = envs.get_state()
    counted = []
    for _ in range(2):
        del records[:]
        play(envs, 1, 30)
        counted.append(list(records))
        envs.set_state(state)
    assert counted[0] == counted[1]
    assert len(counted[0]) > 4


def test_a_single_environment_keeps_its_delays() -> None:
    env = Disturb(gym.make("gym_dr/CartPoleDR-v1"), DELAYED)
    fresh = Disturb(gym.make("gym_dr/CartPoleDR-v1"), DELAYED)
    env.reset(seed=3), fresh.reset(seed=4)
    for _ in range(6):
        seen = env.step(1)[0]
    state = env.get_state()
    expected = [env.step(0)[:3] for _ in range(5)]
    for each in (env, fresh):
        np.testing.assert_array_equal(each.set_state(state), seen)
        assert_same([each.step(0)[:3] for _ in range(5)], expected)


def test_a_history_that_is_longer_than_ones_own_fits() -> None:
    few, many = ({"obs_delay": 1.0, "action_delay": delay} for delay in (0.0, 6.0))
    envs = [DisturbVector(gym.make_vec("gym_dr/CartPoleDR-v1", NUM_ENVS), given) for given in (few, many)]
    for each in envs:
        each.reset(seed=1)
    play(envs[1], 0, 3)  # too short for an episode to end
    state = envs[1].get_state()
    expected = play(envs[1], 1, 3)
    envs[0].set_state(state)
    assert_same(play(envs[0], 1, 3), expected)


def test_a_state_of_other_wrappers_is_refused_and_nothing_changes() -> None:
    plain = gym.make_vec("gym_dr/CartPoleDR-v1", NUM_ENVS, max_episode_steps=12)
    envs, twin = made("delays"), made("delays")
    for each in (plain, envs, twin):
        each.reset(seed=1)
    good = envs.get_state()
    wrong: list[Any] = [plain.get_state(), {**good, "disturb/sent": good["disturb/sent"][:, :, :0]}]  # type: ignore[attr-defined]
    wrong += [
        {**good, "disturb/age": good["disturb/age"].astype(np.float64)},
        {**good, "disturb/readings": good["disturb/age"]},
        {**good, "disturb/more": good["seed"]},
    ]
    delays = [1e9, -3.0, 0.5, good["disturb/seen"].shape[1]]
    wrong += [{**good, "disturb/draws/value/obs_delay": np.full(NUM_ENVS, delay)} for delay in delays]
    wrong += [{**good, "disturb/draws/pin/obs_delay": np.full(NUM_ENVS, 1e12)}, {**good, "disturb/age": good["seed"]}]
    ends = {
        "disturb/episodes/done": np.ones(NUM_ENVS, np.bool_),
        "disturb/episodes/begun": np.zeros(NUM_ENVS, np.bool_),
    }
    wrong += [{**good, **ends}]
    for state in wrong:
        with pytest.raises(EnvStateError):
            envs.set_state(state)
    with pytest.raises(EnvStateError):
        plain.set_state(good)  # type: ignore[attr-defined]
    assert_same(play(envs, 1, 3), play(twin, 1, 3))


def test_who_learns_from_episodes_or_steps_processes_says_why_there_is_no_state() -> None:
    adapting = AdaptParams(gym.make_vec("gym_dr/CartPoleDR-v1", 2, randomization="wide"), "adr", success=100)
    workers = gym_dr.VectorParams(gym.make_vec("gym_dr/CartPoleDR-v1", 2, vectorization_mode="sync"))
    with pytest.raises(EnvStateError, match="learn from the same episodes twice"):
        adapting.get_state()
    with pytest.raises(EnvStateError, match="learn from the same episodes twice"):
        adapting.set_state({})
    for call in (workers.get_state, lambda: workers.set_state({})):
        with pytest.raises(EnvStateError, match="Native ones do"):
            call()
    stock = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    for wrapped in (DisturbVector(stock, NOISE), RecordEpisodes(stock, print)):
        with pytest.raises(EnvStateError, match="SyncVectorEnv does not offer its state"):
            wrapped.get_state()
    with pytest.raises(EnvStateError, match="CartPoleEnv does not offer its state"):
        Disturb(gym.make("CartPole-v1"), NOISE).get_state()
    with pytest.raises(EnvStateError, match="Expected a state from get_state"):
        Disturb(gym.make("gym_dr/CartPoleDR-v1"), NOISE).set_state(None)  # type: ignore[arg-type]
    draws = ResampleParams(gym.make_vec("gym_dr/CartPoleDR-v1", 2), rollout_steps=3)
    with pytest.raises(EnvStateError, match=r"expected reset\(\) before get_state"):
        draws.get_state()


def test_records_with_other_seeds_are_refused_before_anything_changes() -> None:
    envs, twin = (RecordEpisodes(gym.make_vec("gym_dr/CartPoleDR-v1", 2), lambda record: None) for _ in range(2))
    envs.reset(seed=1), twin.reset(seed=1)
    state = envs.get_state()
    play_two(envs), play_two(twin)
    state["record/seed"] = np.array(["x", "-1"], state["record/seed"].dtype)
    with pytest.raises(EnvStateError, match="expected digits"):
        envs.set_state(state)
    assert_same(envs.get_state(), twin.get_state())


def play_two(envs: Any) -> None:
    for _ in range(3):
        envs.step(np.ones(2, np.int64))


def test_the_schedule_of_draws_is_restored_as_a_whole_or_not_at_all() -> None:
    envs, fresh = made("draws every few steps"), made("draws every few steps")
    envs.reset(seed=1)
    play(envs, 0, 3)
    state = envs.get_state()
    with pytest.raises(EnvStateError, match="of some sub-environments alone"):
        fresh.set_state(state, np.array([True, False, False, False]))
    play(envs, 1, 4)
    steps = envs.get_state()["resample/steps"]
    envs.set_state(state, np.array([True, False, False, False]))
    np.testing.assert_array_equal(envs.get_state()["resample/steps"], steps)
