"""What is common to the classic control environments: equations, derived quantities, pictures."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.envs.classic_control import acrobot, pendulum
from gym_dr.errors import EnvStateError, RandomizationError

IDS = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")


def params_of(module: Any, *values: float) -> Any:
    return module.FAMILY.equations.params(*values)


def test_derived_quantities_follow_from_parameters() -> None:
    pole: Any = gym.make("gym_dr/CartPoleDR-v1").unwrapped
    pole.reset(options={"params": {"masscart": 2.0, "masspole": 0.5, "length": 0.8}})
    assert (pole.total_mass, pole.polemass_length) == (2.0 + 0.5, 0.5 * 0.8)
    # 3 g / 2 l = 3 * 8 / 4 and 3 / m l^2 = 3 / (3 * 4)
    rod = pendulum.derive(params_of(pendulum, 8.0, 3.0, 2.0, 2.0, 8.0, 0.05))
    assert (rod.fall, rod.inverse_inertia) == (6.0, 0.25)
    # m1 lc1^2 = 2 * 0.25, m2 lc2^2 = 3 * 1, (m1 lc1 + m2 l1) g = (1 + 6) * 10, m2 lc2 g = 30, m2 l1 lc2 = 6
    links = acrobot.derive(params_of(acrobot, 10.0, 2.0, 1.0, 2.0, 3.0, 0.5, 1.0, 1.0, 1.0, 12.0, 28.0, 0.2))
    assert (links.inertia_1, links.inertia_2, links.weight_1, links.weight_2) == (0.5, 3.0, 70.0, 30.0)
    assert links.coupling == 6.0


def test_an_angle_is_wrapped_by_whole_turns_however_many() -> None:
    for turns in (0, 1, -1, 5, -7, 40, -1000):
        assert acrobot.wrap(1.0 + 2 * np.pi * turns) == pytest.approx(1.0, abs=1e-9)
        assert acrobot.wrap(-3.0 + 2 * np.pi * turns) == pytest.approx(-3.0, abs=1e-9)


def test_both_links_of_packers_acrobot_are_alike() -> None:
    envs = gym.make_vec("gym_dr/AcrobotDR-v1", 100, randomization="extreme")
    params = envs.reset(seed=0)[1]["params"]
    for quantity in ("mass", "length"):
        one, other = params[f"link_{quantity}_1"], params[f"link_{quantity}_2"]
        np.testing.assert_allclose(one, other, atol=0.01)
        assert ((one < 0.76) | (one > 1.24)).all()


@pytest.mark.parametrize("name", ["CartPoleDR-v1", "AcrobotDR-v1", "MountainCarDR-v0", "PendulumDR-v1"])
def test_pictures_are_gymnasiums_and_the_same_from_native_environments(name: str) -> None:
    stock = gym.make(name.replace("DR", ""), render_mode="rgb_array")
    single = gym.make(f"gym_dr/{name}", render_mode="rgb_array", randomization="none")
    native = gym.make_vec(f"gym_dr/{name}", 2, render_mode="rgb_array", randomization="none")
    for env in (stock, single, native):
        env.reset(seed=3)
    stock.action_space.seed(0)
    for _ in range(4):
        picture: Any = stock.render()
        np.testing.assert_array_equal(single.render(), picture)
        np.testing.assert_array_equal(native.render()[0], picture)  # type: ignore[index]
        action = stock.action_space.sample()
        stock.step(action), single.step(action), native.step(np.stack([action, action]))
    for env in (stock, single, native):
        env.close()


def test_a_longer_pole_is_drawn_longer() -> None:
    env = gym.make("gym_dr/CartPoleDR-v1", render_mode="rgb_array", randomization="none")

    def height(length: float) -> int:
        env.reset(seed=0, options={"params": {"length": length}})
        frame: Any = env.render()
        return int((frame != 255).any(axis=(1, 2)).sum())

    assert height(1.0) > 1.5 * height(0.5)
    env.close()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("name", ["CartPoleDR-v1", "PendulumDR-v1"])
def test_copies_and_pickles_go_on_as_gymnasiums_and_keep_pins(name: str, copied: Any) -> None:
    env: Any = gym.make(f"gym_dr/{name}", randomization="default")
    env.unwrapped.set_params({"g" if name == "PendulumDR-v1" else "length": 0.6})
    for again in (env, copied(env)):  # before the first episode
        again.reset(seed=1)
    action = env.action_space.sample()
    for _ in range(3):
        again = copied(env)  # in the middle of it
        before = env.unwrapped.params
        np.testing.assert_equal(env.step(action), again.step(action))
        assert again.unwrapped.params == before
    np.testing.assert_equal(env.reset(), again.reset())
    assert again.unwrapped.pinned_params == env.unwrapped.pinned_params != {}


@pytest.mark.parametrize(("name", "size"), [("CartPoleDR-v1", 4), ("PendulumDR-v1", 2)])
def test_a_state_of_the_wrong_size_or_none_is_refused(name: str, size: int) -> None:
    env: Any = gym.make(f"gym_dr/{name}").unwrapped
    env.reset(seed=1)
    for state, message in (
        ((0.1,), rf"Expected a state of {size} numbers .* got \(0.1,\)"),
        (None, "got None"),
    ):
        env.state = state
        with pytest.raises(EnvStateError, match=message):
            env.step(env.action_space.sample())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CartPole-v1", {"low": -0.2, "high": 0.1}),
        ("Acrobot-v1", {"high": 0.5}),
        ("MountainCar-v0", {"low": -0.9}),
        ("MountainCarContinuous-v0", {"low": -0.5, "high": -0.5}),
        ("Pendulum-v1", {"x_init": 0.5, "y_init": 2}),
    ],
)
def test_options_of_reset_bound_the_first_states_as_gymnasiums(name: str, options: dict[str, float]) -> None:
    ours, stock = f"gym_dr/{name.replace('-', 'DR-')}", gym.make_vec(name, 3, vectorization_mode="sync")
    expected = stock.reset(seed=4, options=dict(options))[0]
    for mode in ("sync", "vector_entry_point"):
        envs = gym.make_vec(ours, 3, vectorization_mode=mode, randomization="none")
        np.testing.assert_allclose(envs.reset(seed=4, options=dict(options))[0], expected, rtol=1e-6)
        assert (envs.reset(seed=4)[0] != expected).any(), "the next episode has Gymnasium's own bounds"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CartPoleDR-v1", {"low": 0.2, "high": 0.1}),
        ("AcrobotDR-v1", {"high": float("nan")}),
        ("MountainCarDR-v0", {"low": "left"}),
        ("MountainCarDR-v0", {"low": np.complex128(-0.5 + 1j)}),
        ("CartPoleDR-v1", {"low": -1e308, "high": 1e308}),  # observations would be infinite
        ("PendulumDR-v1", {"x_init": -1.0}),
        ("PendulumDR-v1", {"x_init": 1e308}),
    ],
)
def test_impossible_options_are_refused_before_anything_is_changed(name: str, options: dict[str, Any]) -> None:
    for env in (gym.make(f"gym_dr/{name}").unwrapped, gym.make_vec(f"gym_dr/{name}", 2)):
        env.reset(seed=1)
        before = env.params  # type: ignore[attr-defined]
        with pytest.raises(RandomizationError, match="options"):
            env.reset(options=options)
        np.testing.assert_equal(env.params, before)  # type: ignore[attr-defined]


def test_attributes_of_gymnasiums_class_have_the_values_of_the_episode_whatever_a_user_did_to_them() -> None:
    pole: Any = gym.make("gym_dr/CartPoleDR-v1").unwrapped
    assert (pole.length, pole.state) == (0.5, None)
    pole.reset(seed=1, options={"params": {"length": 0.8, "masspole": 0.5}})
    assert (pole.length, pole.polemass_length) == (0.8, 0.4)
    links: Any = gym.make("gym_dr/AcrobotDR-v1").unwrapped
    links.reset(seed=1, options={"params": {"link_length_1": 0.7}})
    assert links.LINK_LENGTH_1 == 0.7
    rod: Any = gym.make("gym_dr/PendulumDR-v1").unwrapped
    for _ in range(3):
        _, info = rod.reset(seed=1)
        assert (rod.g, rod.last_u) == (info["params"]["g"], None)
        rod.last_u = 7.0
    rod.step(np.array([1.5], np.float32))
    assert rod.last_u == 1.5
    assert not hasattr(rod, "wheels")


def test_a_state_may_be_set_as_a_whole_or_in_place() -> None:
    env, twin = (gym.make("gym_dr/CartPoleDR-v1", render_mode="rgb_array").unwrapped for _ in range(2))
    for each in (env, twin):
        each.reset(seed=2)
    env.state = [0.5, 0.0, 0.1, 0.0]  # type: ignore[attr-defined]
    twin.state[:] = [0.5, 0.0, 0.1, 0.0]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(env.render(), twin.render())
    before = twin.state  # type: ignore[attr-defined]
    np.testing.assert_array_equal(env.step(1)[0], twin.step(1)[0])
    np.testing.assert_array_equal(before, [0.5, 0.0, 0.1, 0.0])  # a step leaves it alone


def test_a_single_environment_has_the_attributes_and_constants_of_gymnasiums_class() -> None:
    for env_id in IDS:
        stock: Any = gym.make(env_id).unwrapped
        env: Any = gym.make(f"gym_dr/{env_id.replace('-v', 'DR-v')}", randomization="none").unwrapped
        public = [name for name in dir(stock) if not name.startswith("_") and not callable(getattr(stock, name))]
        assert [name for name in public if not hasattr(env, name)] == [], env_id
        metadata = {**type(stock).metadata, "render_modes": ["rgb_array"]}
        metadata.pop("autoreset_mode", None)  # Gymnasium 1.2 writes that of its vector environments here
        assert type(env).metadata == metadata


def test_a_restored_state_brings_back_the_attributes_of_its_episode() -> None:
    env: Any = gym.make("gym_dr/CartPoleDR-v1", randomization="wide").unwrapped
    env.reset(seed=1)
    state, length = env.get_state(), env.length
    env.reset()
    assert env.length != length
    env.set_state(state)
    assert env.length == env.params["length"] == length
    assert env.polemass_length == env.masspole * length
