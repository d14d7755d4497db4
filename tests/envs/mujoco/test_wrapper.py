from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box

from gym_dr import RandomizeMujoco, Scale, Uniform
from gym_dr.errors import EnvStateError, RandomizationError, RandomizationWarning

CART = """<mujoco><option timestep="0.01"/><worldbody><body name="cart"><joint name="slider" type="slide" axis="1 0 0"/>
<geom name="box" type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody>
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


def cart(tmp_path: Path, randomization: Any) -> Any:
    path = tmp_path / "cart.xml"
    path.write_text(CART)
    return RandomizeMujoco(CartEnv(path), randomization)


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
        (lambda: RandomizeMujoco(gym.make("Hopper-v5"), {"body_mass:foot": (1.0, 9.0)}), "already randomized"),
        (lambda: gym.make("CartPole-v1"), "RandomizeAttributes"),
    ],
    ids=["ours", "wrapped", "another"],
)
def test_an_environment_that_is_randomized_already_or_not_mujocos_is_refused(env: Any, message: str) -> None:
    with pytest.raises(RandomizationError, match=message):
        RandomizeMujoco(env(), {"body_mass:torso": (1.0, 9.0)})


def test_a_reset_that_makes_a_new_model_is_refused(tmp_path: Path) -> None:
    env = cart(tmp_path, {"body_mass:cart": (0.5, 2.0)})
    env.env.reset_model = lambda: (setattr(env.env, "model", copy.copy(env.env.model)), env.env.state_vector())[1]
    with pytest.raises(RandomizationError, match="reset of CartEnv makes a new model"):
        env.reset(seed=1)


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
