"""Robots as their makers publish them, twelve from wheels of the package index, and one that has everything."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import Add, Scale
from gym_dr.errors import RandomizationError
from gym_dr.randomization.space import Param
from tests.envs.mujoco.names import assert_same_episodes
from tests.envs.mujoco.stock.numbers import Written, arrays, read_name
from tests.envs.mujoco.stock.robots import EVERYTHING, STOCK, register
from tests.registered import forgotten_afterwards

pytest.importorskip("mujoco.batch", reason="older versions of MuJoCo lack parts of the models, and derive fewer fields")


def only(name: str) -> Any:
    """Restricts a test to one of the robots."""
    mark = [] if name == EVERYTHING else pytest.mark.slow
    return pytest.mark.parametrize("robot", [pytest.param(name, marks=mark)], indirect=True)


PRESETS = ("none", "default", "wide", "random", "extreme")


@pytest.fixture(scope="module", params=[EVERYTHING, *(pytest.param(name, marks=pytest.mark.slow) for name in STOCK)])
def robot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The id of each robot in turn."""
    with forgotten_afterwards():
        yield register(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_builds_and_steps_without_a_warning(robot: str, preset: str) -> None:
    with contextlib.closing(gym.make(robot, randomization=preset)) as env, warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(seed=1)
        for _ in range(3):
            env.step(np.zeros(env.action_space.shape or ()))


def test_native_equals_sync_under_every_kind_of_draw(robot: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # patterns tell what they leave out
        drawn = everything(robot)
        sync, native = (
            gym.make_vec(robot, 2, vectorization_mode=mode, randomization=drawn, max_episode_steps=6)
            for mode in ("sync", "vector_entry_point")
        )
        assert assert_same_episodes(sync, native, 9) >= 2


def test_each_value_is_in_its_place_in_the_model_and_nothing_else_has_changed(robot: str) -> None:
    env: Any = gym.make(robot, randomization="none")
    space, model = env.get_wrapper_attr("param_space"), env.unwrapped.model
    nominal = copy.copy(model)
    written = Written(nominal)
    for field, group in groupby(space.values(), key=field_of):
        able = [param for param in group if not param.idle]
        for chosen in (values_of(able), factors_of(able, single=True), factors_of(able, single=False)):
            if chosen:
                written.write(resolved(chosen, able))
                env.reset(options={"params": chosen})
                found, expected = arrays(model), arrays(written.model)
                if field == "pseudo_inertia":  # boxes around bodies are along principal axes, which have no order
                    del found["bvh_aabb"]
                assert_same_numbers(found, expected, f"{field}: {len(chosen)} from {min(chosen)}")
    env.reset()
    assert_same_numbers(arrays(model), arrays(nominal), "nominal again")


@pytest.mark.parametrize("axis", ["d1", "d2", "s12"])
@only(EVERYTHING)
def test_a_body_may_be_deformed_until_its_axes_change_places(robot: str, axis: str) -> None:
    env: Any = gym.make(robot, randomization="none")
    model, params = env.unwrapped.model, {f"pseudo_inertia:tail.{axis}": 1.5}
    written = Written(copy.copy(model))
    written.write(params)
    env.reset(options={"params": params})
    np.testing.assert_allclose(arrays(model)["body_inertia"], arrays(written.model)["body_inertia"], atol=1e-12)


@pytest.mark.parametrize("params", [{}, {"actuator_strength": 0.8}, {"actuator_kp": 0.8}, {"actuator_kd": 0.8}])
@only("ur5e")
def test_a_servo_settles_at_its_target_whatever_its_strength_and_gains(robot: str, params: dict[str, float]) -> None:
    env: Any = gym.make(robot, randomization="none")
    env.reset(seed=1, options={"params": params})
    target = 1.57 * np.array([1, -1, 1, -1, -1, 0])  # where it does not touch itself
    for _ in range(1000):
        env.step(target)
    qpos, weight = env.unwrapped.data.qpos, env.unwrapped.data.qfrc_bias
    kp = env.unwrapped.model.actuator_gainprm[:, 0]
    np.testing.assert_allclose(qpos, target - weight / kp, atol=1e-4)  # it hangs by what its gain allows
    np.testing.assert_allclose(qpos, target, atol=0.05)


@pytest.mark.parametrize("name", ["actuator_gear", "actuator_gear:*", "actuator_gear:elbow_joint"])
@only("ur5e")
def test_the_gear_of_a_servo_is_refused(robot: str, name: str) -> None:
    with pytest.raises(RandomizationError, match="actuator_strength"):
        gym.make(robot, randomization={name: Scale((0.8, 1.2))})


@only("spot")
def test_a_body_at_the_smallest_mass_varies_as_the_others_do(robot: str) -> None:
    _, info = gym.make(robot).reset(seed=1)
    assert 0.8e-6 <= info["params"]["body_mass:arm_link_hr0"] <= 1.2e-6


@only("go1")
def test_contacts_that_do_not_follow_the_friction_of_the_ground_are_told(robot: str) -> None:
    with pytest.warns(UserWarning, match="FL") as told:
        gym.make(robot, randomization={"geom_friction:ground.slide": (0.3, 1.0)})
    assert len({str(warning.message) for warning in told}) == 1


@only("g1")
def test_a_pattern_tells_once_what_it_leaves_out(robot: str) -> None:
    patterns = ("geom_friction:*", "geom_solref:*", "geom_size:*", "body_ipos:*", "site_pos:*")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gym.make(robot, randomization={pattern: Scale((0.9, 1.1)) for pattern in patterns})
    assert len(told) <= len(patterns)


@only(EVERYTHING)
def test_a_factor_of_a_gear_with_six_numbers_scales_the_thrust(robot: str) -> None:
    def climbed(**params: float) -> float:
        env: Any = gym.make(robot, randomization="none")
        env.reset(seed=1, options={"params": {name.replace("_of_", ":"): value for name, value in params.items()}})
        env.step(np.array([0, 0, 0, 0, 4.0]))
        return float(env.unwrapped.data.joint("flying").qvel[2])

    fallen, nominal = climbed(actuator_strength=0.0), climbed()
    for name in ("actuator_gear_of_thrust", "actuator_strength_of_thrust", "actuator_gear_of_thrust.z"):
        np.testing.assert_allclose(climbed(**{name: 1.25}) - fallen, 1.25 * (nominal - fallen), rtol=1e-9)


@only(EVERYTHING)
def test_friction_that_a_higher_priority_overrules_is_refused(robot: str) -> None:
    with pytest.raises(RandomizationError, match="collides with nothing"):
        gym.make(robot, randomization={"geom_friction:speck": Scale((0.5, 2.0))})


def everything(robot: str) -> dict[str, Any]:
    """A rule for each field of a robot: factors, or what is added to numbers that are 0."""
    env = gym.make(robot, randomization="none")
    space = env.get_wrapper_attr("param_space")
    env.close()
    rules: dict[str, Any] = {"gravity": Scale((0.9, 1.1)), "density": (0, 1e-3), "wind.x": (0, 0.1)}
    rules["timestep"] = Scale((0.95, 1.0))
    for field, group in groupby((param for param in space.values() if not param.idle), key=field_of):
        params = list(group)
        if all(":" in param.name for param in params if param.unit != "x") and params[0].kind == "float":
            varies = any(param.nominal and not param.needs for param in params)
            ranged = any(param.name.endswith(".high") for param in params)
            names = f"{field}:*.high" if ranged and not varies else f"{field}:*"
            rules[names] = Scale((0.97, 1.0)) if varies else Add((0, 1e-4))
    return rules


def field_of(param: Param) -> str:
    return read_name(param.name).field


def is_factor(param: Param) -> bool:
    """Whether a parameter scales several others; strength and length are factors of a single thing."""
    where = read_name(param.name)
    return param.unit == "x" and (not where.element or where.field not in ("actuator_strength", "body_length"))


def values_of(params: list[Param]) -> dict[str, float]:
    """Other values for all elements and components of a field."""
    chosen = {param.name: changed(param, k) for k, param in enumerate(params) if not is_factor(param)}
    needs_medium = any(param.needs for param in params if param.name in chosen)
    return {**chosen, **({"density": 0.5} if needs_medium else {})}


def factors_of(params: list[Param], *, single: bool) -> dict[str, float]:
    """A factor for each vector of a field, or one for the whole field; not of what is 0."""
    factors = [param for param in params if is_factor(param) and bool(read_name(param.name).element) == single]
    return {param.name: 1.03 for param in factors if not param.needs}


def resolved(chosen: dict[str, float], params: list[Param]) -> dict[str, float]:
    """The same with the values of components in place of factors."""
    factors = {param.name for param in params if is_factor(param)}
    values: dict[str, float] = {name: value for name, value in chosen.items() if name not in factors}
    for param in params if factors & chosen.keys() else ():
        field, element, _ = read_name(param.name)
        scale = chosen.get(f"{field}:{element}", chosen.get(field))
        if param.name not in factors and scale is not None:
            values[param.name] = scale * param.nominal
    return values


def changed(param: Param, k: int) -> float:
    """A value close to the nominal one; another step for each of the parameters, so that no two of them cancel."""
    if param.kind == "int":
        return param.high if param.nominal != param.high else param.low
    step = 0.01 if field_of(param) == "body_inertia" else 0.01 * (1 + (0.618 * k) % 1)  # moments keep their proportions
    if param.name.endswith(".low") and not param.nominal:
        return max(-step, param.low)
    value = (1 + step) * param.nominal if param.nominal else step * min(1.0, param.high)
    return float(np.clip(value, param.low, param.high))


def assert_same_numbers(left: dict[str, Any], right: dict[str, Any], what: str) -> None:
    for name, values in left.items():
        if not np.array_equal(values, right[name]):
            np.testing.assert_allclose(values, right[name], rtol=1e-9, atol=1e-12, err_msg=f"{what}: {name}")
