"""The Crazyflie that hovers: its model against published figures, its rotors and its task."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import pytest

from gym_dr.arrays import Array
from gym_dr.zoo import crazyflie
from tests.envs.mujoco.names import assert_same_episodes

OURS = Path(crazyflie.__file__).with_suffix(".xml")
ID = "gym_dr/CrazyflieHoverDR-v0"
WEIGHT = 0.027 * 9.81  # N: 0.26487
PARAMS = {**dict.fromkeys(crazyflie.ROTORS, np.ones(1)), "motor_time": np.full(1, 0.05)}


@pytest.fixture(scope="module")
def model() -> Any:
    return crazyflie.model().compile()


def test_the_mass_is_that_of_the_data_sheet(model: Any) -> None:
    assert model.body("cf2").mass[0] == 0.027


def test_the_inertia_is_that_of_landry(model: Any) -> None:
    np.testing.assert_allclose(model.body("cf2").inertia, [2.3951e-5, 2.3951e-5, 3.2347e-5])


def test_rotors_are_46_mm_from_the_center_where_their_forces_are_said_to_act(model: Any) -> None:
    places = np.array([model.geom(name).pos[:2] for name in crazyflie.ROTORS])
    np.testing.assert_allclose(places, np.stack([crazyflie.X, crazyflie.Y], axis=1))
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 0.046, atol=1e-4)  # 92 mm from rotor to rotor


def test_the_keyframes_thrust_carries_the_weight(model: Any) -> None:
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    assert data.ctrl[0] == pytest.approx(WEIGHT, rel=1e-4)
    mujoco.mj_step(model, data, 200)
    np.testing.assert_allclose(data.qpos, model.key("hover").qpos, atol=1e-3)


def test_a_model_with_menageries_ranges_and_signs_is_driven_and_placed_as_ours(model: Any, tmp_path: Path) -> None:
    text = OURS.read_text()
    for ours, theirs in (("0 0 0 1 0 0", "0 0 0 -1 0 0"), ("-0.01 0.01", "-1e-5 1e-5"), ("0 0 1.5 1", "0 0 0.3 1")):
        assert ours in text
        text = text.replace(ours, theirs)
    (tmp_path / "cf2.xml").write_text(text)
    other = crazyflie.model(str(tmp_path / "cf2.xml")).compile()
    for field in ("actuator_gear", "actuator_ctrlrange", "key_qpos", "key_ctrl"):
        np.testing.assert_array_equal(getattr(other, field), getattr(model, field))


@pytest.mark.parametrize("rotor", range(4))
def test_thrust_and_moments_are_those_of_a_force_at_the_rotor_and_its_torque(model: Any, rotor: int) -> None:
    data, expected = mujoco.MjData(model), np.zeros(model.nv)
    mujoco.mj_forward(model, data)
    force, torque = np.array([0.0, 0.0, 0.1]), np.array([0.0, 0.0, 0.1 * 0.005964552 * [-1, 1, -1, 1][rotor]])
    place, body = data.geom(crazyflie.ROTORS[rotor]).xpos, model.body("cf2").id
    mujoco.mj_applyFT(model, data, force, torque, place, body, expected)
    data.ctrl[:] = crazyflie.MIX[:, rotor] * 0.1
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_actuator, expected, atol=1e-12)


def seen(model: Any, data: Any, action: Array, memory: dict[str, Array]) -> Any:
    """The state of one quadrotor, as the task sees it."""
    fields = {name: getattr(data, name)[None] for name in ("qpos", "qvel", "ctrl", "xmat")}
    memory = {name: value[None] for name, value in memory.items()}
    return SimpleNamespace(model=model, action=action[None], params=PARAMS, memory=memory, **fields)


def flown(model: Any, data: Any, action: Array, seconds: float) -> None:
    for _ in range(round(seconds / model.opt.timestep)):
        data.ctrl[:] = crazyflie.action(seen(model, data, action, {}))[0]
        mujoco.mj_step(model, data)


def test_after_the_time_constant_63_percent_of_a_change_of_thrust_are_there(model: Any) -> None:
    data = mujoco.MjData(model)
    flown(model, data, np.zeros(4), 0.05)
    assert data.ctrl[0] == pytest.approx((1 - np.exp(-1)) * 2 * crazyflie.MOST)


def test_rotors_give_at_most_what_they_can(model: Any) -> None:
    data = mujoco.MjData(model)
    flown(model, data, np.array([1.0, 1.0, 1.0, 1.0]), 0.5)
    rotors = np.linalg.solve(crazyflie.MIX, data.ctrl)
    assert rotors.min() > -1e-9
    assert rotors.max() < crazyflie.MOST + 1e-9


@pytest.mark.parametrize("axis", range(3))
def test_it_turns_at_the_commanded_rate(model: Any, axis: int) -> None:
    data, action = mujoco.MjData(model), np.zeros(4)
    data.qpos[2], action[1 + axis] = 5.0, 0.3
    flown(model, data, action, 0.6)
    expected = 0.3 * crazyflie.RATES[axis] * np.eye(3)[axis]
    np.testing.assert_allclose(data.qvel[3:], expected, atol=0.1 * crazyflie.RATES[axis])


def test_the_mirror_image_of_a_flight_is_the_flight_of_the_mirror_image(model: Any) -> None:
    with contextlib.closing(gym.make_vec(ID, 1)) as envs:
        mirror: Any = envs.unwrapped.mirror  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    one, other = mujoco.MjData(model), mujoco.MjData(model)
    one.qpos[:], one.qvel[:] = [0.1, 0.2, 2.0, 0.9, 0.2, 0.3, 0.1], rng.uniform(-1, 1, 6)
    one.qpos[3:] /= np.linalg.norm(one.qpos[3:])
    flip = np.array([1.0, -1.0, 1.0])
    other.qpos[:] = [*flip * one.qpos[:3], *np.array([1.0, -1.0, 1.0, -1.0]) * one.qpos[3:]]
    other.qvel[:] = [*flip * one.qvel[:3], *-flip * one.qvel[3:]]
    for _ in range(10):
        action = rng.uniform(-0.5, 0.5, 4)
        image = action[mirror.action_places] * mirror.action_signs
        flown(model, one, action, 0.02)
        flown(model, other, image, 0.02)
    found = []
    for data, chosen, side in ((one, action, 1.0), (other, image, -1.0)):
        memory = {"target": np.array([0.0, side, 1.0]), "average": np.array([0.1, side, 0.0]), "last_action": chosen}
        found.append(np.concatenate([*crazyflie.observe(seen(model, data, chosen, memory)).values()], axis=1)[0])
    np.testing.assert_allclose(found[1], found[0][mirror.observation_places] * mirror.observation_signs, atol=1e-9)


def test_episodes_begin_level_to_tilted_by_1_rad_and_half_a_meter_away() -> None:
    with contextlib.closing(gym.make_vec(ID, 1000)) as envs:
        observations, _ = envs.reset(seed=0)
    distances, tilts = np.linalg.norm(observations[:, :3], axis=1), np.arccos(observations[:, 14])
    assert distances.max() < 0.5 * 3**0.5
    assert distances.mean() == pytest.approx(0.48, abs=0.02)  # of a cube with sides of 1 m: 0.4803
    assert (tilts.min(), tilts.max()) == pytest.approx((0, 1), abs=0.02)


def test_native_equals_sync_under_draws() -> None:
    sync, native = (
        gym.make_vec(ID, 2, vectorization_mode=mode, randomization="wide", max_episode_steps=8)
        for mode in ("sync", "vector_entry_point")
    )
    assert assert_same_episodes(sync, native, 12) >= 2


def test_without_control_it_is_lost() -> None:
    with contextlib.closing(gym.make_vec(ID, 20)) as envs:
        envs.reset(seed=0)
        lost = np.zeros(20, np.bool_)
        for _ in range(150):
            lost |= envs.step(np.zeros((20, 4), np.float32))[2]
    assert lost.all()
