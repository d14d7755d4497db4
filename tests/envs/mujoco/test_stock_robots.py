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
from gym_dr.randomization.space import Param
from tests.envs.mujoco.names import assert_same_episodes
from tests.envs.mujoco.stock.numbers import Written, arrays, read_name
from tests.envs.mujoco.stock.robots import EVERYTHING, STOCK, register
from tests.registered import forgotten_afterwards

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


def everything(robot: str) -> dict[str, Any]:
    """A rule for each field of a robot: factors, or what is added to numbers that are 0."""
    env = gym.make(robot, randomization="none")
    space = env.get_wrapper_attr("param_space")
    env.close()
    rules: dict[str, Any] = {"gravity": Scale((0.9, 1.1)), "density": (0, 1e-3)}
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
    chosen = {param.name: changed(param) for param in params if not is_factor(param)}
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


def changed(param: Param) -> float:
    """A value close to the nominal one."""
    if param.kind == "int":
        return param.high if param.nominal != param.high else param.low
    value = 1.03 * param.nominal if param.nominal else 0.01 * min(1.0, param.high)
    return float(np.clip(value, param.low, param.high))


def assert_same_numbers(left: dict[str, Any], right: dict[str, Any], what: str) -> None:
    for name, values in left.items():
        if not np.array_equal(values, right[name]):
            np.testing.assert_allclose(values, right[name], rtol=1e-9, atol=1e-12, err_msg=f"{what}: {name}")
