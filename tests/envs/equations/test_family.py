"""Registering equations: what is refused at once, in words of the user's, and what registering again does."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, MultiBinary

import gym_dr
from gym_dr import Choice, Interface, LogUniform, Normal, Param, Quantity
from gym_dr.envs.family import ENVIRONMENTS, FAMILIES
from gym_dr.errors import (
    ConfigError,
    EquationsError,
    GymDrError,
    RandomizationError,
    UnknownNameError,
)
from gym_dr.randomization.presets import PRESETS, presets
from tests.envs.equations.swing import RIGHT, Swing, begin, register

ID = "tests/Swing-v0"


class Nothing(NamedTuple):
    pass


G = Param(name="g", nominal=1.0, low=0.0, high=2.0)
CONTEXT = Param(name="context", nominal=1.0, low=0.0, high=2.0)


def named_interface(*names: str) -> Interface:
    """Of an environment with three actions."""
    observation = tuple(Quantity("a number", name=name) for name in names)
    return Interface(observation=observation, actions=(Quantity("a push"),) * 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"params": []}, "params: expected at least one"),
        ({"params": [Param(name="body:mass", nominal=1.0, low=0.1, high=2.0)]}, "names that can follow a dot"),
        ({"params": [*RIGHT["params"], *RIGHT["params"]]}, "two parameters have the same name"),
        ({"observation_space": Box(0, 1, (2, 2))}, "observation_space: expected a Box of one row"),
        ({"observation_space": Box(0, 1, (2,), np.float16)}, r"Box of one row of floats \(32 or 64 bits\)"),
        ({"action_space": MultiBinary(3)}, "action_space: expected a Discrete or a Box of one row"),
        ({"start": {"angle": (1.0, -1.0)}}, "start 'angle': .*low"),
        ({"start": {"angle": 3.0}}, r"start 'angle': expected Uniform\(low, high\), .* got 3.0"),
        ({"start": {"angle": LogUniform(0.1, 1.0)}}, "start 'angle': expected Uniform.*Compute other distributions"),
        ({"process_noise": {"2nd": (0.0, 1.0)}}, "process_noise: expected names"),
        ({"process_noise": {"gust": Choice((0.0, 1.0))}}, "process_noise 'gust': expected"),
        ({"process_noise": {"gust": (0.0, 1.0)}}, r"expected step\(c, state, action, w\), where w .*swing.py:24"),
        ({"step": lambda p, s: s}, r"expected step\(c, state, action\) at test_family.py:\d+, got step\(p, s\)"),
        ({"begin": Swing}, r"expected a function begin\(c, u\), made with def or lambda, got"),
        ({"begin": lambda p, u: u.tilt}, "begin failed with AttributeError: .*tilt.* at test_family.py:.*lambda p, u"),
        ({"begin": lambda p, u: (u.angle, 0.0)}, "expected begin at .* to return a named tuple of numbers, got"),
        ({"begin": lambda p, u: Swing("left", 0.0)}, "to return numbers, got angle = 'left'"),  # type: ignore[arg-type]
        ({"derive": lambda p: p.length / 0.0}, "derive failed with ZeroDivisionError.*called with Params"),
        ({"pushed": ["height"]}, r"pushed: expected fields of the state \(angle, speed\), got 'height'"),
        ({"presets": {}}, r"presets: expected one called 'default', .* \{'default': \{'length': \(low, high\)\}\}"),
        ({"begin": lambda p, u: Nothing()}, "expected begin at .* to return a named tuple of numbers"),
        ({"presets": {"default": 3}}, "presets: expected names other than 'none'"),
        ({"params": [Param(name="obs_noise", nominal=1.0, low=0.0, high=2.0)]}, "'obs_noise': this name is reserved"),
        ({"params": [CONTEXT], "keywords": ("context",)}, "keywords.*got 'context'"),
        ({"time_step": "dt"}, r"time_step: expected None, .* or one of the parameters \(length\), got 'dt'"),
        ({"time_step": np.nan}, "time_step: expected None, a number above 0"),
        ({"options": {"context": 1.0}}, "options.*got 'context'"),
        ({"pushed": ["speed", "speed"]}, "pushed: expected names that can follow a dot.*duplicate"),
        ({"params": ["length"]}, r"params: expected .*, got \['length'\]"),
        (
            {"interface": Interface(observation=(Quantity("angle"),), actions=())},
            "for 2 observation",
        ),
        *(
            ({"interface": named_interface(*names)}, "interface: expected different names")
            for names in (("angle", "angle"), ("angle", "its speed"))
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_nothing_is_registered(changed: Any, message: str) -> None:
    before = [*FAMILIES], [*ENVIRONMENTS], [*PRESETS], [*gym.registry]
    with pytest.raises(GymDrError, match=f"^Equations 'tests/Swing-v0': .*{message}") as caught:
        register(**changed)
    assert isinstance(caught.value, EquationsError | RandomizationError)
    assert before == ([*FAMILIES], [*ENVIRONMENTS], [*PRESETS], [*gym.registry])


@pytest.mark.parametrize(
    ("error", "changed"),
    [
        (UnknownNameError, {"presets": {"default": {"mass": (0.5, 2.0)}}}),
        (RandomizationError, {"presets": {"default": {"length": (0.0, 2.0)}}}),
        (ConfigError, {"max_episode_steps": 0}),
        (ConfigError, {"render_fps": 0.5}),
        (ConfigError, {"reward_threshold": np.nan}),
        (UnknownNameError, {"keywords": ("mass",)}),
    ],
)
def test_impossible_values_are_refused_with_the_error_for_them(error: type[Exception], changed: Any) -> None:
    with pytest.raises(error):
        register(**changed)
    assert ID not in gym.registry


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("my swing", "Malformed environment ID"),
        ("CartPole-v1", "another environment is already registered with this id"),
        ("gym_dr/CartPoleDR-v1", "another environment is already registered with this id"),
    ],
)
def test_malformed_ids_and_those_of_other_environments_are_refused(env_id: Any, message: str) -> None:
    before = dict(gym.registry)
    with pytest.raises(EquationsError, match=message):
        register(env_id)
    assert gym.registry == before


def test_registering_again_replaces_the_equations_in_environments_made_afterwards() -> None:
    register()
    old = gym.make_vec(ID, 2)
    register(observe=lambda p, s: (10.0 * s.angle, s.speed), presets={"default": {}, "long": {"length": 5.0}})
    new = gym.make_vec(ID, 2)
    np.testing.assert_allclose(10.0 * old.reset(seed=1)[0][:, 0], new.reset(seed=1)[0][:, 0], rtol=1e-6)
    assert list(presets(ID)) == ["none", "default", "long"]


def test_a_keyword_sets_a_nominal_value_and_an_option_is_the_last_parameter() -> None:
    register(
        keywords=("length",),
        options={"push": 0.0},
        begin=lambda p, u: begin(p, u),
        observe=lambda p, s: (p.length, p.push),
    )
    env: Any = gym.make(ID, length=3.0, push=2)
    assert env.reset(seed=0)[0].tolist() == [3.0, 2.0]  # the preset does not vary a keyword
    with pytest.raises(TypeError, match="keyword argument 'mass'"):
        gym.make(ID, mass=1.0)


def test_options_of_reset_bound_uniform_numbers_alone() -> None:
    register(
        start={"angle": (-1.0, 1.0), "speed": Normal(5.0, 1e-9)},
        begin=lambda p, u: Swing(u.angle, u.speed),
        reset_options=lambda options, bounds: ((0.2, 0.3),) if options.get("near") else bounds,
    )
    for env in (gym.make(ID), gym.make_vec(ID, 50)):
        near: Any = env.reset(seed=1, options={"near": True})[0]
        assert ((near[..., 0] >= 0.2) & (near[..., 0] <= 0.3) & (abs(near[..., 1] - 5.0) < 1e-6)).all()
    far: Any = env.reset(seed=1)[0]
    assert (far[:, 0] < 0.0).any()


@pytest.mark.parametrize("wrong", [(), None, (3.0,), ((0.0, 1.0), (0.0, 1.0)), ((1.0, -1.0),)])
def test_options_of_reset_that_give_no_bounds_are_refused_and_nothing_changes(wrong: Any) -> None:
    register(reset_options=lambda options, bounds: wrong if options.get("far") else bounds)
    envs, twin = gym.make_vec(ID, 2), gym.make_vec(ID, 2)
    envs.reset(seed=1), twin.reset(seed=1)
    with pytest.raises(EquationsError, match=r"expected reset_options to return 1 pairs \(low, high\)"):
        envs.reset(seed=7, options={"far": True})
    np.testing.assert_array_equal(envs.reset()[0], twin.reset()[0])


def test_a_registration_that_fails_leaves_the_one_before() -> None:
    register()
    with pytest.raises(RandomizationError):
        register(presets={"default": {}, "none": {}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gym_dr.envs.family.add_family", _fail)
        with pytest.raises(RuntimeError):
            register()
    assert gym.make_vec(ID, 2).reset(seed=0)[0].shape == (2, 2)


def _fail(*_: Any) -> None:
    raise RuntimeError


def test_another_file_does_not_take_an_id_over() -> None:
    register()
    code = "def step(p, s, action):\n    return s, 0.0, False"
    names: dict[str, Any] = {"__name__": "another_module"}
    exec(compile(code, "another_file.py", "exec"), names)
    with pytest.raises(EquationsError, match="another environment is already registered with this id"):
        register(step=names["step"])


@pytest.mark.parametrize(
    ("name", "owner"), [("Shared", "tests/Swing-v0"), ("CartPole", "gym_dr/CartPoleDR-v1"), ("tests/Swing-v0", "")]
)
def test_a_name_that_is_already_used_is_refused_with_the_id_that_has_it(name: str, owner: str) -> None:
    register(name="Shared")
    if not owner:  # the id's own name is free
        register("tests/Other-v0", name=name)
        return
    with pytest.raises(EquationsError, match=f"Other-v0': the name '{name}' already belongs to the .* {owner}. Choose"):
        register("tests/Other-v0", name=name)
    assert "tests/Other-v0" not in gym.registry


def test_a_version_beside_an_id_without_one_is_refused_in_our_words() -> None:
    register("tests/Bare")
    with pytest.raises(EquationsError, match=r"tests/Bare-v0': .*unversioned"):
        register("tests/Bare-v0")


def test_a_parameter_space_may_be_shared() -> None:
    space = gym_dr.ParamSpace("Shared", RIGHT["params"])
    for env_id in ("tests/One-v0", "tests/Two-v0", "tests/One-v0"):
        register(env_id, params=space)
    assert gym.make("tests/Two-v0").reset(seed=0)[0].shape == (2,)


def test_an_error_of_a_picture_is_told_with_its_place() -> None:
    register(render=lambda p, s: np.zeros(int(1.0 / 0.0)))
    env = gym.make(ID, render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(EquationsError, match=r"render failed with ZeroDivisionError.*at test_family.py:\d+ `register"):
        env.unwrapped.render()
