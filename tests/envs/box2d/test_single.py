"""Single environments on compiled physics, which take Box2D's place where it is not installed, against those on it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gym_dr.envs.box2d.bipedal_walker import backend as walker_native
from gym_dr.envs.box2d.bipedal_walker import env as walker_box2d
from gym_dr.envs.box2d.lunar_lander import backend as lander_native
from gym_dr.envs.box2d.lunar_lander import env as lander_box2d
from gym_dr.errors import ConfigError, EnvStateError, InvalidActionError
from tests.contracts.test_environments import ENTRIES
from tests.envs.box2d.exact import EXACT

BOX2D_IDS = [entry.id for entry in ENTRIES if ".box2d." in entry.entry_point]
PAIRS = [
    pytest.param(lander_native.LunarLanderDR, lander_box2d.LunarLanderDR, {}, id="lander"),
    pytest.param(lander_native.LunarLanderDR, lander_box2d.LunarLanderDR, {"continuous": True}, id="continuous"),
    pytest.param(walker_native.BipedalWalkerDR, walker_box2d.BipedalWalkerDR, {}, id="walker"),
    pytest.param(walker_native.BipedalWalkerDR, walker_box2d.BipedalWalkerDR, {"hardcore": True}, id="hardcore"),
]


@pytest.mark.parametrize("make", [lander_box2d.LunarLanderDR, walker_box2d.BipedalWalkerDR])
def test_a_first_force_of_minus_0_is_one_of_0(make: Any) -> None:
    by_hand, drawn = (make(randomization=rule) for rule in ("none", {"initial_random": -0.0}))
    expected = by_hand.reset(seed=3, options={"params": {"initial_random": 0.0}})[0]
    for found in (drawn.reset(seed=3), by_hand.reset(seed=3, options={"params": {"initial_random": -0.0}})):
        np.testing.assert_array_equal(found[0], expected)


def play(env: Any, steps: int = 80) -> list[Any]:
    """Everything that three episodes return, the second one without a seed."""
    rows: list[Any] = []
    for seed in (3, None, 4):
        observation, info = env.reset(seed=seed)
        rows += [observation.tobytes(), info]
        env.action_space.seed(0)
        for _ in range(steps):
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            rows += [observation.tobytes(), reward, terminated, truncated, info]
            if terminated:
                break
    return [*rows, env.np_random.random()]


@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
@pytest.mark.parametrize(("ours", "theirs", "kwargs"), PAIRS)
def test_episodes_info_and_random_stream_are_those_on_box2d(ours: Any, theirs: Any, kwargs: Any) -> None:
    envs = [make(randomization="wide", **kwargs) for make in (ours, theirs)]
    assert envs[0].action_space == envs[1].action_space
    assert envs[0].observation_space == envs[1].observation_space
    assert play(envs[0]) == play(envs[1])
    after = []
    for env in envs:
        env.reset(seed=5)
        env.push(np.array([1.0, 2.0]))
        after.append(env.step(env.action_space.high * 0.5 if hasattr(env.action_space, "high") else 2)[0])
    assert (after[0] == after[1]).all()


@pytest.mark.parametrize(("ours", "theirs", "kwargs"), PAIRS)
def test_pictures_are_those_on_box2d(ours: Any, theirs: Any, kwargs: Any) -> None:
    frames = []
    for make in (ours, theirs):
        env = make(randomization="none", render_mode="rgb_array", **kwargs)
        env.reset(seed=2)
        frames.append(env.render().astype(int))
        env.close()
    assert frames[0].shape == frames[1].shape
    assert np.abs(frames[0] - frames[1]).mean() < 0.05


@pytest.mark.parametrize(("ours", "theirs", "kwargs"), PAIRS[::2])
def test_mistakes_are_refused_and_copies_play_the_same(ours: Any, theirs: Any, kwargs: Any) -> None:
    env = ours(**kwargs)
    for call in (lambda: env.step(env.action_space.sample()), lambda: env.push(np.zeros(2))):
        with pytest.raises(EnvStateError, match="reset"):
            call()
    env.reset(seed=0)
    for action in (None, "up", np.full(7, 0.0), np.nan):
        with pytest.raises(InvalidActionError):
            env.step(action)
    with pytest.raises(ConfigError, match="render_mode"):
        ours(render_mode="ansi")
    assert play(pickle.loads(pickle.dumps(env)), 10) == play(env, 10)


def test_with_box2d_single_environments_compile_no_physics() -> None:
    code = f"""
import sys, gymnasium as gym, gym_dr
for body, absent in (("Lander", "numba"), ("Walker", "gym_dr.envs.box2d.solver.layout")):  # terrain is compiled
    names = [name for name in {BOX2D_IDS} if body in name]
    assert len(names) == 2
    for name in names:
        env = gym.make(name)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        assert absent not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_box2d_every_id_works_and_none_imports_it() -> None:
    assert len(BOX2D_IDS) == 4
    code = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "Box2D":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "Box2D" else real(name, package)
import gymnasium as gym, gym_dr
for name in {BOX2D_IDS}:
    env = gym.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.render().shape == (400, 600, 3)
    envs = gym.make_vec(name, num_envs=2, vectorization_mode="sync")
    envs.reset(seed=0)
    native = gym.make_vec(name, num_envs=2, render_mode="rgb_array")
    assert (native.reset(seed=0)[0] == envs.reset(seed=0)[0]).all()
    assert native.render()[0].shape == (400, 600, 3)
assert "Box2D" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", ["lunar_lander", pytest.param("bipedal_walker", marks=pytest.mark.slow)])
def test_box2ds_own_warnings_are_no_errors_where_warnings_are(package: str) -> None:
    pytest.importorskip("Box2D")
    code = f"import gym_dr.envs.box2d.{package}.env"  # its extension module would end the interpreter
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], check=False).returncode == 0
