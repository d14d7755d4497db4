"""Sets that a user makes: what is drawn, what is exact, what they are called, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr import Constant, Scale, Uniform
from gym_dr.errors import ConfigError, GymDrError, RandomizationError, UnknownNameError
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.suite import sets_of
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.runs.environments import param_space_of

LANDER = "gym_dr/LunarLanderDR-v3"
HOPPER = "gym_dr/HopperDR-v5"


@pytest.fixture(scope="module")
def space() -> ParamSpace:
    found = param_space_of(LANDER)
    assert found is not None
    return found


def played(space: ParamSpace, given: Any, trained: Any = None, episodes: int | None = None) -> CellSet:
    """The cells of one set."""
    return sets_of(LANDER, space, given, trained or {}, episodes)[-1]


def test_each_set_has_its_cells_and_as_many_episodes_as_it_or_the_evaluation_says(space: ParamSpace) -> None:
    trained = {"training": resolve({"gravity": (-11, -9), "lander_density": (4, 6)}, space)}
    for given, name, cells, episodes in (
        ((), "training", 1, 100),
        (gym_dr.grid(gravity=(-12, -2, 3), wind_power=(0, 20, 2)), "grid", 6, 20),
        (gym_dr.sobol(8), "sobol", 32, 5),
        ("wide", "wide", 1, 100),
    ):
        for asked, expected in ((None, episodes), (7, 7)):
            found = played(space, given, trained, asked)
            assert (found.name, found.num_cells, found.episodes) == (name, cells, expected)
    assert played(space, gym_dr.draws("wide", episodes=3), episodes=7).episodes == 3
    found = sets_of(
        LANDER, space, [gym_dr.sobol(2)], {"training: a": trained["training"], "default": resolve("wide", space)}, 1
    )
    assert [one.name for one in found] == ["nominal", "training: a", "default", "sobol: a", "sobol: default"]


def test_an_axis_has_both_ends_and_its_count(space: ParamSpace) -> None:
    found = played(space, gym_dr.grid(gravity=(-12, -2, 11)))
    assert found.values[:, 0].tolist() == [-12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2]


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (-9, r"gravity: expected \(lowest, highest, count\), such as \(-12, -2, 11\), .*got -9"),
        ((-9, -2, 2.0), r"got \(-9, -2, 2.0\)"),
        ((-12, math.nan, 3), "finite"),
        ((-12, -2, 0), "both ends"),
        ((-2, -12, 3), r"\(lowest, highest, count\)"),
        ((-2, -2, 2), "or 1 for a single value"),
    ],
)
def test_impossible_axes_are_refused(axis: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gym_dr.grid(gravity=axis)


def test_values_leave_everything_else_nominal_and_turn_switches_on(space: ParamSpace) -> None:
    found = played(space, gym_dr.draws(wind_power=15, gravity=-3))
    assert found.randomization is None
    assert found.cell(0) == {"gravity": -3.0, "wind_power": 15.0, "enable_wind": 1.0}
    assert found.name == "gravity=-3, wind_power=15"  # in the order of the space
    assert found.notes == [f"{found.name}: enable_wind is on, since a parameter has no effect without it."]


def test_a_switch_that_the_user_sets_or_that_is_drawn_stays_the_users(space: ParamSpace) -> None:
    with pytest.raises(RandomizationError, match="'wind_power' has no effect here: it needs enable_wind = 1"):
        played(space, gym_dr.draws(wind_power=12, enable_wind=0))
    drawn = played(space, gym_dr.draws(enable_wind="bernoulli:0.5", wind_power=15))
    assert drawn.fixed == {"wind_power": 15.0}
    assert drawn.switched_on == ()


def test_rules_replace_those_of_a_preset_and_values_replace_draws(space: ParamSpace) -> None:
    found = played(space, gym_dr.draws("wide", gravity=Uniform(-4, -3), lander_density="4", wind_power=1))
    assert found.randomization is not None
    assert found.randomization["gravity"].distribution == Uniform(-4, -3)
    assert found.randomization["lander_density"].distribution == Constant(4)
    assert set(found.randomization) == {*resolve("wide", space), "lander_density"}
    assert found.fixed == {"wind_power": 1.0}
    assert found.name == "wide, gravity=Uniform(-4.0, -3.0), lander_density=4, wind_power=1"


def test_a_set_is_named_after_its_file_its_rules_or_as_the_user_says(space: ParamSpace, tmp_path: Path) -> None:
    (tmp_path / "stormy.toml").write_text("wind_power = [10, 20]\n")
    for given, name in (
        (str(tmp_path / "stormy.toml"), "stormy"),
        ({"gravity": (-4, -3)}, "gravity=Uniform(-4.0, -3.0)"),
        (gym_dr.draws({"gravity": (-4, -3)}, name="weak"), "weak"),
        (gym_dr.draws(gravity=-1 / 3), "gravity=-0.3333333333333333"),  # the number that is played
        ("none", "nominal"),
    ):
        assert played(space, given).name == name


def test_different_randomizations_have_different_names(space: ParamSpace) -> None:
    long = {name: (space[name].low, space[name].low + 0.1) for name in list(space)[2:7]}
    names = [played(space, one).name for one in (long, long | {"gravity": (-4, -3)})]
    assert len(set(names)) == 2
    assert all(name.startswith("own ") for name in names)


def test_the_same_set_is_played_once_and_another_of_its_name_is_refused(space: ParamSpace) -> None:
    trained = {"default": resolve("default", space)}
    assert [one.name for one in sets_of(LANDER, space, ["default", "none", "wide", "wide"], trained, 4)] == [
        "nominal",
        "default",
        "wide",
    ]
    with pytest.raises(ConfigError, match="Two sets are named 'wide'"):
        sets_of(LANDER, space, ["wide", gym_dr.draws("random", name="wide")], {}, 4)
    with pytest.raises(ConfigError, match="'grid' is the name of a kind of set"):
        sets_of(LANDER, space, gym_dr.draws("random", name="grid"), {}, 4)


def test_a_pattern_replaces_the_rules_of_a_preset() -> None:
    space = param_space_of(HOPPER)
    assert space is not None
    found = played(space, gym_dr.draws("default", **{"body_mass:*": Scale((0.5, 1.1))})).randomization
    assert found is not None
    masses = [rule for name, rule in found.items() if name.startswith("body_mass:")]
    assert masses
    assert all(rule == Scale((0.5, 1.1)) for rule in masses)


def test_one_half_of_a_push_that_is_drawn_may_be_set(space: ParamSpace) -> None:
    pushes = {"push_probability": 0.1, "push_speed": (0, 2)}
    assert played(space, gym_dr.draws(pushes, push_speed=1)).fixed == {"push_speed": 1.0}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (gym_dr.draws(gravty=-3), UnknownNameError, "Did you mean 'gravity'"),
        (gym_dr.draws(gravity=3), RandomizationError, r"'gravity': expected a value from -12 to 0 m/s\^2, got 3"),
        (gym_dr.draws(push_speed=1), RandomizationError, "it needs push_probability or push_interval other than 0"),
        (gym_dr.draws(gravity=(-20, -3)), RandomizationError, "'gravity': expected a value from -12 to 0"),
        (gym_dr.draws(gravty=(-4, -3)), UnknownNameError, "Did you mean 'gravity'"),
        (gym_dr.grid(gravty=(-4, -3, 2)), UnknownNameError, "Did you mean 'gravity'"),
        (gym_dr.grid(gravity=(-4, 3, 2)), RandomizationError, "'gravity': expected a value from -12 to 0"),
        ("wid", UnknownNameError, "Did you mean 'wide'"),
        ("no.toml", ConfigError, "no.toml: cannot be read"),
        (gym_dr.sobol(4), ConfigError, "expected runs trained with randomized parameters"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given: Any, error: type[GymDrError], message: str, space: ParamSpace) -> None:
    with pytest.raises(error, match=message):
        played(space, given)


def test_numbers_of_episodes_are_whole() -> None:
    for make in (gym_dr.grid, gym_dr.draws):
        with pytest.raises(ConfigError, match="`episodes` to be a whole number above 0, got 0"):
            make(episodes=0)


def test_an_environment_without_parameters_has_no_sets() -> None:
    with pytest.raises(ConfigError, match="CartPole-v1 has no parameters to vary"):
        sets_of("CartPole-v1", None, gym_dr.draws(length=1.0), {}, None)
    assert [one.name for one in sets_of("CartPole-v1", None, (), {}, 3)] == ["nominal"]
