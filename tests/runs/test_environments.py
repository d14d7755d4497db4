from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from gym_dr import Constant, Randomization
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.family import ENVIRONMENTS, EnvFamily, EnvId, add_family
from gym_dr.errors import ConfigError, RobotError, UnknownNameError
from gym_dr.randomization.presets import resolve
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import (
    check_env_id,
    check_vectorization,
    make_env,
    make_vector_env,
    param_space_of,
    space_of,
    wrap_for_policy,
)
from gym_dr.training.registry import find_algorithm
from gym_dr.wrappers.disturb import Disturb
from tests.registered import forgotten_afterwards

LANDER = "gym_dr/LunarLanderDR-v3"
LATE = """
import dataclasses

from gym_dr.envs.family import add_family
from tests.plugins.parts.spring import SPRING

env = dataclasses.replace(SPRING.ids[0], id="tests/Late-v0", kwargs={"equations": "tests/Late-v0"})
defaults = {"ppo": {"num_envs": 5, "epochs": 3}}
add_family(dataclasses.replace(SPRING, ids=(env,), defaults=defaults), "a test")
"""


@pytest.mark.parametrize("env_id", [LANDER, "gym_dr/CartPoleDR-v1", "gym_dr/HopperDR-v5"])
def test_parameters_that_a_family_describes_need_no_environment(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*args: Any, **kwargs: Any) -> gym.Env[Any, Any]:
        raise AssertionError("an environment was made")

    monkeypatch.setattr(gym, "make", make)
    assert param_space_of(env_id)


def test_an_environment_that_replaces_a_familys_is_asked_for_its_own_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nominal_gravity() -> float:
        space = param_space_of(LANDER)
        assert space is not None
        return space["gravity"].nominal

    assert nominal_gravity() == -10
    entry_point = gym.spec(LANDER).entry_point
    heavy = gym.envs.registration.EnvSpec(id=LANDER, entry_point=entry_point, kwargs={"gravity": -11.0})
    monkeypatch.setitem(gym.registry, LANDER, heavy)
    assert nominal_gravity() == -11


def test_a_parameter_that_an_id_fixes_is_left_out_of_presets() -> None:
    with forgotten_afterwards():
        fixed = EnvId(
            id="Heavy-v0", entry_point=ENVIRONMENTS.get(LANDER).entry_point, kwargs={"gravity": -11.0}, discrete=True
        )
        add_family(EnvFamily(name="Heavy", ids=(fixed,), space=LUNAR_LANDER), "tests")
        described, made = param_space_of("Heavy-v0"), make_env("Heavy-v0", None)
        config = build_config(find_algorithm("a2c"), {"env": "Heavy-v0"})
        made.close()
    assert described is not None
    assert described["gravity"].nominal == -11
    assert dict(described) == dict(space_of(made) or {})
    assert "gravity" in resolve("default", LUNAR_LANDER)
    assert config.randomization == made.get_wrapper_attr("randomization")


@pytest.mark.parametrize("env_id", ["nowhere_at_all:Foo-v0", ":Foo-v0", ".sibling:Foo-v0"])
def test_a_module_that_cannot_be_imported_is_named(env_id: str) -> None:
    with pytest.raises(ConfigError, match="cannot be imported"):
        check_env_id(env_id)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", r"module 'broken' fails with ZeroDivisionError: division by zero, at .*broken.py:1"),
        ("def f(:", r"module 'broken' fails with SyntaxError: .*, at .*broken.py:1"),
    ],
)
def test_an_error_in_the_code_of_a_module_is_told_with_its_line(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=message):
        check_env_id("broken:Foo-v0")


def test_an_error_of_what_a_module_registers_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = "'Half-v0', model='no.xml', observe=print, reward=print, reset=print"
    (tmp_path / "half.py").write_text(f"import gym_dr; gym_dr.register_robot({robot})")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RobotError, match="expected a model file"):
        check_env_id("half:Half-v0")


def test_the_settings_of_a_family_hold_when_its_module_is_imported_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late.py").write_text(LATE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with forgotten_afterwards():
        config = build_config(find_algorithm("ppo"), {"env": "late:tests/Late-v0"})
    assert (config.settings.num_envs, config.options.epochs) == (5, 3)


def test_an_id_without_its_namespace_is_answered_with_it() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'gym_dr/LunarLanderDR-v3'"):
        check_env_id("LunarLanderDR-v3")


