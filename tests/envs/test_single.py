"""The single environment on a compiled backend: what it adds to what the families' own tests and contracts hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from gym_dr.envs.backend import Outcome
from gym_dr.envs.equations.backend import EquationsBackend
from gym_dr.envs.family import add_family
from gym_dr.envs.single import CompiledEnv
from gym_dr.errors import ConfigError, EnvStateError, RandomizationWarning
from gym_dr.randomization.episode import RandomizedEnv
from tests.plugins.parts.spring import SPRING
from tests.registered import forgotten_afterwards


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with forgotten_afterwards():
        add_family(SPRING, "a test")
        yield


class SpringBackend(EquationsBackend):
    def __init__(self) -> None:
        super().__init__(SPRING.ids[0].id)


class Reporting(SpringBackend):
    """Reports a number, and that every step diverges."""

    def reset_info(self) -> dict[str, Any]:
        return {"height": np.array([1.0])}

    def step(self, *args: Any) -> Outcome:
        return super().step(*args)._replace(info={"height": np.array([2.0])}, diverged=np.array([True]))


class Drawing(SpringBackend):
    """Draws a random number in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.random_steps = True

    def step(self, *args: Any) -> Outcome:
        self.seed([0], [int(self.generators()[0].integers(100))])
        return super().step(*args)


def on(backend: Any, **kwargs: Any) -> Any:
    return type("Env", (CompiledEnv,), {"backend_class": backend})(randomization="none", **kwargs)


def test_info_and_divergence_of_the_backend_are_reported() -> None:
    env = on(Reporting)
    assert env.reset(seed=0)[1]["height"] == 1.0
    with pytest.warns(RandomizationWarning, match="diverged"):
        _, _, terminated, truncated, info = env.step(0)
    assert (terminated, truncated) == (False, True)
    assert (info["height"], info["diverged"]) == (2.0, True)


def test_a_warning_is_at_the_line_of_the_user_also_through_wrappers() -> None:
    env = gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(on(Reporting)), 5)
    env.reset(seed=0)
    with pytest.warns(RandomizationWarning) as warned:
        env.step(0)
    assert [warning.filename for warning in warned] == [__file__]


def test_the_generator_is_the_backends_before_and_after_each_step() -> None:
    env, twin = on(Drawing), np.random.default_rng(3)
    env.reset(seed=3)
    twin.uniform(size=2)  # the first position and velocity
    assert env.np_random.random() == twin.random()
    env.step(0)  # reads the generator where the user left it
    assert env.np_random.random() == np.random.default_rng(int(twin.integers(100))).random()


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64DXSM, np.random.SFC64])
@pytest.mark.parametrize("env_id", ["gym_dr/CartPoleDR-v1", "gym_dr/BipedalWalkerDR-v3"])
def test_a_generator_that_compiled_code_cannot_continue_is_refused_by_name(env_id: str, kind: Any) -> None:
    env = gym.make(env_id).unwrapped
    env.np_random = np.random.Generator(kind(3))
    with pytest.raises(EnvStateError, match=kind.__name__):
        env.reset()
    env.np_random = np.random.default_rng(3)
    found = env.reset()[0]
    env.np_random = np.random.default_rng(3)
    np.testing.assert_array_equal(env.reset(options={"params": env.params})[0], found)  # type: ignore[attr-defined]


def test_a_render_mode_that_the_backend_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match="Expected render_mode None or one of rgb_array, got 'ansi'"):
        on(SpringBackend, render_mode="ansi")


class OwnConstructor(RandomizedEnv, CartPoleEnv):
    """Its constructor calls Gymnasium's."""

    def __init__(self, render_mode: str | None = None, **kwargs: Any) -> None:
        self._randomize(SPRING.param_space, "none", **kwargs)
        super().__init__(render_mode=render_mode)


def test_a_randomized_environment_may_have_a_constructor_of_its_own() -> None:
    env = OwnConstructor(render_mode="rgb_array", context="hidden")
    assert (env.render_mode, env.gravity, env.params) == ("rgb_array", 9.8, dict(SPRING.param_space.nominal))
