from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr import Scale
from gym_dr.errors import EnvStateError, InvalidActionError, RandomizationWarning
from gym_dr.testing.playing import interface
from tests.envs.mujoco.names import NAMES, assert_same, native, single, sync

MASSES = {"body_mass:*": Scale((0.5, 2.0)), "geom_friction:floor.slide": (0.5, 1.5)}


def test_draws_reach_the_model_and_info() -> None:
    env = single("Hopper", randomization=MASSES)
    for seed in (1, 2):
        _, info = env.reset(seed=seed)
        model = env.unwrapped.model
        for i, body in enumerate(("torso", "thigh", "leg", "foot"), start=1):
            assert model.body_mass[i] == info["params"][f"body_mass:{body}"]
        assert model.geom_friction[0, 0] == info["params"]["geom_friction:floor.slide"]
        assert info["params"] == env.get_wrapper_attr("params")
        assert env.step(env.action_space.sample())[4]["params"] == info["params"]


def test_pins_and_exact_values_reach_the_model_and_leave_it_again() -> None:
    env = single("Ant", randomization="default")
    env.get_wrapper_attr("set_params")({"dof_armature": 1.5})
    _, info = env.reset(seed=1, options={"params": {"body_mass:torso": 0.5, "gravity.z": -5.0}})
    model = env.unwrapped.model
    assert info["params"]["body_mass:torso"] == model.body_mass[1] == 0.5
    assert (info["params"]["gravity.z"], info["params"]["dof_armature"]) == (model.opt.gravity[2], 1.5) == (-5.0, 1.5)
    np.testing.assert_allclose(model.dof_armature[6:], 1.5)
    env.get_wrapper_attr("set_params")(None)
    _, info = env.reset()
    assert info["params"].keys() == env.get_wrapper_attr("randomization").keys()
    assert model.body_mass[1] == info["params"]["body_mass:torso"] != 0.5
    assert model.opt.gravity[2] == -9.81
    np.testing.assert_allclose(model.dof_armature[6:], 1.0)


def test_an_action_that_is_infinite_as_a_float64_is_refused() -> None:
    env = single("Hopper")
    env.reset(seed=1)
    with pytest.raises(InvalidActionError, match="Expected"):
        interface(env).step(np.full(3, np.longdouble("1e400")))


@pytest.mark.parametrize("name", ["InvertedPendulum", "Ant"])
def test_a_pickle_keeps_randomization_and_pins_and_needs_a_reset(name: str) -> None:
    env = interface(single(name, randomization="wide"))
    env.set_params({"gravity.z": -5.0})
    env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    with pytest.raises(EnvStateError, match="Expected reset"):
        copy.step(np.zeros(env.action_space.shape))
    for _ in range(2):
        one, other = env.reset(seed=3), copy.reset(seed=3)
        assert one[1]["params"] == other[1]["params"]
        np.testing.assert_array_equal(one[0], other[0])
        assert copy.unwrapped.model.opt.gravity[2] == -5.0


def diverge(envs: Any, sub: int) -> None:
    """Makes the simulation of one sub-environment impossible."""
    unwrapped = envs.unwrapped
    if hasattr(unwrapped, "_backend"):
        engine = unwrapped._backend.engine
        engine.qvel[sub] = 1e12
        if hasattr(engine, "_data"):
            engine._data[sub].qvel[:] = 1e12
    else:
        unwrapped.envs[sub].unwrapped.data.qvel[:] = 1e12


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("name", ["Hopper", "Ant"])
@pytest.mark.parametrize("make", [native, sync])
def test_a_diverging_simulation_is_truncated_and_reported(
    make: Any, name: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kwargs = {"autoreset_mode": mode} if make is native else {"vector_kwargs": {"autoreset_mode": mode}}
    envs, untouched = make(name, **kwargs), make(name, **kwargs)
    observations, first = envs.reset(seed=4)
    untouched.reset(seed=4)
    actions = np.full(envs.action_space.shape, 0.1, np.float32)
    diverge(envs, 1)
    with pytest.warns(RandomizationWarning, match=r"diverged.*seed 5, draw 0.*body_mass"):
        after, rewards, terminations, truncations, info = envs.step(actions)
    expected = untouched.step(actions)
    assert (terminations.tolist(), truncations.tolist()) == ([False] * 3, [False, True, False])
    assert rewards[1] == 0.0
    last = info["final_info"] if mode == "SameStep" else info
    assert last["diverged"].tolist() == last["_diverged"].tolist() == [False, True, False]
    assert last["draw_index"][1] == 0
    seen = info["final_obs"][1] if mode == "SameStep" else after[1]
    np.testing.assert_array_equal(seen, observations[1])
    for i in (0, 2):
        np.testing.assert_array_equal(after[i], expected[0][i])
        assert rewards[i] == expected[1][i]
    # the sub-environment goes on with its next draw
    result = envs.step(actions)
    assert result[4]["draw_index"].tolist() == [0, 1, 0]
    assert np.isfinite(result[0]).all()
    assert first["params"]["body_mass:torso"][1] != result[4]["params"]["body_mass:torso"][1]
    assert list(tmp_path.iterdir()) == []  # no MUJOCO_LOG.TXT
    envs.close()
    untouched.close()


@pytest.mark.parametrize("name", NAMES)
def test_making_an_environment_writes_no_log(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    single(name).close()  # MuJoCo writes warnings, as of what is deprecated in a model, to MUJOCO_LOG.TXT
    native(name).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*diverged")
@pytest.mark.parametrize("name", ["InvertedDoublePendulum", "HalfCheetah", "Ant"])
def test_draws_that_always_diverge_end_the_same_way_everywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wild = {"actuator_gear": Scale(1000.0)}
    ours, theirs = native(name, 2, randomization=wild), sync(name, 2, randomization=wild)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    ours.action_space.seed(0)
    ends = 0
    for _ in range(30):
        actions = ours.action_space.sample()
        left, right = ours.step(actions), theirs.step(actions)
        assert_same(left, right)
        assert np.isfinite(left[0]).all()
        ends += int(left[4].get("diverged", np.zeros(2)).sum())
    assert ends > 5
    assert list(tmp_path.iterdir()) == []
