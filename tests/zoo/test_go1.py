"""The Go1 that follows commands: its model, its task, and a stock model in its place."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import pytest

from gym_dr.arrays import Array
from gym_dr.zoo import go1
from tests.envs.mujoco.names import assert_same_episodes
from tests.envs.mujoco.stock.wheels import unpacked
from tests.zoo.stock import Place, differences

ID = "gym_dr/Go1JoystickDR-v0"
STOCK = "asset_zoo/robots/unitree_go1/xmls/go1.xml"
pytest.importorskip("mujoco.batch", reason="older versions of MuJoCo have no delays of actuators")


@pytest.mark.slow
def test_our_model_has_the_inertia_the_feet_and_the_limits_of_the_stock_one() -> None:
    stock = go1.model(unpacked("mjlab") / STOCK).compile()
    places = {leg: (Place(kind="site", name=leg),) * 2 for leg in go1.LEGS}
    found = differences(go1.model().compile(), stock, places=places)
    assert found.inertia < 0.03
    assert max(found.places.values()) < 0.002
    assert max(found.ranges.values()) < 1e-9


@pytest.mark.slow
def test_the_task_runs_on_a_stock_model_alike() -> None:
    def seen(**given: Any) -> Any:
        with contextlib.closing(gym.make_vec(ID, 2, **given)) as envs:
            envs.reset(seed=1)
            return [envs.step(np.zeros((2, 12)))[0] for _ in range(20)][-1]

    np.testing.assert_allclose(seen(model=str(unpacked("mjlab") / STOCK)), seen(), atol=2e-2)


def test_native_equals_sync_with_commands_and_every_preset() -> None:
    for preset in ("default", "harder"):
        sync, native = (
            gym.make_vec(ID, 2, vectorization_mode=mode, randomization=preset, max_episode_steps=8)
            for mode in ("sync", "vector_entry_point")
        )
        assert assert_same_episodes(sync, native, 12) >= 2


def symmetric() -> Any:
    """The model without the small differences between its left and its right."""
    spec = go1.model()
    for body in spec.bodies[1:]:
        if body.name == "trunk" or body.name.endswith("calf"):
            body.ipos[1] = body.fullinertia[3] = body.fullinertia[5] = 0.0
    spec.option.solver, spec.option.iterations, spec.option.tolerance = mujoco.mjtSolver.mjSOL_NEWTON, 50, 1e-12
    return spec.compile()


def observed(data: Any, action: Array, command: Array, clock: float) -> Array:
    memory = {"command": command[None], "clock": np.array([clock]), "last_action": action[None]}
    arrays = {name: getattr(data, name)[None] for name in ("qpos", "qvel")}
    state = SimpleNamespace(**arrays, memory=memory, sensor=lambda name: data.sensor(name).data[None])
    return np.asarray(np.concatenate([*go1.observe(state).values()], axis=1)[0])


def test_the_mirror_image_of_a_robot_moves_as_its_mirror_image() -> None:
    with contextlib.closing(gym.make_vec(ID, 1)) as envs:
        mirror: Any = envs.unwrapped.mirror  # type: ignore[attr-defined]
    model, rng = symmetric(), np.random.default_rng(0)
    one, other = mujoco.MjData(model), mujoco.MjData(model)
    one.qpos[:] = model.key("home").qpos
    one.qpos[7:] += rng.uniform(-0.2, 0.2, 12)
    one.qvel[:] = rng.uniform(-0.5, 0.5, 18)
    flip = np.array([1.0, -1.0, 1.0])
    joints = (7 + mirror.action_places, 6 + mirror.action_places)
    turned = np.array([1.0, -1.0, 1.0, -1.0]) * one.qpos[3:7]
    other.qpos[:] = [*flip * one.qpos[:3], *turned, *one.qpos[joints[0]] * mirror.action_signs]
    other.qvel[:] = [*flip * one.qvel[:3], *-flip * one.qvel[3:6], *one.qvel[joints[1]] * mirror.action_signs]
    command, clock = rng.uniform(-1, 1, 3), 0.3
    for _ in range(30):
        action = rng.uniform(-0.5, 0.5, 12)
        image = action[mirror.action_places] * mirror.action_signs
        for data, chosen in ((one, action), (other, image)):
            data.ctrl[:] = go1.STAND + go1.REACH * chosen
            mujoco.mj_step(model, data, 5)
    seen = observed(one, action, command, clock)
    image_seen = observed(other, image, command * [1, -1, -1], (clock + 0.5) % 1.0)
    np.testing.assert_allclose(image_seen, seen[mirror.observation_places] * mirror.observation_signs, atol=1e-6)
    assert one.qpos[2] < 0.3  # it stands on the floor


def test_standing_still_is_far_from_the_commands() -> None:
    with contextlib.closing(gym.make_vec(ID, 128, randomization="none")) as envs:
        commands = envs.reset(seed=0)[1]["critic"][:, 3:6]
    assert np.linalg.norm(commands[:, :2], axis=1).mean() > 0.4  # the bar: 0.20 m/s
    assert abs(commands[:, 2]).mean() > 0.2  # 0.15 rad/s
    assert (commands == 0.0).mean(axis=0).min() > 0.02
