"""Parameters that a user chooses: what is drawn, what is exact, what it is called, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr import Constant, Scale, Uniform
from gym_dr.errors import ConfigError, GymDrError, RandomizationError, UnknownNameError
from gym_dr.experiments.chosen_params import choose_params
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import param_space_of
from gym_dr.training.registry import find_algorithm

LANDER = "gym_dr/LunarLanderDR-v3"
HOPPER = "gym_dr/HopperDR-v5"


def choose_wrong(wrong: Any) -> object:
    return choose_params(LANDER, param_space_of(LANDER), randomize=wrong)


@pytest.fixture(scope="module")
def space() -> ParamSpace:
    found = param_space_of(LANDER)
    assert found is not None
    return found


def test_without_a_choice_there_is_no_physics(space: ParamSpace) -> None:
    assert choose_params(LANDER, space, None, {}, {}) is None
    assert choose_params("CartPole-v1", None) is None


def test_values_leave_everything_else_nominal_and_turn_switches_on(space: ParamSpace) -> None:
    chosen = choose_params(LANDER, space, params={"wind_power": 15, "gravity": -3})
    assert chosen is not None
    assert not chosen.randomization
    assert chosen.params == {"gravity": -3.0, "wind_power": 15.0, "enable_wind": 1.0}
    assert chosen.name == "gravity=-3, wind_power=15"  # in the order of the space
    assert chosen.notes() == ["enable_wind is on, since wind_power has no effect without it."]


def test_all_parameters_that_need_a_switch_are_named(space: ParamSpace) -> None:
    chosen = choose_params(LANDER, space, params={"wind_power": 15, "turbulence_power": 1})
    assert chosen is not None
    assert chosen.notes() == ["enable_wind is on, since wind_power and turbulence_power have no effect without it."]


def test_a_switch_that_the_user_sets_or_that_is_drawn_stays_the_users(space: ParamSpace) -> None:
    with pytest.raises(RandomizationError, match="'wind_power' has no effect here: it needs enable_wind = 1"):
        choose_params(LANDER, space, params={"wind_power": 12, "enable_wind": 0})
    drawn = choose_params(LANDER, space, randomize={"enable_wind": "bernoulli:0.5"}, params={"wind_power": 15})
    assert drawn is not None
    assert drawn.params == {"wind_power": 15.0}
    assert drawn.switched_on == ()


def test_rules_replace_those_of_a_preset_and_values_replace_draws(space: ParamSpace) -> None:
    rules = {"gravity": Uniform(-4, -3), "lander_density": 4}
    chosen = choose_params(LANDER, space, "wide", rules, {"wind_power": 1})
    assert chosen is not None
    assert chosen.randomization["gravity"].distribution == Uniform(-4, -3)
    assert chosen.randomization["lander_density"].distribution == Constant(4)
    assert set(chosen.randomization) == {*resolve("wide", space), "lander_density"}
    assert chosen.params == {"wind_power": 1.0}
    assert chosen.name == "wide, gravity=Uniform(-4.0, -3.0), lander_density=4, wind_power=1"


def test_a_file_gives_its_name_and_another_randomization_is_ones_own(space: ParamSpace, tmp_path: Path) -> None:
    (tmp_path / "stormy.toml").write_text("wind_power = [10, 20]\n")
    for given, name in (
        (str(tmp_path / "stormy.toml"), "stormy"),
        ({"gravity": (-4, -3)}, "gravity=Uniform(-4.0, -3.0)"),
        ("none", "none"),
    ):
        chosen = choose_params(LANDER, space, given)
        assert chosen is not None
        assert chosen.name == name


def test_a_value_that_holds_the_switch_of_a_draw_off_is_refused(space: ParamSpace) -> None:
    with pytest.raises(RandomizationError, match="'wind_power' has no effect here: it needs enable_wind = 1"):
        choose_params(LANDER, space, randomize={"wind_power": (0, 20)}, params={"enable_wind": 0})


def test_different_randomizations_have_different_names(space: ParamSpace) -> None:
    long = {name: (space[name].low, space[name].low + 0.1) for name in list(space)[2:7]}
    chosen = [choose_params(LANDER, space, one) for one in (long, long | {"gravity": (-4, -3)})]
    names = [one.name for one in chosen if one is not None]
    assert len(set(names)) == 2
    assert all(name.startswith("own ") for name in names)


def test_a_pattern_replaces_the_rules_of_a_preset() -> None:
    space = param_space_of(HOPPER)
    assert space is not None
    light = {"body_mass:*": Scale((0.5, 1.1))}
    chosen = choose_params(HOPPER, space, "default", light)
    config = build_config(find_algorithm("a2c"), {"env": HOPPER}, randomization="default", randomize=light)
    assert chosen is not None
    for found in (chosen.randomization, config.randomization):
        assert found is not None
        masses = [rule for name, rule in found.items() if name.startswith("body_mass:")]
        assert masses
        assert all(rule == Scale((0.5, 1.1)) for rule in masses)


def test_a_number_in_a_name_is_the_number_that_is_played(space: ParamSpace) -> None:
    chosen = choose_params(LANDER, space, params={"gravity": -1 / 3})
    assert chosen is not None
    assert chosen.name == "gravity=-0.3333333333333333"


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ({"params": {"gravty": -3}}, UnknownNameError, "Did you mean 'gravity'"),
        ({"params": {"gravity": 3}}, RandomizationError, r"'gravity': expected a value from -12 to 0 m/s\^2, got 3"),
        ({"params": {"gravity": "low"}}, RandomizationError, "'gravity': expected numbers, got 'low'"),
        ({"params": {"push_speed": 1}}, RandomizationError, "it needs push_probability other than 0"),
        ({"randomize": {"gravity": (-20, -3)}}, RandomizationError, "'gravity': expected a value from -12 to 0"),
        ({"randomize": {"gravty": -3}}, UnknownNameError, "Did you mean 'gravity'"),
        ({"randomization": "wid"}, UnknownNameError, "Did you mean 'wide'"),
        ({"randomization": "no.toml"}, ConfigError, "no.toml: cannot be read"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(chosen: dict[str, Any], error: type[GymDrError], message: str) -> None:
    with pytest.raises(error, match=message):
        choose_params(LANDER, param_space_of(LANDER), **chosen)


def test_an_environment_without_parameters_has_no_physics_to_choose() -> None:
    with pytest.raises(ConfigError, match="CartPole-v1 has no parameters to vary"):
        choose_params("CartPole-v1", None, params={"length": 1.0})


def test_one_half_of_a_push_that_is_drawn_may_be_set(space: ParamSpace) -> None:
    pushes = {"push_probability": 0.1, "push_speed": (0, 2)}
    chosen = choose_params(LANDER, space, randomize=pushes, params={"push_speed": 1})
    assert chosen is not None
    assert chosen.params == {"push_speed": 1.0}


@pytest.mark.parametrize("call", [lambda wrong: gym_dr.train("a2c", randomize=wrong), choose_wrong])
def test_rules_that_are_no_mapping_are_refused(call: Callable[[Any], object]) -> None:
    with pytest.raises(RandomizationError, match=r"randomize: expected a mapping of names to rules, got \['gravity'\]"):
        call(["gravity"])
