from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box

from gym_dr import RandomizeMujoco, Scale, Uniform
from gym_dr.errors import EnvStateError, RandomizationError, RandomizationWarning

CART = """<mujoco><option timestep="0.01"/><worldbody><body name="cart"><joint name="slider" type="slide" axis="1 0 0"/>
<geom name="box" type="box" size="0.1 0.1 0.1" mass="1"/></body>
<body name="goal" mocap="true"/></worldbody>
<actuator><motor name="push" joint="slider" ctrlrange="-1 1"/></actuator></mujoco>"""


class CartEnv(MujocoEnv):
    """An environment that a user could have written."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 100}

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), 1, Box(-np.inf, np.inf, (2,)))

    def step(self, action: Any) -> Any:
        self.do_simulation(action, 1)
        return self.state_vector(), float(self.data.qvel[0]), False, False, {"speed": self.data.qvel[0]}

    def reset_model(self) -> Any:
        self.set_state(self.init_qpos + self.np_random.uniform(size=1), self.init_qvel)
        return self.state_vector()


def cart(tmp_path: Path, randomization: Any, kind: Any = CartEnv) -> Any:
    path = tmp_path / "cart.xml"
    path.write_text(CART)
    return RandomizeMujoco(kind(path), randomization)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_draws_for_its_own_model(copied: Any) -> None:
    env = RandomizeMujoco(gym.make("Hopper-v5"), {"body_mass:torso": (1.0, 9.0)})
    env.reset(seed=1)
    again: Any = copied(env)
    with pytest.raises(EnvStateError, match="a copy begins with a new model"):
        again.step(np.zeros(3))
    _, info = again.reset(seed=2)
    assert again.unwrapped.model.body("torso").mass[0] == info["params"]["body_mass:torso"]
    np.testing.assert_equal(again.step(np.ones(3)), (env.reset(seed=2), env.step(np.ones(3)))[1])


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: gym.make("gym_dr/HopperDR-v5"), "already randomized"),
        (lambda: RandomizeMujoco(gym.make("Hopper-v5"), {"body_mass:torso": (1.0, 9.0)}), "already randomized"),
        (lambda: gym.make("CartPole-v1"), "RandomizeAttributes"),
    ],
    ids=["ours", "wrapped", "another"],
)
def test_an_environment_that_is_randomized_already_or_not_mujocos_is_refused(env: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=message):
        RandomizeMujoco(env(), {"body_mass:torso": (1.0, 9.0)})


class RestlessEnv(CartEnv):
    """An environment whose reset makes its model anew or writes the cart's mass, and always places the goal."""

    does = "nothing more"

    def reset_model(self) -> Any:
        if self.does == "makes":
            self.model, self.data = cart_and_data()
        if self.does == "writes":
            self.model.body("cart").mass = 1.0
        self.model.body("goal").mass = 2.0
        self.model.body("goal").pos = [0.0, 0.0, 3.0]
        return super().reset_model()


def cart_and_data() -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(CART)
    return model, mujoco.MjData(model)


def assert_own_numbers(env: Any, info: Any) -> None:
    """The draw and what the environment's reset writes are both in the model, and in what depends on it."""
    cart, goal = env.unwrapped.model.body("cart"), env.unwrapped.model.body("goal")
    assert cart.mass[0] == info["params"]["body_mass:cart"] == pytest.approx(env.unwrapped.data.cinert[1, -1])
    assert env.unwrapped.model.opt.gravity[2] == info["params"]["gravity.z"]
    assert (goal.mass[0], goal.pos[2]) == (2.0, 3.0)


@pytest.mark.parametrize("does", ["makes", "writes"])
def test_a_reset_that_undoes_a_draw_is_refused_unless_the_model_is_edited_afterwards(tmp_path: Path, does: str) -> None:
    env = cart(tmp_path, {"body_mass:cart": (2.0, 3.0), "gravity.z": (-12, -8)}, RestlessEnv)
    env.unwrapped.does = does
    with pytest.raises(RandomizationError, match=r"reset of RestlessEnv .* body_mass:cart"):
        env.reset(seed=1)
    env = RandomizeMujoco(env.unwrapped, env.randomization, after_reset=True)
    for _ in range(2):
        assert_own_numbers(env, env.reset()[1])


def test_what_reset_writes_and_nobody_randomizes_stays(tmp_path: Path) -> None:
    env = cart(tmp_path, {"body_mass:cart": (2.0, 3.0), "gravity.z": (-12, -8)}, RestlessEnv)
    for _ in range(2):
        assert_own_numbers(env, env.reset()[1])


class Shim(gym.Env[Any, Any]):
    """An environment of dm_control's kind in one of Gymnasium, as shimmy makes it."""

    observation_space, action_space = Box(-np.inf, np.inf, (2,)), Box(-1.0, 1.0, (1,))

    def __init__(self, rebuilds: bool = False) -> None:
        self.rebuilds = rebuilds
        self.build()

    def build(self) -> None:
        model, data = (SimpleNamespace(ptr=made) for made in cart_and_data())
        self._env = SimpleNamespace(physics=SimpleNamespace(model=model, data=data))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.rebuilds:
            self.build()
        physics = self._env.physics
        mujoco.mj_resetData(physics.model.ptr, physics.data.ptr)
        return np.zeros(2), {}

    def step(self, action: Any) -> Any:
        physics = self._env.physics
        physics.data.ptr.ctrl[:] = action
        mujoco.mj_step(physics.model.ptr, physics.data.ptr)
        return np.append(physics.data.ptr.qpos, physics.data.ptr.qvel), 0.0, False, False, {}


