from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr import Scale, VectorParams
from tests.envs.mujoco.names import assert_same, native, sync
from tests.processes import threads

MASSES = {"body_mass:*": Scale((0.5, 2.0))}


def actions_of(envs: Any) -> Any:
    return np.full(envs.action_space.shape, 0.2, np.float32)


@pytest.mark.parametrize("name", ["Hopper", "Ant"])
def test_pins_and_exact_values_do_what_they_do_in_a_sync_environment(name: str) -> None:
    ours, theirs = native(name, 3, max_episode_steps=4), VectorParams(sync(name, 3, max_episode_steps=4))
    mask = np.array([True, False, True])
    for envs in (ours, theirs):
        envs.set_params({"gravity.z": [-5.0, -6.0, -7.0]})
        envs.set_params({"body_mass": 1.5}, mask=mask)
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    assert ours.params["gravity.z"].tolist() == [-5.0, -6.0, -7.0]
    assert ours.params["body_mass"].tolist() == [1.5, 1.0, 1.5]
    assert_same(ours.params, theirs.params)
    for t in range(14):
        if t == 6:
            for envs in (ours, theirs):
                envs.set_params(None, mask=~mask)
        if t == 10:
            options = {"params": {"body_mass:torso": [0.4, 0.5, 0.6]}, "reset_mask": np.array([False, True, True])}
            assert_same(ours.reset(options=dict(options)), theirs.reset(options=dict(options)))
        assert_same(ours.step(actions_of(ours)), theirs.step(actions_of(ours)))
        assert_same(ours.params, theirs.params)
        assert ours.draw_index.tolist() == theirs.draw_index.tolist()


def test_what_was_handed_back_is_reported_no_more() -> None:
    for envs in (native("Ant", 2, randomization="none"), VectorParams(sync("Ant", 2, randomization="none"))):
        nominal = envs.reset(seed=1)[0]
        envs.set_params({"body_mass:torso": 2.0})
        envs.reset(seed=1)
        assert envs.params["body_mass:torso"].tolist() == [2.0, 2.0]
        envs.set_params(None)
        observations, info = envs.reset(seed=1)
        assert envs.params == {} == info["params"]
        np.testing.assert_array_equal(observations, nominal)


@pytest.mark.parametrize("name", ["Hopper", "Ant"])
def test_the_number_of_threads_is_what_was_asked_for(name: str) -> None:
    before = threads()
    envs = native(name, 8, num_threads=3)
    envs.reset(seed=1)
    envs.step(actions_of(envs))
    assert envs.unwrapped.num_threads == 3
    assert threads() - before <= 2  # the caller's is the third
    envs.close()
    assert native(name, 2, num_threads=5).unwrapped.num_threads == 2


@pytest.mark.parametrize("name", ["InvertedPendulum", "Ant"])
def test_every_sub_environment_is_drawn_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = native(name, 2, render_mode="rgb_array", width=64, height=48)
    single = envs.unwrapped._backend.env
    # in place of OpenGL, which not every machine has: what the renderer would see
    monkeypatch.setattr(single, "render", lambda: (single.data.qpos.copy(), single.model.geom_size.copy()))
    envs.reset(seed=1)
    envs.step(actions_of(envs))
    frames = envs.render()
    for i, (qpos, sizes) in enumerate(frames):
        np.testing.assert_array_equal(qpos, envs.unwrapped._backend.engine.qpos[i])
        if name == "InvertedPendulum":
            assert sizes[2, 1] == pytest.approx(0.3 * envs.params["body_length:pole"][i], rel=1e-4)
    nominal = envs.unwrapped.param_space["body_mass:pole" if name == "InvertedPendulum" else "body_mass:torso"].nominal
    envs.set_params({"gravity.z": -5.0})  # new fields start from nominal, not from what was drawn
    envs.reset()
    assert envs.unwrapped._backend.model_fields.nominal["body_mass"][2 if name == "InvertedPendulum" else 1] == nominal
    envs.close()
