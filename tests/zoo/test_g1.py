"""The G1 that walks: its model, its task, and a stock model in its place."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import pytest

from gym_dr.arrays import Array
from gym_dr.zoo import g1
from tests.envs.mujoco.names import assert_same_episodes
from tests.envs.mujoco.stock.wheels import unpacked
from tests.zoo.stock import Place, differences

ID = "gym_dr/G1WalkDR-v0"
STOCK = "asset_zoo/robots/unitree_g1/xmls/g1.xml"
HALF = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])  # a quarter turn to the left
pytest.importorskip("mujoco.batch", reason="older versions of MuJoCo have no delays of actuators")


@pytest.mark.slow
def test_our_model_has_the_inertia_the_feet_and_the_limits_of_the_stock_one() -> None:
    stock = g1.model(unpacked("mjlab") / STOCK).compile()
    places = {leg: (Place(kind="site", name=f"{leg}_foot"),) * 2 for leg in g1.LEGS}
    found = differences(g1.model().compile(), stock, places=places, armature=False)
    assert found.inertia < 0.03
    assert max(found.places.values()) < 0.002
    assert max(found.ranges.values()) < 1e-9


@pytest.mark.slow
def test_the_task_runs_on_a_stock_model_alike() -> None:
    stock = str(unpacked("mjlab") / STOCK)
    observed: list[Array] = []
    options: tuple[dict[str, Any], ...] = ({}, {"model": stock})
    for given in options:
        with contextlib.closing(gym.make_vec(ID, 2, **given)) as envs:
            envs.reset(seed=1)
            observed.append([envs.step(np.zeros((2, 12)))[0][:, :12] for _ in range(15)][-1])
    np.testing.assert_allclose(observed[0], observed[1], atol=3e-2)  # joints, rad: soles touch the floor at other times


@pytest.mark.parametrize("preset", ["default", "wide"])
def test_native_equals_sync_with_each_preset(preset: str) -> None:
    sync, native = (
        gym.make_vec(ID, 2, vectorization_mode=mode, randomization=preset, max_episode_steps=6)
        for mode in ("sync", "vector_entry_point")
    )
    assert assert_same_episodes(sync, native, 9) >= 2


def test_the_mirror_image_of_a_robot_moves_as_its_mirror_image() -> None:
    with contextlib.closing(gym.make_vec(ID, 1)) as envs:
        mirror: Any = envs.unwrapped.mirror  # type: ignore[attr-defined]
    model, rng = g1.model().compile(), np.random.default_rng(0)
    one, other = mujoco.MjData(model), mujoco.MjData(model)
    places, signs, flip = mirror.action_places, mirror.action_signs, np.array([1.0, -1.0, 1.0])
    one.qpos[:], one.qvel[:] = model.key("home").qpos, rng.uniform(-0.2, 0.2, 18)
    other.qpos[:], turning = one.qpos, one.qvel[3:6]
    other.qvel[:] = [*flip * one.qvel[:3], *-flip * turning, *one.qvel[6 + places] * signs]
    clock, last = 0.1, np.zeros(12)
    for _ in range(15):
        last = rng.uniform(-0.3, 0.3, 12)
        for data, chosen, when in ((one, last, clock), (other, last[places] * signs, clock + 0.5)):
            data.ctrl[:] = g1.action(state_of(data, chosen, when))[0]
            mujoco.mj_step(model, data, 4)
        clock += 0.02
    seen, image = (
        np.hstack(list(g1.observe(state_of(*each)).values()))[0]
        for each in ((one, last, clock), (other, last[places] * signs, clock + 0.5))
    )
    np.testing.assert_allclose(image, seen[mirror.observation_places] * mirror.observation_signs, atol=1e-6)
    assert one.ncon > 0  # it stands on the floor


def state_of(data: Any, action: Array, clock: float) -> Any:
    """A state with one robot."""
    memory = {"command": np.array([[0.5]]), "clock": np.array([clock % 1.0]), "last_action": action[None]}
    arrays = {name: getattr(data, name)[None] for name in ("qpos", "qvel", "xmat")}
    return SimpleNamespace(**arrays, memory=memory, action=action[None])


def test_the_speed_that_counts_is_forward_wherever_it_looks() -> None:
    model = g1.model().compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[3:7], data.qvel[:3] = HALF, (0.0, 0.5, 0.0)  # it looks and moves along y
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(g1.observe(state_of(data, np.zeros(12), 0.0))["velocity"], [[0.5, 0, 0]], atol=1e-12)


def test_without_corrections_it_falls_within_three_seconds() -> None:
    with contextlib.closing(gym.make_vec(ID, 8)) as envs:
        envs.reset(seed=0)
        fallen = [envs.step(np.zeros((8, 12)))[2] for _ in range(150)]
    assert np.any(fallen, axis=0).all()
