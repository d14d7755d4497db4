"""Presets: found by name, valid, and as the generalization protocol wants them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr  # noqa: F401  files the presets of its environments
from gym_dr import Add, Bernoulli, Normal, Param, ParamSpace, Randomization, Scale, Uniform, add_preset
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.classic_control import acrobot, cart_pole, mountain_car, mountain_car_continuous, pendulum
from gym_dr.envs.mujoco.space import model_space
from gym_dr.errors import ConfigError, RandomizationError, RandomizationWarning, UnknownNameError
from gym_dr.randomization.draws import draw
from gym_dr.randomization.presets import preset_of, presets, resolve

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
def test_every_preset_is_valid_for_its_space(space: ParamSpace, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomizationWarning)
        space.check_randomization(presets(space.name)[name])


@by_preset
def test_no_preset_warns_when_it_is_chosen_by_name(space: ParamSpace, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve(name, space) is not None


@by_preset
def test_every_preset_gives_possible_values_without_any_clipping(space: ParamSpace, name: str) -> None:
    for parameter, rule in presets(space.name)[name].items():
        param = space[parameter]
        param.check(rule.apply(param.nominal, rule.distribution.ppf(np.arange(1, 1000) / 1000)))


def test_lunar_lander_has_these_presets() -> None:
    assert {"none", "default", "wide", "random", "extreme"} <= set(presets("LunarLander"))


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


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_none_varies_nothing(space: ParamSpace) -> None:
    assert resolve("none", space) == Randomization()


def test_extreme_varies_every_parameter_of_random() -> None:
    known = presets("LunarLander")
    assert set(known["extreme"]) == set(known["random"])


def test_extreme_is_never_inside_the_box_of_random_in_any_dimension() -> None:
    known = presets("LunarLander")
    drawn = draw(known["extreme"], LUNAR_LANDER, np.arange(10_000, dtype=np.uint64), 0)
    for name, rule in known["random"].items():
        low, high = rule.support(LUNAR_LANDER[name].nominal)
        assert not ((drawn[name] > low) & (drawn[name] < high)).any(), name


def test_extreme_reaches_both_sides_of_the_box_of_random_where_it_varies() -> None:
    known = presets("LunarLander")
    drawn = draw(known["extreme"], LUNAR_LANDER, np.arange(10_000, dtype=np.uint64), 0)
    for name in set(known["random"]) - {"enable_wind"}:
        low, high = known["random"][name].support(LUNAR_LANDER[name].nominal)
        assert (drawn[name] < low).any(), name
        assert (drawn[name] > high).any(), name


# what users may give


def test_none_is_nominal() -> None:
    assert resolve(None, LUNAR_LANDER) == Randomization()


def test_a_mapping_becomes_a_randomization() -> None:
    assert resolve({"gravity": (-11, -9)}, LUNAR_LANDER) == Randomization({"gravity": Uniform(-11, -9)})


def test_a_randomization_is_taken_as_it_is() -> None:
    randomization = Randomization({"gravity": (-11, -9)})
    assert resolve(randomization, LUNAR_LANDER) == randomization


@pytest.mark.parametrize("as_type", [str, Path])
def test_a_path_is_read(tmp_path: Path, as_type: Any) -> None:
    file = tmp_path / "wind.toml"
    file.write_text("gravity = [-11, -9]\n")
    assert resolve(as_type(file), LUNAR_LANDER) == Randomization({"gravity": Uniform(-11, -9)})


def test_a_path_object_is_a_file_even_if_a_preset_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wide").write_text("gravity = [-11, -9]\n")
    assert resolve(Path("wide"), LUNAR_LANDER) == Randomization({"gravity": Uniform(-11, -9)})


def test_an_unknown_preset_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown preset of LunarLander 'wied'\. Did you mean 'wide'\?"):
        resolve("wied", LUNAR_LANDER)


@pytest.mark.parametrize("text", ["wind.toml", "wind.json", f"folder{os.sep}wind"])
def test_text_that_looks_like_a_path_is_one(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        resolve(text, LUNAR_LANDER)


@pytest.mark.parametrize("value", [5, ["default"], ("gravity", 1), object(), True])
def test_anything_else_is_refused_with_what_was_expected(value: object) -> None:
    with pytest.raises(RandomizationError, match=r"Expected a preset \(none, default,.*a mapping.*got") as refused:
        resolve(value, LUNAR_LANDER)
    assert repr(value) in str(refused.value)


def test_a_mapping_is_checked_against_the_space() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'gravity'"):
        resolve({"gravty": (-11, -9)}, LUNAR_LANDER)


def test_a_mapping_that_leaves_nominal_out_warns() -> None:
    with pytest.warns(RandomizationWarning, match="the nominal value -10 is outside"):
        resolve({"gravity": (-9, -5)}, LUNAR_LANDER)


# presets of others


def test_an_added_preset_is_found_by_name(space: ParamSpace) -> None:
    heavy = Randomization({"mass": (1, 5)})
    add_preset(space.name, "heavy", heavy)
    assert resolve("heavy", space) == heavy


def test_the_presets_of_one_space_are_unknown_to_another(space: ParamSpace) -> None:
    add_preset(space.name, "heavy", Randomization({"mass": (1, 5)}))
    with pytest.raises(UnknownNameError):
        resolve("heavy", LUNAR_LANDER)


def test_a_second_preset_of_one_name_is_refused_and_the_first_kept(space: ParamSpace) -> None:
    first = Randomization({"mass": (1, 5)})
    add_preset(space.name, "heavy", first)
    with pytest.raises(RandomizationError, match=r"already has a preset 'heavy'. Choose another name"):
        add_preset(space.name, "heavy", Randomization({"mass": (1, 6)}))
    assert presets(space.name)["heavy"] == first


def test_the_same_preset_may_be_added_again(space: ParamSpace) -> None:
    for _ in range(2):
        add_preset(space.name, "heavy", Randomization({"mass": (1, 5)}))
    assert set(presets(space.name)) == {"none", "heavy"}


def test_the_name_none_is_taken(space: ParamSpace) -> None:
    with pytest.raises(RandomizationError, match="already has a preset 'none'"):
        add_preset(space.name, "none", Randomization())


def test_a_preset_that_is_no_randomization_is_refused(space: ParamSpace) -> None:
    rules: Any = {"mass": (1, 5)}
    with pytest.raises(RandomizationError, match="'heavy': expected a Randomization, got"):
        add_preset(space.name, "heavy", rules)
    assert "heavy" not in presets(space.name)


def test_an_added_preset_that_is_impossible_is_refused_when_it_is_chosen(space: ParamSpace) -> None:
    add_preset(space.name, "broken", Randomization({"mass": (1, 50)}))
    with pytest.raises(RandomizationError, match="Parameter 'mass'"):
        resolve("broken", space)


def test_an_added_preset_that_is_impossible_stands_in_nobodys_way(space: ParamSpace) -> None:
    add_preset(space.name, "mine", Randomization({"no such name": (0.0, 1.0)}))
    assert preset_of(Randomization(), space) == "none"
    assert preset_of(Randomization({next(iter(space)): 1.0}), space) == "own"


def test_what_presets_returns_may_be_changed_without_harm() -> None:
    presets("LunarLander").clear()
    assert "default" in presets("LunarLander")


def test_a_pattern_with_a_scale_leaves_out_what_is_0() -> None:
    space = model_space("Hopper", gym.make("Hopper-v5").unwrapped.model)  # type: ignore[attr-defined]
    assert space["dof_damping:rootx"].nominal == 0.0
    assert set(resolve({"dof_damping:*": Scale((0.5, 2.0))}, space)) == {
        f"dof_damping:{joint}_joint" for joint in ("thigh", "leg", "foot")
    }
    assert len(resolve({"dof_damping:*": Add((0.0, 2.0))}, space)) == 6
    with pytest.raises(RandomizationError, match="has no effect here: Scale multiplies its nominal value"):
        resolve({"dof_frictionloss:*": Scale((0.5, 2.0))}, space)
    with pytest.raises(RandomizationError, match=r"'dof_frictionloss' has no effect here: it needs dof_f.* other"):
        resolve({"dof_frictionloss": Scale((0.5, 2.0))}, space)
