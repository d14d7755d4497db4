"""What is written to an attribute that is named like a parameter is pinned from the next reset on, in every mode."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import RandomizeAttributes, RandomizeMujoco
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.testing.playing import Mode, actions_of, interface
from tests.registered import forgotten_afterwards

TANK, SWING = "tests.envs.equations.own.tank:tests/Tank-v0", "tests.envs.mujoco.own_robots.swing:tests/Swing-v0"
# one id of each kind of environment, an attribute, the parameter behind it, and a value that no preset draws
WRITTEN = [
    ("gym_dr/LunarLanderDR-v3", "gravity", "gravity", -3.0),  # Gymnasium's class has this attribute
    ("gym_dr/BipedalWalkerDR-v3", "gravity", "gravity", -15.0),  # and no attribute here
    ("gym_dr/CartPoleDR-v1", "force_mag", "force_mag", 30.0),
    ("gym_dr/AcrobotDR-v1", "LINK_MASS_1", "link_mass_1", 3.0),
    ("gym_dr/HopperDR-v5", "body_mass:torso", "body_mass:torso", 9.0),
    (TANK, "mass", "mass", 77.0),
    (SWING, "body_mass:pole", "body_mass:pole", 0.7),
]
MODES = ("single", "native", "sync", pytest.param("async", marks=pytest.mark.slow))


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards(), pytest.MonkeyPatch.context() as patch:
        for env_id in (TANK, SWING):
            patch.delitem(sys.modules, env_id.partition(":")[0], raising=False)
        yield


def write(envs: Any, mode: str, attribute: str, value: float) -> None:
    if mode in ("single", "native"):
        setattr(envs.unwrapped, attribute, value)  # as Tianshou's ``set_env_attr``
    else:
        envs.unwrapped.set_attr(attribute, value)


@pytest.mark.parametrize(("env_id", "attribute", "name", "value"), WRITTEN, ids=[row[0] for row in WRITTEN])
@pytest.mark.parametrize("mode", MODES)
def test_a_written_parameter_is_pinned_from_the_next_reset(
    mode: str, env_id: str, attribute: str, name: str, value: float
) -> None:
    if mode == "native" and attribute != name:
        pytest.skip("names of Gymnasium's single environment")
    with Mode(env_id=env_id, name=mode).opened() as envs:
        before = envs.reset(seed=1)[1]["params"].get(name)
        write(envs, mode, attribute, value)
        assert np.array_equal(envs.step(actions_of(envs))[-1]["params"].get(name), before)
        for _ in range(2):
            assert np.all(envs.reset()[1]["params"][name] == value)
        interface(envs).set_params(None)
        assert not np.any(envs.reset()[1]["params"].get(name) == value)


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/CartPoleDR-v1"])
def test_what_is_written_before_the_first_reset_and_is_nominal_is_pinned_too(env_id: str) -> None:
    env: Any = gym.make(env_id, randomization="wide")
    nominal = env.unwrapped.param_space["gravity"].nominal
    env.unwrapped.gravity = float(str(nominal))
    assert env.reset(seed=1)[1]["params"]["gravity"] == nominal
    assert env.unwrapped.pinned_params == {"gravity": nominal}


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/CartPoleDR-v1"])
def test_attributes_of_gymnasiums_class_show_the_parameters_of_the_episode(env_id: str) -> None:
    if "Lander" in env_id:
        pytest.importorskip("Box2D")
    env: Any = gym.make(env_id).unwrapped
    assert env.gravity == env.params["gravity"]
    for seed in range(2):
        _, info = env.reset(seed=seed)
        assert env.gravity == info["params"]["gravity"]


def test_an_impossible_value_that_was_written_is_refused_once_and_changes_nothing() -> None:
    env: Any = gym.make("gym_dr/LunarLanderDR-v3").unwrapped
    first = env.reset(seed=1)[1]
    env.gravity = 5.0
    with pytest.raises(RandomizationError, match="gravity"):
        env.reset(seed=1)
    assert env.reset(seed=1)[1] == first


@pytest.mark.parametrize("mode", ["single", "native", "sync"])
@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", "gym_dr/CartPoleDR-v1", "gym_dr/HopperDR-v5"])
def test_a_parameter_among_the_options_of_reset_is_refused_and_changes_nothing(env_id: str, mode: str) -> None:
    with Mode(env_id=env_id, name=mode).opened() as envs:
        name = next(iter(envs.reset(seed=1)[1]["params"]))
        with pytest.raises(UnknownNameError, match="params"):
            envs.reset(options={name: 1.0})
        assert np.all(envs.reset()[1]["draw_index"] == 1)


@pytest.mark.parametrize("name", ["set_params", "set_attr"])
def test_pins_of_wrappers_around_gymnasiums_environments_are_set_like_attributes(name: str) -> None:
    for env, parameter in (
        (RandomizeMujoco(gym.make("Hopper-v5"), {"body_mass:foot": (4.0, 5.0)}), "body_mass:foot"),
        (RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.4, 0.5)}), "length"),
    ):
        outer = gym.wrappers.TimeLimit(env, 5)
        env.reset(seed=1)
        if name == "set_params":
            env.set_params({parameter: 0.7})
        else:
            outer.set_wrapper_attr(parameter, 0.7)
        assert outer.reset()[1]["params"][parameter] == 0.7


@pytest.mark.parametrize("copied", [lambda env: env, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_what_is_written_to_gymnasiums_environment_in_a_wrapper_is_pinned_also_in_copies(copied: Any) -> None:
    env = RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.4, 0.5)})
    env.reset(seed=1)
    assert copied(env).pinned_params == {}
    unwrapped: Any = env.unwrapped
    unwrapped.length, unwrapped.force_mag = 0.7, 20.0
    for _ in range(2):
        params = copied(env).reset()[1]["params"]
        assert (params["length"], params["force_mag"]) == (0.7, 20.0)


def test_an_environment_of_ones_own_may_keep_what_it_likes_under_the_name_of_a_parameter() -> None:
    class Own(type(gym.make("Hopper-v5").unwrapped)):  # type: ignore[misc]
        __module__ = "own"

        def reset_model(self) -> Any:
            self.body_mass = self.model.body_mass.copy()
            return super().reset_model()

    env = RandomizeMujoco(Own(), {"body_mass:foot": (4.0, 5.0)})
    for _ in range(3):
        assert set(env.reset()[1]["params"]) == {"body_mass:foot"}
