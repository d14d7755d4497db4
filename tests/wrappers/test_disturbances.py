"""Disturbances in time: pushes, wrenches and gains, when they come, how large they are, and where they act."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import gym_dr
from gym_dr import Disturb, DisturbVector, Integer
from gym_dr.envs.stack import pushed_layer
from gym_dr.errors import EnvStateError, InvalidActionError, RandomizationError, UnknownNameError
from gym_dr.runs.environments import param_space_of
from gym_dr.testing.playing import assert_same
from gym_dr.wrappers.disturbances import FLOATING, Disturbances
from tests.registered import forgotten_afterwards
from tests.wrappers.test_disturb import ALL, results_of

FLOATER = "tests/Floater-v0"
BOX = gym.spaces.Box(-10, 10, (2,))
MODEL = """<mujoco><option gravity="0 0 0"/><worldbody>
<body name="ball" pos="3 0 0"><freejoint/><geom size="0.1" mass="9"/></body>
<body name="torso"><freejoint/><geom size="0.1" mass="2"/>
<body name="leg"><joint name="hip" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.03" mass="1"/>
</body>
</body></worldbody><actuator><motor joint="hip" ctrlrange="-1 1"/></actuator></mujoco>"""
IN_TIME = {
    **ALL,
    "push_vertical_speed": (0.0, 0.5),
    "push_angular_speed": (0.0, 0.5),
    "wrench_force": (0.0, 2.0),
    "wrench_torque": (0.0, 0.2),
    "wrench_interval": Integer(0, 4),
}


@pytest.fixture(params=["batch", "own data"])
def floater(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A robot that shows the wrenches on its bodies, in either engine."""
    path = tmp_path / "floater.xml"
    path.write_text(MODEL)
    with forgotten_afterwards():
        gym_dr.register_robot(
            FLOATER,
            model=path,
            observe=lambda s: np.concatenate([s.qvel, s.xfrc_applied.reshape(len(s.qvel), -1)], axis=1),
            reward=lambda before, after: after.qpos[:, 7],
            reset=lambda state, rng: (state.qpos, state.qvel),
            fields=["xfrc_applied", *(["cfrc_ext"] if request.param == "own data" else [])],
            max_episode_steps=9,
        )
        yield FLOATER


TORSO = slice(13 + 12, 13 + 18)  # its wrench in an observation: after 13 velocities, the world and the ball


def disturbances(num_envs: int, rules: dict[str, Any], *, push_size: int = 6, floats: bool = True) -> Disturbances:
    """Disturbances whose first episodes have begun."""
    found = Disturbances(rules, num_envs, BOX, BOX, 1.0, push_size, floats)
    found.table.seed(np.arange(num_envs), np.arange(num_envs).astype(np.uint64))
    found.begin(np.arange(num_envs), {})
    found.observe(np.zeros((num_envs, 2), np.float32))
    return found


def later(found: Disturbances) -> None:
    """One step later."""
    found.act(np.zeros((found.num_envs, 2), np.float32))
    found.acted()
    found.observe(np.zeros((found.num_envs, 2), np.float32))


# ---- in any kind of environment --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_single_sync_and_native_are_pushed_and_pulled_alike(floater: str, mode: AutoresetMode) -> None:
    native = gym.make_vec(floater, 3, autoreset_mode=mode)
    sync = gym.make_vec(floater, 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode})
    single = SyncVectorEnv([lambda: Disturb(gym.make(floater), IN_TIME)] * 3, autoreset_mode=mode)
    first = results_of(DisturbVector(native, IN_TIME), 25)
    for other in (DisturbVector(sync, IN_TIME), single):
        assert_same(first, results_of(other, 25))


def test_new_disturbances_change_no_draw_and_no_noise_of_others() -> None:
    def episodes(rules: dict[str, Any]) -> Any:
        envs = DisturbVector(gym.make_vec("Pendulum-v1", 2), rules)
        return [envs.reset(seed=1)[0], *(envs.step(np.ones((2, 1), np.float32))[0] for _ in range(3))]

    alone = {"obs_noise": (0.0, 0.1), "obs_bias": (0.0, 0.1)}
    idle = {"action_gain": (0.0, 1e-9), "action_gain_interval": 0, "obs_offset:0": (0.0, 1e-9)}
    assert_same(episodes(alone), episodes({**alone, **idle}), 1e-6)


