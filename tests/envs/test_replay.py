"""Logged motion in simulation: from the state that an observation tells, a step leads to the next one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.replay import LogReplay, Reading
from gym_dr.errors import EnvStateError, RandomizationError, UnknownNameError

NATIVE = [env.id for env in ENVIRONMENTS.values() if env.vector_entry_point is not None]
LANDERS = ("gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3")
REFUSED = ("gym_dr/BipedalWalkerDR-v3", "gym_dr/BipedalWalkerHardcoreDR-v3")  # feet touch from the first step on
PUSHER, ANT, HALF_CHEETAH, REACHER = (f"gym_dr/{name}DR-v5" for name in ("Pusher", "Ant", "HalfCheetah", "Reacher"))
CART, PENDULUM, ACROBOT = "gym_dr/CartPoleDR-v1", "gym_dr/PendulumDR-v1", "gym_dr/AcrobotDR-v1"
ZOO = [env.id for env in ENVIRONMENTS.values() if "robot" in env.kwargs]  # not all observe where they are
REPLAYED = [env_id for env_id in NATIVE if env_id not in (*REFUSED, *LANDERS, PUSHER, *ZOO)]
SLOTS = 16

Numbers = npt.NDArray[np.float64]


def recorded(env_id: str, steps: int = 30, params: Any = None, idle: bool = False) -> tuple[Numbers, Any, Numbers]:
    """Observations ``(T + 1, n)``, actions and, of robots, exact positions and velocities of an episode."""
    envs: Any = gym.make_vec(env_id, 1, randomization="none")
    envs.action_space.seed(3)
    observations, _ = envs.reset(seed=7, options={"params": dict(params or {})})
    rows, actions, exact = [observations[0]], [], [_exact(envs)]
    for _ in range(steps):
        action = envs.action_space.sample()
        action = np.zeros_like(action) if idle else action
        observations, _, terminated, truncated, _ = envs.step(action)
        rows.append(observations[0])
        actions.append(action[0])
        exact.append(_exact(envs))
        if terminated[0] or truncated[0]:
            break
    envs.close()
    return np.array(rows, np.float64), np.array(actions), np.array(exact)


def _exact(envs: Any) -> Numbers:
    engine: Any = getattr(envs.unwrapped._backend, "engine", None)
    return np.zeros(0) if engine is None else np.concatenate([engine.qpos[0], engine.qvel[0]])


def replay_of(env_id: str, slots: int = SLOTS, **kwargs: Any) -> LogReplay:
    envs: Any = gym.make_vec(env_id, slots, randomization="none", **kwargs)
    envs.reset(seed=0)
    found: LogReplay = envs.unwrapped.replay()
    found.begin({})
    return found


def stepped(replay: LogReplay, states: Numbers, actions: Any, **options: Any) -> Numbers:
    """One step from each state, for as many as there are."""
    found = []
    for first in range(0, len(states), replay.num_envs):
        rows = np.minimum(np.arange(first, first + replay.num_envs), len(states) - 1)
        found.append(replay.step(states[rows], actions[rows], **options)[: len(states) - first])
    return np.concatenate(found)


def filled(replay: LogReplay, reading: Reading, actions: Any) -> Numbers:
    """States, of which a simulation from the start tells what observations leave open."""
    states = reading.states.copy()
    states[0] = np.where(np.isnan(states[0]), np.nan_to_num(replay.first), states[0])
    for t in range(len(states) - 1):
        after = stepped(replay, states[t : t + 1], actions[t : t + 1])[0]
        states[t + 1] = np.where(np.isnan(states[t + 1]), after, states[t + 1])
    return states


def departures(env_id: str, params: Any = None) -> tuple[Numbers, Numbers]:
    """Replayed less logged states after each step, and how far the steps go."""
    observations, actions, _ = recorded(env_id, params=params)
    replay = replay_of(env_id)
    replay.begin(params or {})
    reading = replay.read(observations, {})
    states, usable = filled(replay, reading, actions), reading.usable
    assert usable.any()
    after = stepped(replay, states[:-1][usable], actions[usable])
    missed = replay.difference(after, states[1:][usable])
    return missed, replay.difference(states[1:][usable], states[:-1][usable])


@pytest.fixture(scope="module")
def opened() -> Callable[[str], LogReplay]:
    """Replays, each of which is made once."""
    known: dict[str, LogReplay] = {}

    def replay(env_id: str) -> LogReplay:
        if env_id not in known:
            known[env_id] = replay_of(env_id)
        return known[env_id]

    return replay


# ---- prediction ----


@pytest.mark.parametrize("env_id", REPLAYED)
def test_a_step_from_the_state_that_an_observation_tells_leads_to_the_next_one(env_id: str) -> None:
    missed, moved = departures(env_id)
    scale = np.abs(moved).max(axis=0) + 1e-3
    worst = (np.abs(missed) / scale).max(axis=0)
    assert worst.max() < TOLERANCE.get(env_id, 1e-6), worst


# observations are float32: a position of 1.2 is rounded by up to 6e-8, and a step moves it by 0.01
TOLERANCE = {"gym_dr/MountainCarDR-v0": 1e-5, "gym_dr/MountainCarContinuousDR-v0": 1e-5}


def test_other_parameters_act_in_a_replay() -> None:
    missed, _ = departures(CART, {"length": 0.9, "gravity": 8.0})
    assert np.abs(missed).max() < 1e-6


def test_each_sub_environment_may_have_parameters_of_its_own_until_the_next_beginning(
    opened: Callable[[str], LogReplay],
) -> None:
    replay, actions = opened(CART), np.ones(SLOTS, np.int64)
    states, lengths = np.full((SLOTS, 4), 0.1), np.linspace(0.3, 0.9, SLOTS)
    nominal = replay.step(states, actions)
    replay.begin({"length": lengths})
    together = replay.step(states, actions)
    assert (together != nominal).any()
    for k in (0, 9):
        replay.begin({"length": float(lengths[k])})
        np.testing.assert_array_equal(replay.step(states, actions)[k], together[k])
    for impossible, error in (({"lenght": 0.5}, UnknownNameError), ({"length": -0.5}, RandomizationError)):
        with pytest.raises(error, match="'length'"):
            replay.begin(impossible)
    replay.begin({})
    np.testing.assert_array_equal(replay.step(states, actions), nominal)


@pytest.mark.parametrize("env_id", [CART, PENDULUM, HALF_CHEETAH, "gym_dr/InvertedPendulumDR-v5"])
def test_an_action_that_is_held_acts_in_every_step(env_id: str, opened: Callable[[str], LogReplay]) -> None:
    replay = opened(env_id)
    observations, actions, _ = recorded(env_id, 3)
    states = np.repeat(np.nan_to_num(replay.read(observations, {}).states[:1]), SLOTS, axis=0)
    held = np.repeat(actions[:1], SLOTS, axis=0)
    together = replay.step(states, held, 2)
    replay.step(states, held)
    np.testing.assert_allclose(together, replay.go_on(held), rtol=1e-12)


BEYOND = {CART: (0, 3.0), ANT: (0, 3.0), "gym_dr/InvertedPendulumDR-v5": (1, 0.5), LANDERS[0]: (0, 15.0)}


@pytest.mark.parametrize(("env_id", "where"), BEYOND.items(), ids=list(BEYOND))
def test_ends_of_episodes_do_not_count(
    env_id: str, where: tuple[int, float], opened: Callable[[str], LogReplay]
) -> None:
    replay, (coordinate, way) = opened(env_id), where
    deltas = np.zeros((SLOTS, len(replay.coordinates)))
    deltas[:, coordinate] = way  # beyond what ends an episode
    states = replay.add(np.repeat(np.nan_to_num(replay.first)[None], SLOTS, axis=0), deltas)
    actions = np.zeros_like(gym.make_vec(env_id, SLOTS).action_space.sample())
    replay.begin({})
    ended = replay.step(states, actions)
    gone_on = replay.go_on(actions)
    assert np.abs(replay.difference(gone_on, ended)).max() > 1e-3
    missed = replay.difference(replay.step(ended, actions), gone_on)
    assert np.abs(missed).max() < 1e-4


# ---- states ----


def wandered(replay: LogReplay, seed: int) -> tuple[Numbers, Numbers]:
    """Some states, and deltas below half a turn."""
    rng = np.random.default_rng(seed)
    start = np.repeat(np.nan_to_num(replay.first)[None], SLOTS, axis=0)
    states = replay.add(start, rng.uniform(-0.5, 0.5, (SLOTS, len(replay.coordinates))))
    return states, rng.uniform(-1.0, 1.0, (SLOTS, len(replay.coordinates)))


@pytest.mark.parametrize("env_id", [*REPLAYED, *LANDERS, PUSHER])
def test_difference_and_add_are_inverse_and_coordinates_have_names_and_places(
    env_id: str, opened: Callable[[str], LogReplay]
) -> None:
    replay = opened(env_id)
    states, deltas = wandered(replay, 0)
    other = replay.add(states, deltas)
    np.testing.assert_allclose(replay.difference(other, states), deltas, atol=1e-9)
    assert replay.difference(states, states).max() == 0.0
    reached = replay.add(states, replay.difference(other, states))
    assert np.abs(replay.difference(reached, other)).max() < 1e-9
    names = [coordinate.name for coordinate in replay.coordinates]
    assert len(set(names)) == len(names)
    assert replay.places.shape == (len(names),)
    none = np.zeros((SLOTS, len(names)))
    states = replay.add(np.repeat(np.nan_to_num(replay.first)[None], SLOTS, axis=0), none)  # of unit quaternions
    for k, place in enumerate(replay.places.tolist()):  # the number that a coordinate moves
        deltas = none.copy()
        deltas[:, k] = 0.01
        moved = np.abs(replay.add(states, deltas) - states)[0]
        assert moved[place] == moved.max() > 0.0


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_add_and_difference_of_a_free_joint_are_inverse_for_any_rotation(
    opened: Callable[[str], LogReplay], seed: int
) -> None:
    replay = opened(ANT)
    states, deltas = wandered(replay, seed)
    moved = replay.add(states, deltas)
    np.testing.assert_allclose(np.linalg.norm(moved[:, 3:7], axis=1), 1.0, rtol=1e-9)  # a quaternion
    np.testing.assert_allclose(replay.difference(moved, states), deltas, atol=1e-8)


@pytest.mark.parametrize("env_id", [PENDULUM, ACROBOT, HALF_CHEETAH, REACHER, LANDERS[0]])
def test_angles_are_compared_the_short_way(env_id: str, opened: Callable[[str], LogReplay]) -> None:
    replay = opened(env_id)
    turning = [k for k, coordinate in enumerate(replay.coordinates) if coordinate.angle]
    assert turning
    states, _ = wandered(replay, 2)
    turned = states.copy()
    turned[:, replay.places[turning]] += 2 * np.pi
    assert np.abs(replay.difference(turned, states)).max() < 1e-9
    beyond = states.copy()
    beyond[:, replay.places[turning]] += np.pi + 0.2  # 0.2 beyond half a turn is pi - 0.2 the other way
    np.testing.assert_allclose(replay.difference(beyond, states)[:, turning], 0.2 - np.pi, atol=1e-9)


# ---- what observations leave open ----


@pytest.mark.parametrize("env_id", REFUSED)
def test_an_environment_that_cannot_be_replayed_or_is_closed_is_refused(env_id: str) -> None:
    envs: Any = gym.make_vec(env_id, 2)
    with pytest.raises(EnvStateError, match="does not support the replay of logged motion"):
        envs.unwrapped.replay()
    envs.close()
    with pytest.raises(EnvStateError, match="closed"):
        envs.unwrapped.replay()


def test_a_replay_keeps_its_environment_which_some_versions_of_gymnasium_close_when_it_is_collected() -> None:
    envs: Any = gym.make_vec(CART, 2)
    collected = weakref.ref(envs.unwrapped)
    replay = envs.unwrapped.replay()
    del envs
    gc.collect()
    assert collected() is replay.envs


def test_what_to_log_beside_observations_is_said(opened: Callable[[str], LogReplay]) -> None:
    observations, _, _ = recorded(PUSHER, 3)
    with pytest.raises(EnvStateError, match=r"Log qpos and qvel, both of shape \(T \+ 1, 11\), beside observations"):
        opened(PUSHER).read(observations, {})


@pytest.mark.parametrize("env_id", [PUSHER, ANT, "gym_dr/InvertedDoublePendulumDR-v5"])
def test_logged_positions_and_velocities_are_taken(env_id: str, opened: Callable[[str], LogReplay]) -> None:
    replay = opened(env_id)
    observations, actions, exact = recorded(env_id, 10)
    model: Any = replay._model  # type: ignore[attr-defined]
    columns = {"qpos": exact[:, : model.nq], "qvel": exact[:, model.nq :]}
    reading = replay.read(np.full_like(observations, np.nan), columns)
    np.testing.assert_array_equal(reading.states, exact)
    assert reading.usable.all()
    missed = replay.difference(stepped(replay, exact[:-1], actions), exact[1:])
    assert np.abs(missed).max() < 1e-4
    if env_id != PUSHER:  # velocities alone take the place of clipped ones
        alone = replay.read(observations, {"qvel": columns["qvel"]}).states
        np.testing.assert_array_equal(alone[:, model.nq :], columns["qvel"])
        np.testing.assert_allclose(alone[:, 2 : model.nq], exact[:, 2 : model.nq], atol=1e-6)


@pytest.mark.parametrize(
    ("env_id", "name", "columns", "message"),
    [
        (HALF_CHEETAH, "qpos", 8, r"'qpos': expected shape \(4, 9\), got \(4, 8\)"),
        (HALF_CHEETAH, "qvel", 8, r"'qvel': expected shape \(4, 9\), got \(4, 8\)"),
        (PENDULUM, "state/theta", 1, r"'state/theta': expected shape \(4,\), got \(4, 1\)"),
    ],
)
def test_columns_of_another_shape_are_refused(
    env_id: str, name: str, columns: int, message: str, opened: Callable[[str], LogReplay]
) -> None:
    observations, _, _ = recorded(env_id, 3)
    with pytest.raises(EnvStateError, match=message):
        opened(env_id).read(observations, {name: np.zeros((4, columns))})


def test_a_clipped_velocity_makes_its_two_steps_unusable_with_the_reason(opened: Callable[[str], LogReplay]) -> None:
    replay = opened("gym_dr/Walker2dDR-v5")
    observations = np.zeros((6, 17))
    observations[2, 12] = -10.0
    reading = replay.read(observations, {})
    assert reading.usable.tolist() == [True, False, False, True, True]
    ((reason, lost),) = reading.reasons.items()
    assert reason == "a velocity is clipped at 10 in the observation; log qvel"
    assert lost.tolist() == [False, True, True, False, False]


def test_a_logged_state_replaces_what_the_observation_tells(opened: Callable[[str], LogReplay]) -> None:
    observations, _, _ = recorded(PENDULUM, 3)
    reading = opened(PENDULUM).read(observations, {"state/theta": np.array([0.1, 0.2, 0.3, 0.4])})
    assert reading.states[:, 0].tolist() == [0.1, 0.2, 0.3, 0.4]


def test_how_far_a_robot_has_come_changes_no_step(opened: Callable[[str], LogReplay]) -> None:
    replay = opened(HALF_CHEETAH)
    observations, actions, _ = recorded(HALF_CHEETAH, 10)
    states = replay.read(observations, {}).states[:-1]
    away = states.copy()
    away[:, 0] += 8.0
    near, far = (stepped(replay, each, actions) for each in (states, away))
    np.testing.assert_allclose(far[:, 1:], near[:, 1:], atol=1e-6)
    assert "rootx" not in [coordinate.name for coordinate in replay.coordinates]


def test_time_steps_are_told(opened: Callable[[str], LogReplay]) -> None:
    assert opened(CART).time_step == "tau"
    assert opened(PENDULUM).time_step == "dt"
    assert opened(HALF_CHEETAH).time_step == pytest.approx(0.05)
    assert replay_of(HALF_CHEETAH, 2, frame_skip=2).time_step == pytest.approx(0.02)
    assert opened(LANDERS[0]).time_step == pytest.approx(0.02)


def test_a_free_joints_coordinates_are_those_of_mujoco(opened: Callable[[str], LogReplay]) -> None:
    replay = opened(ANT)
    states, _ = wandered(replay, 3)
    moved, _ = wandered(replay, 4)
    model: Any = replay._model  # type: ignore[attr-defined]
    expected = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, expected, 1.0, states[0, : model.nq], moved[0, : model.nq])
    found = replay.difference(moved, states)[0]
    by_name = dict(zip([c.name for c in replay.coordinates], found.tolist(), strict=True))
    assert by_name["root rotation about x"] == pytest.approx(expected[3])
    assert by_name["root z"] == pytest.approx(expected[2])


# ---- the lander ----


@pytest.mark.parametrize("env_id", LANDERS)
def test_a_flight_without_engines_is_predicted(env_id: str) -> None:
    observations, actions, _ = recorded(env_id, 45, {"initial_random": 300.0}, idle=True)
    replay = replay_of(env_id)
    reading = replay.read(observations, {})
    assert reading.usable.sum() > 5
    states = filled(replay, reading, actions)
    missed = replay.difference(stepped(replay, states[:-1], actions), states[1:])[reading.usable]
    assert (np.abs(missed).max(axis=0) < 3 * np.array(replay.inexact)).all(), np.abs(missed).max(axis=0)


def test_engines_are_as_random_as_in_the_environment() -> None:
    observations, actions, _ = recorded(LANDERS[0], 60)
    replay = replay_of(LANDERS[0])
    assert replay.random_steps
    reading = replay.read(observations, {})
    states, rows = filled(replay, reading, actions), np.flatnonzero(reading.usable)
    after = []
    for seed in range(24):
        replay.rewind(replay.streams(1000 * seed))
        after.append(replay.difference(stepped(replay, states[rows], actions[rows]), states[rows]))
    spread, missed = np.std(after, axis=0), np.mean(after, axis=0) - replay.difference(states[rows + 1], states[rows])
    deviations = missed / np.sqrt(np.square(spread) + np.square(replay.inexact))
    assert np.sqrt(np.square(deviations).mean()) < 1.5
    assert (spread[actions[rows] == 2] > 0).all()


def test_random_streams_start_again() -> None:
    replay = replay_of(LANDERS[0])
    states = np.repeat(replay.first[None], SLOTS, axis=0)
    actions, streams = np.full(SLOTS, 2), replay.streams(5)
    replay.rewind(streams)
    first = replay.step(states, actions)
    assert (replay.step(states, actions) != first).any()
    replay.rewind(streams)
    np.testing.assert_array_equal(replay.step(states, actions), first)


def test_the_ground_of_the_lander_is_away() -> None:
    # far below the pad it falls on as it does in the air
    replay = replay_of(LANDERS[0])
    air = np.repeat(replay.first[None], SLOTS, axis=0)
    below = replay.add(air, np.tile([0.0, -20.0, 0.0, 0.0, 0.0, 0.0], (SLOTS, 1)))
    actions = np.zeros(SLOTS, np.int64)
    falls = []
    for start in (air, below):
        after = replay.step(start, actions)
        for _ in range(30):
            after = replay.go_on(actions)
        falls.append(replay.difference(after, start))
    np.testing.assert_allclose(falls[1], falls[0], atol=1e-3)


def test_steps_after_a_touch_and_the_last_one_cannot_be_replayed() -> None:
    observations = np.zeros((43, 8))
    observations[39:41, 6] = 1.0  # a leg touches, and leaves the ground again
    replay = replay_of(LANDERS[0], 2)
    reading = replay.read(observations, {})
    assert np.flatnonzero(reading.usable).tolist() == list(range(30, 38))  # 38 ends in the touch
    counts = {reason.split()[0]: int(mask.sum()) for reason, mask in reading.reasons.items()}
    assert counts == {"a": 4, "the": 30}


def test_the_last_step_of_a_flight_may_be_a_crash() -> None:
    reading = replay_of(LANDERS[0], 2).read(np.zeros((41, 8)), {})
    assert np.flatnonzero(reading.usable).tolist() == list(range(30, 39))


@pytest.mark.parametrize("power", ["wind_power", "turbulence_power"])
def test_wind_changes_a_step_in_proportion_to_its_strength(power: str) -> None:
    replay = replay_of(LANDERS[0])
    names = [profile.power for profile in replay.force_profiles]
    profile = replay.force_profiles[names.index(power)]
    others = {"wind_power": 0.0, "turbulence_power": 0.0}
    phases = np.zeros((SLOTS, 2), np.int64)
    phases[:, names.index(power)] = profile.low + np.arange(SLOTS) * 37
    actions = np.zeros(SLOTS, np.int64)

    def moved(strength: float) -> Numbers:
        replay.begin({"enable_wind": 1.0, **others, power: strength})
        states = np.repeat(still[None], SLOTS, axis=0)
        found: Numbers = replay.difference(replay.step(states, actions, phases=phases), states)
        return found

    replay.begin({})
    still = replay.first
    calm, half, whole = moved(0.0), moved(0.75), moved(1.5)
    axis = 2 if power == "wind_power" else 5  # pushes sideways, or turns
    strengths = profile.strength(phases[:, names.index(power)])
    assert np.abs(strengths).max() > 0.5
    pushed = (whole - calm)[:, axis]
    slope = pushed @ strengths / (strengths @ strengths)
    np.testing.assert_allclose(pushed, slope * strengths, atol=0.01 * np.abs(pushed).max())
    np.testing.assert_allclose((half - calm)[:, axis], 0.5 * pushed, atol=0.01 * np.abs(pushed).max())
