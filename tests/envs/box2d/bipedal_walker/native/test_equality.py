"""The native BipedalWalker is Box2D's, bit for bit (on machines where that can be had, see EXACT)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gym_dr.envs.box2d.bipedal_walker.params import BIPEDAL_WALKER, BIPEDAL_WALKER_HARDCORE
from tests.envs.box2d.bipedal_walker.native.duel import duel
from tests.envs.box2d.exact import EXACT
from tests.envs.box2d.lunar_lander.native.duel import whole_range

exact = pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
SPACES = {False: BIPEDAL_WALKER, True: BIPEDAL_WALKER_HARDCORE}
VARIANTS = pytest.mark.parametrize("hardcore", [False, True], ids=["plain", "hardcore"])


@exact
@VARIANTS
def test_nominal_episodes_are_equal(hardcore: bool) -> None:
    assert duel(seed=1000, episodes=6, hardcore=hardcore, max_steps=100).differing == []


@exact
@VARIANTS
def test_episodes_of_the_preset_extreme_are_equal(hardcore: bool) -> None:
    assert duel(seed=2000, episodes=6, hardcore=hardcore, randomization="extreme", max_steps=80).differing == []


@exact
@VARIANTS
def test_episodes_over_the_whole_range_of_every_parameter_are_equal(hardcore: bool) -> None:
    params = whole_range(np.random.default_rng(5), 6, SPACES[hardcore])
    assert duel(seed=3000, episodes=6, hardcore=hardcore, params=params, max_steps=80).differing == []


@exact
@VARIANTS
def test_walkers_that_are_thrown_over_obstacles_are_equal(hardcore: bool) -> None:
    assert duel(seed=4000, episodes=5, hardcore=hardcore, max_steps=150, blows=True).differing == []


@pytest.mark.slow
@exact
@VARIANTS
@pytest.mark.parametrize("part", range(8))
def test_two_thousand_episodes_a_variant_are_equal(part: int, hardcore: bool) -> None:
    rng, seed = np.random.default_rng(part), 10_000_000 + 1_000 * part
    settings: list[dict[str, Any]] = [
        {},
        {"randomization": "extreme"},
        {"randomization": "wide"},
        {"params": whole_range(rng, 65, SPACES[hardcore])},
        {"params": whole_range(rng, 65, SPACES[hardcore]), "blows": True, "max_steps": 300},
    ]
    for batch, setting in enumerate(settings):
        assert duel(seed=seed + 100 * batch, episodes=65, hardcore=hardcore, **setting).differing == []


@pytest.mark.slow
@exact
@pytest.mark.parametrize("name", sorted(BIPEDAL_WALKER_HARDCORE))
def test_each_parameter_alone_is_equal(name: str) -> None:
    param = BIPEDAL_WALKER_HARDCORE[name]
    values = np.linspace(param.low, param.high, 24)
    assert duel(seed=20_000, episodes=24, hardcore=True, params={name: values}).differing == []
