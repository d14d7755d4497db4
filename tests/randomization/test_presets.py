"""Presets: found by name, valid, and as the generalization protocol wants them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr  # noqa: F401  files the presets of its environments
from gym_dr import Add, Bernoulli, Normal, Param, ParamSpace, Randomization, Scale, Uniform, add_preset
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.classic_control import acrobot, cart_pole, mountain_car, mountain_car_continuous, pendulum
from gym_dr.envs.mujoco.space import ModelSpace
from gym_dr.errors import ConfigError, RandomizationError, UnknownNameError
from gym_dr.randomization.presets import preset_of, presets, resolve
from gym_dr.randomization.sampler import draw

CLASSIC = (cart_pole, acrobot, mountain_car, mountain_car_continuous, pendulum)
SPACES = [LUNAR_LANDER, *(module.SPACE for module in CLASSIC)]
EVERY_PRESET = [(space, name) for space in SPACES for name in presets(space.name)]
by_preset = pytest.mark.parametrize(("space", "name"), EVERY_PRESET, ids=[f"{s.name}-{n}" for s, n in EVERY_PRESET])


@pytest.fixture
def space(request: pytest.FixtureRequest) -> ParamSpace:
    """A space whose name no other test uses, since presets are filed for the whole process."""
    name = f"space of {request.node.name}"
    return ParamSpace(name, [Param(name="mass", nominal=1.0, low=0.1, high=10.0)])


# the presets of this project


@by_preset
def test_every_preset_gives_possible_values_without_any_clipping(space: ParamSpace, name: str) -> None:
    for parameter, rule in presets(space.name)[name].items():
        param = space[parameter]
        param.check(rule.apply(param.nominal, rule.distribution.ppf(np.arange(1, 1000) / 1000)))


@pytest.mark.parametrize(("name", "factor"), [("default", 1), ("wide", 2)])
def test_default_is_the_tutorials_and_wide_doubles_its_standard_deviations(name: str, factor: int) -> None:
    assert presets("LunarLander")[name] == Randomization(
        {
            "gravity": Normal(-10, 1 * factor, low=-11.99, high=-0.01),
            "enable_wind": Bernoulli(0.5),
            "wind_power": Normal(15, 1 * factor, low=0.01, high=19.99),
            "turbulence_power": Normal(1.5, 0.5 * factor, low=0.01, high=1.99),
        }
    )


def test_extreme_is_outside_of_the_box_of_random_in_every_dimension_on_both_sides_of_it() -> None:
    known = presets("LunarLander")
    assert set(known["extreme"]) == set(known["random"])
    drawn = draw(known["extreme"], LUNAR_LANDER, np.arange(10_000, dtype=np.uint64), 0)
    for name, rule in known["random"].items():
        low, high = rule.support(LUNAR_LANDER[name].nominal)
        assert not ((drawn[name] > low) & (drawn[name] < high)).any(), name
        assert name == "enable_wind" or ((drawn[name] < low).any() and (drawn[name] > high).any()), name


# what users may give


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, Randomization()),
        ({"gravity": (-11, -9)}, Randomization({"gravity": Uniform(-11, -9)})),
        (Randomization({"gravity": (-11, -9)}), Randomization({"gravity": (-11, -9)})),
    ],
)
def test_nothing_mappings_and_randomizations_are_taken(given: Any, meant: Randomization) -> None:
    assert resolve(given, LUNAR_LANDER) == meant


def test_a_path_is_read_also_if_a_preset_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in (Path("wind.toml"), Path("wide")):
        file.write_text("gravity = [-11, -9]\n")
        assert resolve(file, LUNAR_LANDER) == Randomization({"gravity": Uniform(-11, -9)})
    assert resolve("wind.toml", LUNAR_LANDER) == Randomization({"gravity": Uniform(-11, -9)})


def test_an_unknown_preset_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown preset of LunarLander 'wied'\. Did you mean 'wide'\?"):
        resolve("wied", LUNAR_LANDER)


def test_text_that_looks_like_a_path_is_one() -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        resolve(f"no_such_folder{os.sep}wind", LUNAR_LANDER)


@pytest.mark.parametrize("value", [5, ["default"], ("gravity", 1), object(), True])
def test_anything_else_is_refused_with_what_was_expected(value: object) -> None:
    with pytest.raises(RandomizationError, match=rf"Expected a preset \(none, default,.*{re.escape(repr(value))}"):
        resolve(value, LUNAR_LANDER)


# presets of others


def test_an_added_preset_is_found_by_name_in_its_space_alone_and_cannot_be_replaced(space: ParamSpace) -> None:
    heavy = Randomization({"mass": (1, 5)})
    for _ in range(2):  # the same again changes nothing
        add_preset(space.name, "heavy", heavy)
    assert resolve("heavy", space) == heavy
    assert set(presets(space.name)) == {"none", "heavy"}
    with pytest.raises(UnknownNameError):
        resolve("heavy", LUNAR_LANDER)
    for name in ("heavy", "none"):
        with pytest.raises(RandomizationError, match=f"already has a preset '{name}'. Choose another name"):
            add_preset(space.name, name, Randomization({"mass": (1, 6)}))
    assert presets(space.name)["heavy"] == heavy


def test_a_preset_that_is_no_randomization_is_refused(space: ParamSpace) -> None:
    rules: Any = {"mass": (1, 5)}
    with pytest.raises(RandomizationError, match="'heavy': expected a Randomization, got"):
        add_preset(space.name, "heavy", rules)
    assert "heavy" not in presets(space.name)


def test_an_added_preset_that_is_impossible_is_refused_when_it_is_chosen_and_stands_in_nobodys_way(
    space: ParamSpace,
) -> None:
    add_preset(space.name, "broken", Randomization({"mass": (1, 50)}))
    add_preset(space.name, "mine", Randomization({"no such name": (0.0, 1.0)}))
    with pytest.raises(RandomizationError, match="Parameter 'mass'"):
        resolve("broken", space)
    assert preset_of(Randomization(), space) == "none"
    assert preset_of(Randomization({next(iter(space)): 1.0}), space) == "own"


def test_what_presets_returns_may_be_changed_without_harm() -> None:
    presets("LunarLander").clear()
    assert "default" in presets("LunarLander")


def test_a_pattern_with_a_scale_leaves_out_what_is_0() -> None:
    space = ModelSpace("Hopper", gym.make("Hopper-v5").unwrapped.model)  # type: ignore[attr-defined]
    assert space["dof_damping:rootx"].nominal == 0.0
    assert set(resolve({"dof_damping:*": Scale((0.5, 2.0))}, space)) == {
        f"dof_damping:{joint}_joint" for joint in ("thigh", "leg", "foot")
    }
    assert len(resolve({"dof_damping:*": Add((0.0, 2.0))}, space)) == 6
    with pytest.raises(RandomizationError, match="has no effect here: Scale multiplies its nominal value"):
        resolve({"dof_frictionloss:*": Scale((0.5, 2.0))}, space)
    with pytest.raises(RandomizationError, match=r"'dof_frictionloss' has no effect here: it needs dof_f.* other"):
        resolve({"dof_frictionloss": Scale((0.5, 2.0))}, space)
