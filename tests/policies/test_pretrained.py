"""Policies that come with the package play at once, and as well as is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import gym_dr
from gym_dr.errors import UnknownNameError
from gym_dr.policies.open import pretrained_names

# at least, on nominal physics
RETURNS = {
    "lander": 200.0,
    "lander_memory": 200.0,
    "hopper": 2500.0,
    "walker2d": 3500.0,
    "half_cheetah": 5000.0,
    "ant": 3500.0,
    "hardcore": 150.0,
}


def test_each_has_a_return_that_it_is_held_to() -> None:
    assert set(pretrained_names()) == set(RETURNS)


LANDERS = ("lander", "lander_memory")  # the siblings of the others, which walk for long


@pytest.mark.parametrize(
    "name", [name if name in LANDERS else pytest.param(name, marks=pytest.mark.slow) for name in RETURNS]
)
def test_it_returns_what_is_said_of_it(name: str, tmp_path: Path) -> None:
    # two episodes tell: each alone returns a fifth more than this
    found = gym_dr.evaluate(gym_dr.load_run(gym_dr.pretrained(name)), episodes=2, output=tmp_path)
    assert found.returns("nominal").mean() >= RETURNS[name]


def test_it_is_evaluated_in_the_current_folder_and_never_in_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, before = gym_dr.pretrained("lander"), sorted(gym_dr.pretrained("lander").rglob("*"))
    for given in (folder, gym_dr.load_run(folder)):
        found = gym_dr.evaluate(given, episodes=1)
        assert found.folder.resolve() == tmp_path / "lander-evaluation"
    assert sorted(folder.rglob("*")) == before


def test_an_unknown_one_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'lander'"):
        gym_dr.pretrained("landr")