def test_only_a_floating_base_takes_wrenches_and_other_pushes(floater: str) -> None:
    offered: Any = param_space_of(floater)
    assert set(FLOATING) <= set(offered.disturbances)
    for env_id in ("gym_dr/HopperDR-v5", "gym_dr/LunarLanderContinuousDR-v3"):
        without: Any = param_space_of(env_id)
        assert set(FLOATING).isdisjoint(without.disturbances)
        assert without["push_interval"].needs == ("push_speed",)
        with pytest.raises(RandomizationError, match="wrench_force: expected a robot with a floating base"):
            Disturb(gym.make(env_id), {"wrench_force": 1.0})
        with pytest.raises(RandomizationError, match="wrench_force: expected a robot with a floating base"):
            DisturbVector(gym.make_vec(env_id, 1), {"wrench_force": 1.0})
        with pytest.raises(UnknownNameError, match=r"does not take this disturbance.*floating base also take"):
            without["push_vertical_speed"]
    envs: Any = gym.make_vec("gym_dr/HopperDR-v5", 1)
    envs.reset(seed=1)
    with pytest.raises(EnvStateError, match="floating base"):
        envs.apply_wrench(np.zeros((1, 6)), [0])


# ---- pushes ----------------------------------------------------------------------------------------------------------


def test_pushes_come_after_every_so_many_steps_of_each_episode(floater: str) -> None:
    envs = DisturbVector(gym.make_vec(floater, 20), {"push_speed": 1.0, "push_interval": Integer(0, 3)})
    _, info = envs.reset(seed=1)
    speeds = [np.zeros(20), *(envs.step(np.zeros((20, 1)))[0][:, 6] for _ in range(9))]
    pushed = np.abs(np.diff(speeds, axis=0)) > 1e-3  # the leg changes the speed a little in each step
    for i, interval in enumerate(info["params"]["push_interval"].astype(int).tolist()):
        expected = [age for age in range(1, 9) if interval and age % interval == 0]
        assert np.flatnonzero(pushed[:, i]).tolist() == expected
    assert {0, 1, 2, 3} == set(info["params"]["push_interval"])


def test_pushes_at_intervals_and_by_chance_add_up() -> None:
    found = disturbances(4000, {"push_speed": 1.0, "push_probability": 0.25, "push_interval": 3})
    alive, counts = np.ones(4000, np.bool_), []
    for _ in range(7):
        counts.append(len(found.pushes(alive)[0]))
        later(found)
    assert [count == 4000 for count in counts] == [False, False, False, True, False, False, True]
    assert 850 < counts[0] < 1150
    assert len(found.pushes(np.zeros(4000, np.bool_))[0]) == 0


@pytest.mark.parametrize(
    ("name", "columns"),
    [("push_speed", [0, 1]), ("push_vertical_speed", [2]), ("push_angular_speed", [3, 4, 5])],
)
def test_each_kind_of_push_has_its_directions_and_its_size(name: str, columns: list[int]) -> None:
    found = disturbances(4000, {name: 0.5, "push_probability": 1.0})
    _, velocities = found.pushes(np.ones(4000, np.bool_))
    assert np.flatnonzero(velocities.any(axis=0)).tolist() == columns
    np.testing.assert_allclose(velocities[:, columns].std(axis=0), 0.5, rtol=0.05)


def test_a_horizontal_push_is_the_same_whether_or_not_the_base_can_be_turned() -> None:
    rules = {"push_speed": 0.5, "push_probability": 1.0}
    whole, flat = disturbances(3, rules), disturbances(3, rules, push_size=2, floats=False)
    turned = disturbances(3, {**rules, "push_angular_speed": 1.0})
    every = np.ones(3, np.bool_)
    np.testing.assert_array_equal(whole.pushes(every)[1][:, :2], flat.pushes(every)[1])
    np.testing.assert_array_equal(turned.pushes(every)[1][:, :2], flat.pushes(every)[1])