def test_an_environment_whose_package_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def need(**kwargs: Any) -> gym.Env[Any, Any]:
        raise gym.error.DependencyNotInstalled("pip install something")

    spec = gym.envs.registration.EnvSpec(id="Needy-v0", entry_point=need)
    monkeypatch.setitem(gym.registry, spec.id, spec)
    with pytest.raises(ConfigError, match="'Needy-v0' cannot be made: pip install something"):
        param_space_of("Needy-v0")


@pytest.mark.parametrize(
    "make", [make_env, lambda env_id, _, **kwargs: make_vector_env(env_id, 1, "sync", None, **kwargs)]
)
def test_a_picture_of_an_environment_that_draws_none_is_refused(make: Any) -> None:
    with forgotten_afterwards():
        gym.register("Unseen-v0", lambda: gym.make("CartPole-v1"))
        make("Unseen-v0", None).close()
        with pytest.raises(ConfigError, match="render_mode"):
            make("Unseen-v0", None, render_mode="rgb_array")


def test_an_unknown_vectorization_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'async'"):
        check_vectorization(LANDER, "asink")


def test_native_is_refused_where_there_is_none() -> None:
    with pytest.raises(ConfigError, match="Acrobot-v1 has no native vector environment"):
        make_vector_env("Acrobot-v1", 2, "native", None)


@pytest.mark.parametrize(("vectorization", "kind"), [("sync", SyncVectorEnv), ("async", AsyncVectorEnv)])
def test_the_vector_environment_is_of_the_kind_and_randomization_asked_for(vectorization: str, kind: type) -> None:
    envs = make_vector_env(LANDER, 2, vectorization, Randomization({"gravity": Constant(-5)}))
    assert isinstance(envs.unwrapped, kind)
    _, info = envs.reset(seed=1)
    envs.close()
    np.testing.assert_array_equal(info["params"]["gravity"], [-5, -5])


BOTH = Randomization({"gravity": Constant(-5), "obs_delay": Constant(2)})


def test_disturbances_of_a_randomization_are_put_around_what_an_id_makes() -> None:
    env = make_env(LANDER, BOTH)
    assert isinstance(env, Disturb)
    assert env.reset(seed=1)[1]["params"]["obs_delay"] == 2
    assert env.get_wrapper_attr("params")["gravity"] == -5
    env.close()


@pytest.mark.parametrize("vectorization", ["native", "sync"])
def test_a_run_has_disturbances_and_what_its_policy_is_shown_around_its_environment(vectorization: str) -> None:
    shown = {"gravity": (-10.0, 0.0), "obs_delay": (0.0, 4.0)}
    envs = wrap_for_policy(make_vector_env(LANDER, 2, vectorization, BOTH), BOTH, shown)
    observations, info = envs.reset(seed=1)
    envs.close()
    assert observations[:, 8:].tolist() == [[0.0, 0.0]] * 2  # -5 and 2 are the middles of their ranges
    assert info["params"]["obs_delay"].tolist() == [2, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MuJoCo draws without being asked how")
@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "egl"), ({"DISPLAY": ":0"}, None), ({"WAYLAND_DISPLAY": "w"}, None), ({"MUJOCO_GL": "osmesa"}, "osmesa")],
)
def test_without_a_display_mujoco_draws_through_egl_unless_told_otherwise(
    given: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.envs.mujoco.camera.find_library", lambda name: name == "EGL")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    make_env("CartPole-v1", None).close()  # imports no MuJoCo, and draws nothing
    assert "MUJOCO_GL" not in os.environ
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    make_env("InvertedPendulum-v5", None, render_mode="rgb_array").close()
    assert os.environ.get("MUJOCO_GL") == expected


def test_a_walking_robot_is_drawn_from_the_camera_that_follows_it() -> None:
    with make_env("gym_dr/HopperDR-v5", None, render_mode="rgb_array") as env:
        inner: Any = env.unwrapped
        assert inner.mujoco_renderer.camera_id == inner.model.camera("track").id
    envs: Any = make_vector_env("gym_dr/HopperDR-v5", 1, "sync", None, render_mode="rgb_array")
    assert envs.envs[0].unwrapped.mujoco_renderer.camera_id == inner.model.camera("track").id
    envs.close()
    with make_env("gym_dr/InvertedPendulumDR-v5", None, render_mode="rgb_array") as env:
        assert env.unwrapped.mujoco_renderer.camera_id == -1  # type: ignore[attr-defined]  # it has none