def test_dm_controls_physics_are_found() -> None:
    env: Any = RandomizeMujoco(Shim(), {"body_mass:cart": (2.0, 3.0)})
    _, info = env.reset(seed=1)
    physics = env.unwrapped._env.physics
    assert physics.model.ptr.body("cart").mass[0] == info["params"]["body_mass:cart"]
    env.push(np.ones(1))
    assert physics.data.ptr.qvel[0] == 1.0
    physics.data.ptr.qvel[:] = 1e12
    with pytest.warns(RandomizationWarning, match="diverged"):
        assert env.step(np.zeros(1))[3]


def test_dm_controls_physics_may_be_built_in_reset() -> None:
    with pytest.raises(RandomizationError, match="new model"):
        RandomizeMujoco(Shim(rebuilds=True), {"body_mass:cart": (2.0, 3.0)}).reset(seed=1)
    env: Any = RandomizeMujoco(Shim(rebuilds=True), {"body_mass:cart": (2.0, 3.0)}, after_reset=True)
    _, info = env.reset(seed=1)
    assert env.unwrapped._env.physics.model.ptr.body("cart").mass[0] == info["params"]["body_mass:cart"]
    env.push(np.ones(1))
    assert env.step(np.zeros(1))[0][1] == 1.0


def test_a_model_with_other_elements_is_refused_also_after_reset(tmp_path: Path) -> None:
    env: Any = RandomizeMujoco(Shim(rebuilds=True), {"body_mass:cart": (2.0, 3.0)}, after_reset=True)
    env.unwrapped.build = lambda: None
    hopper, physics = gym.make("Hopper-v5").unwrapped, env.unwrapped._env.physics
    physics.model.ptr, physics.data.ptr = hopper.model, hopper.data  # type: ignore[attr-defined]
    with pytest.raises(RandomizationError, match="same elements"):
        env.reset(seed=1)


def test_functions_find_a_hidden_model() -> None:
    hidden = Shim()
    hidden.sim = hidden.__dict__.pop("_env").physics  # type: ignore[attr-defined]
    hidden.reset = lambda **kwargs: (np.zeros(2), {})  # type: ignore[method-assign]
    with pytest.raises(RandomizationError, match="model=lambda"):
        RandomizeMujoco(hidden, {"body_mass:cart": (2.0, 3.0)})
    env: Any = RandomizeMujoco(
        hidden, {"body_mass:cart": (2.0, 3.0)}, model=lambda env: env.sim.model, data=lambda env: env.sim.data.ptr
    )
    _, info = env.reset(seed=1)
    assert hidden.sim.model.ptr.body("cart").mass[0] == info["params"]["body_mass:cart"]  # type: ignore[attr-defined]


def test_any_mujoco_environment_is_randomized(tmp_path: Path) -> None:
    env = cart(tmp_path, {"body_mass:cart": (0.5, 2.0), "actuator_gear:push": Scale((0.5, 2.0))})
    for _ in range(3):
        _, info = env.reset()
        mass, force = info["params"]["body_mass:cart"], info["params"]["actuator_gear:push"]
        _, speed, _, _, info = env.step(np.array([1.0]))
        assert speed == pytest.approx(0.01 * force / mass)
        assert info["speed"] == speed
        assert info["params"]["body_mass:cart"] == mass


def test_presets_of_ours_hold_for_gymnasiums_class() -> None:
    theirs, ours = RandomizeMujoco(gym.make("Hopper-v5"), "default"), gym.make("gym_dr/HopperDR-v5")
    theirs.action_space.seed(0)
    one, other = theirs.reset(seed=3), ours.reset(seed=3)
    for _ in range(10):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[-1]["params"] == other[-1]["params"]
        action = theirs.action_space.sample()
        one, other = theirs.step(action), ours.step(action)  # type: ignore[assignment]


def test_nominal_is_the_environment_itself() -> None:
    theirs, ours = gym.make("Walker2d-v5"), RandomizeMujoco(gym.make("Walker2d-v5"), "none")
    for seed in (3, None):
        np.testing.assert_array_equal(theirs.reset(seed=seed)[0], ours.reset(seed=seed)[0])
        action = np.full(6, 0.3)
        np.testing.assert_array_equal(theirs.step(action)[0], ours.step(action)[0])


def test_a_huge_action_costs_infinitely_much_without_a_warning() -> None:
    env = RandomizeMujoco(gym.make("Hopper-v5", disable_env_checker=True), "default")
    env.reset(seed=1)
    observation, reward, *_ = env.step(np.full(3, 1e308))
    assert reward == -np.inf
    assert np.isfinite(observation).all()


def test_a_diverging_simulation_is_truncated() -> None:
    env: Any = RandomizeMujoco(gym.make("Hopper-v5"), "default")
    observation, _ = env.reset(seed=1)
    env.unwrapped.data.qvel[:] = 1e12
    with pytest.warns(RandomizationWarning, match="HopperEnv: the simulation diverged"):
        last, reward, terminated, truncated, info = env.step(np.zeros(3))
    np.testing.assert_array_equal(last, observation)
    assert (reward, terminated, truncated, info["diverged"]) == (0.0, False, True, True)


def test_one_of_our_ids_is_gymnasiums_environment_in_the_wrapper_and_its_spec_takes_other_keywords() -> None:
    env = gym.make("gym_dr/HopperDR-v5")
    assert type(env.unwrapped) is type(gym.make("Hopper-v5").unwrapped)
    assert env.spec is not None
    assert gym.make(env.spec, randomization="none").reset(seed=1)[1]["params"] == {}


def test_the_spec_recreates_it() -> None:
    env = RandomizeMujoco(gym.make("Hopper-v5"), {"gravity.z": Uniform(-12, -8), "body_mass:*": Scale((0.5, 2))})
    assert env.spec is not None
    copy: Any = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert copy.reset(seed=4)[1]["params"] == env.reset(seed=4)[1]["params"]