# ---- wrenches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, 3])
def test_a_wrench_stays_until_it_is_drawn_again_and_ends_with_the_episode(floater: str, interval: int) -> None:
    rules = {"wrench_force": 2.0, "wrench_torque": 0.1}
    envs = DisturbVector(gym.make_vec(floater, 2), {**rules, "wrench_interval": interval} if interval else rules)
    assert not envs.reset(seed=1)[0][:, TORSO].any()
    wrenches = [envs.step(np.zeros((2, 1)))[0][:, TORSO] for _ in range(9)]
    new = [k for k in range(9) if k == 0 or (wrenches[k] != wrenches[k - 1]).all()]
    same = [k for k in range(1, 9) if (wrenches[k] == wrenches[k - 1]).all()]
    assert new == ([0, 3, 6] if interval else [0])
    assert sorted(new + same) == list(range(9))
    first, _ = envs.step(np.zeros((2, 1)))[:2]  # the next episode
    assert not first[:, TORSO].any()
    assert (envs.step(np.zeros((2, 1)))[0][:, TORSO] != wrenches[0]).all()


def test_wrenches_have_the_size_that_was_asked_for() -> None:
    found = disturbances(4000, {"wrench_force": 3.0, "wrench_torque": 0.5})
    envs, wrenches = found.wrenches(np.ones(4000, np.bool_))
    assert len(envs) == 4000
    np.testing.assert_allclose(wrenches.std(axis=0), [3.0] * 3 + [0.5] * 3, rtol=0.05)
    later(found)
    assert len(found.wrenches(np.ones(4000, np.bool_))[0]) == 0


def test_a_force_accelerates_the_base(floater: str) -> None:
    envs: Any = gym.make_vec(floater, 2, randomization="none")
    envs.reset(seed=1)
    envs.apply_wrench(np.array([[0.0, 6.0, 0.0, 0.0, 0.0, 0.0]]), [1])
    speeds = envs.step(np.zeros((2, 1)))[0][:, 7]
    assert speeds[0] == 0
    assert 6.0 / 3.0 * 0.002 * 0.9 < speeds[1] < 6.0 / 2.0 * 0.002  # 2 kg, with a leg of 1 kg that lags behind


def test_impossible_wrenches_are_refused(floater: str) -> None:
    many: Any = gym.make_vec(floater, 2, randomization="none")
    one: Any = pushed_layer(gym.make(floater))
    for call in (lambda: many.apply_wrench(np.zeros((1, 6)), [0]), lambda: one.apply_wrench(np.zeros(6))):
        with pytest.raises(EnvStateError):
            call()
    many.reset(seed=1)
    one.reset(seed=1)
    for wrench in (np.zeros(3), np.full(6, np.nan)):
        with pytest.raises(InvalidActionError):
            many.apply_wrench(wrench[None], [0])
        with pytest.raises(InvalidActionError):
            one.apply_wrench(wrench)


def test_a_state_holds_the_wrench(floater: str) -> None:
    envs: Any = gym.make_vec(floater, 2)
    envs.reset(seed=1)
    envs.apply_wrench(np.ones((2, 6)), [0, 1])
    state = envs.get_state()
    expected = envs.step(np.zeros((2, 1)))[0]
    envs.apply_wrench(np.zeros((2, 6)), [0, 1])
    envs.step(np.zeros((2, 1)))
    envs.set_state(state)
    np.testing.assert_array_equal(envs.step(np.zeros((2, 1)))[0], expected)


# ---- gains -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("interval", "new"), [(0, [0]), (2, [0, 2, 4])])
def test_each_actuator_has_a_gain_that_is_drawn_again_when_it_is_time(interval: int, new: list[int]) -> None:
    found = disturbances(
        3000, {"action_gain": 0.2, "action_gain_interval": interval} if interval else {"action_gain": 0.2}
    )
    gains = []
    for _ in range(6):
        gains.append(found.act(np.ones((3000, 2), np.float32)))
        later(found)
    assert [k for k in range(6) if k == 0 or (gains[k] != gains[k - 1]).any()] == new
    np.testing.assert_allclose([gains[0].mean(), gains[0].std()], [1.0, 0.2], rtol=0.05)
    assert abs(np.corrcoef(gains[0].T)[0, 1]) < 0.1


def test_actions_with_gains_stay_in_their_space() -> None:
    assert np.abs(disturbances(100, {"action_gain": 2.0}).act(np.full((100, 2), 9, np.float32))).max() == 10


# ---- what needs what -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        {"push_vertical_speed": 1.0},
        {"push_interval": 3},
        {"push_interval": 0, "push_angular_speed": 1.0},
        {"wrench_interval": 3},
        {"action_gain_interval": 3},
        {"push_interval": (1.0, 3.0), "push_speed": 1.0},
    ],
)
def test_what_has_no_effect_alone_is_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(RandomizationError):
        disturbances(1, rules)
