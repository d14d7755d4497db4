"""The values in force in one environment, beyond what the contracts of environments say of draws, pins and values."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from gym_dr import (
    AdaptParams,
    Choice,
    Disturb,
    DrawContext,
    Param,
    ParamSpace,
    Randomization,
    RandomizeAttributes,
    RandomizeMujoco,
    ResampleParams,
    Scale,
    VectorParams,
)
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.episode import RandomizedEnv
from gym_dr.randomization.sampler import draw, seed_word

SPACE = ParamSpace(
    "Lander",
    [
        Param(name="gravity", nominal=-10.0, low=-12.0, high=0.0),
        Param(name="mass", nominal=5.0, low=1.0, high=20.0),
        Param(name="wind", nominal=0, low=0, high=1, kind="bool"),
    ],
)
VARIED = Randomization({"gravity": (-12, -8), "mass": (4, 6)})


class Host(RandomizedEnv, gym.Env[Any, Any]):
    """An environment that is nothing but its parameters."""

    def __init__(self, randomization: Randomization = VARIED) -> None:
        self._randomize(SPACE, randomization)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._begin_episode(seed, options)
        return self.params


def expected(seed: int, index: int) -> dict[str, float]:
    """Draw number ``index`` of ``seed``, and nominal for the rest."""
    drawn = draw(VARIED, SPACE, np.array([seed_word(seed)], dtype=np.uint64), index)
    return {**SPACE.nominal, **{name: float(values[0]) for name, values in drawn.items()}}


# draws


def test_generators_put_in_by_hand_get_random_sequences_of_draws() -> None:
    found = []
    for host in (Host(), Host()):
        host.np_random = np.random.default_rng(0)
        for index in range(2):
            found.append(tuple(host.reset().values()))
            assert host.draw_index == index
    assert len(set(found)) == 4


def test_a_generator_put_in_after_seeding_goes_on_with_the_draws_of_the_seed() -> None:
    host = Host()
    host.reset(seed=42)
    host.np_random = np.random.default_rng(0)
    assert host.reset() == expected(42, 1)


# exact values


def test_exact_values_that_were_set_are_used_up_by_one_reset() -> None:
    host = Host()
    host.exact_params = {"gravity": -3.7}
    assert host.reset(seed=42)["gravity"] == -3.7
    assert host.exact_params == {}
    assert host.reset() == expected(42, 1)


def test_exact_values_of_the_options_go_before_those_that_were_set() -> None:
    host = Host()
    host.exact_params = {"gravity": -3.7, "mass": 2.0}
    got = host.reset(seed=42, options={"params": {"gravity": -1.0}})
    assert got == {"gravity": -1.0, "mass": 2.0, "wind": 0.0}


def test_bad_options_are_refused_before_anything_changes() -> None:
    host = Host()
    before = host.reset(seed=42)
    host.exact_params = {"mass": 2.0}
    with pytest.raises(RandomizationError, match=r"expected a value from -12 to 0, got 3\.7"):
        host.reset(seed=7, options={"params": {"mass": 5.0, "gravity": 3.7}})
    assert (host.params, host.draw_index, host.exact_params) == (before, 0, {"mass": 2.0})
    assert host.reset() == {**expected(42, 1), "mass": 2.0}  # still the draws of 42


# pinned values


def test_pinned_values_are_replaced_as_a_whole_and_exact_ones_go_before_them_for_one_episode() -> None:
    host = Host()
    host.set_params({"mass": 2.0})
    host.pinned_params = {"gravity": -3.7}
    assert host.pinned_params == {"gravity": -3.7}
    host.exact_params = {"gravity": -1.0}
    assert [host.reset(seed=42)["gravity"], host.reset()["gravity"]] == [-1.0, -3.7]


# what is told


@pytest.mark.parametrize("name", ["params", "pinned_params", "exact_params"])
def test_what_is_told_may_be_changed_without_harm(name: str) -> None:
    host = Host()
    host.reset(seed=42)
    getattr(host, name)["gravity"] = host._visible(0, {})[1]["params"]["gravity"] = 99.0
    assert getattr(host, name).get("gravity") != 99.0
    assert host.params == expected(42, 0)


@pytest.mark.parametrize("name", ["param", "parms", "reset_masks"])
def test_an_option_that_is_misspelled_is_refused_and_others_pass(name: str) -> None:
    host = Host()
    with pytest.raises(UnknownNameError, match=r"Unknown option of reset.*Did you mean"):
        host.reset(options={name: {"mass": 5.0}})
    host.reset(options={"low": -0.1, "map": 3})


# layers around each other

SKIP = ParamSpace("Skip", [Param(name="frame_skip", nominal=4, low=1, high=10, kind="int")])
MASSES = {"body_mass:*": Scale((0.5, 2.0)), "gravity.z": (-12, -8)}


def masses(env: Any) -> Any:
    return RandomizeMujoco(env, MASSES)


def skips(env: Any) -> Any:
    return RandomizeAttributes(env, {"frame_skip": Choice((1, 2, 3))}, space=SKIP)


def stacked(outer: Any = skips, inner: Any = masses) -> Any:
    return outer(inner(gym.make("Hopper-v5")))


BOTH_WAYS = pytest.mark.parametrize("make", [stacked, partial(stacked, masses, skips)], ids=["attributes", "mujoco"])


def assert_physics(env: Any, params: dict[str, float]) -> None:
    inner = env.unwrapped
    assert (inner.frame_skip, inner.model.opt.gravity[2]) == (params["frame_skip"], params["gravity.z"])
    assert inner.model.body("torso").mass[0] == params["body_mass:torso"]


@BOTH_WAYS
def test_two_layers_draw_what_each_draws_alone(make: Any) -> None:
    env, alone = make(), [layer(gym.make("Hopper-v5")) for layer in (masses, skips)]
    for seed in (1, None):
        (_, info), expected = env.reset(seed=seed), [layer.reset(seed=seed)[1]["params"] for layer in alone]
        assert info["params"] == expected[0] | expected[1] == env.step(np.zeros(3))[-1]["params"] == env.params
        assert_physics(env, info["params"])
    assert set(env.randomization) == env.params.keys() <= set(env.param_space)


@BOTH_WAYS
def test_values_set_by_hand_reach_both_layers(make: Any) -> None:
    env = make()
    env.set_params({"gravity.z": -9.0, "frame_skip": 5})
    assert_physics(env, env.reset(seed=1)[1]["params"])
    assert env.pinned_params == {"gravity.z": -9.0, "frame_skip": 5}
    env.set_params(None)
    env.unwrapped.frame_skip = 7
    params = env.reset(options={"params": {"gravity.z": -1.0, "wind.x": 2.0, "density": 1.0}})[1]["params"]
    assert_physics(env, params)
    assert (params["gravity.z"], params["frame_skip"], env.unwrapped.model.opt.wind[0]) == (-1.0, 7, 2.0)
    env.set_params(None)
    params = env.reset()[1]["params"]
    assert params["frame_skip"] != 7
    assert env.unwrapped.model.opt.wind[0] == 0.0
    for bad in ({"gravity.z": np.inf}, {"frame_skip": 1.5}, {"gravity_z": -1.0}):
        with pytest.raises((RandomizationError, UnknownNameError)):
            env.set_params(bad)


@BOTH_WAYS
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)), lambda e: gym.make(e.spec)]
)
def test_a_copy_of_both_layers_goes_on_alike(make: Any, copied: Any) -> None:
    env = make()
    env.reset(seed=1)
    again = copied(env)
    _, info = again.reset(seed=2)
    assert info == env.reset(seed=2)[1]
    assert_physics(again, info["params"])


@pytest.mark.parametrize("kind", [SyncVectorEnv, pytest.param(AsyncVectorEnv, marks=pytest.mark.slow)])
@BOTH_WAYS
def test_vector_environments_of_both_layers_have_one_interface(make: Any, kind: Any) -> None:
    single = make()
    envs = ResampleParams(VectorParams(kind([make] * 2)), rollout_steps=None)
    shown = DrawContext(envs, "observation")
    observations, info = shown.reset(seed=1)
    assert observations.shape == (2, 11 + len(single.randomization))
    expected = single.reset(seed=2)[1]["params"]
    assert {name: info["params"][name][1] for name in expected} == expected
    envs.resample()
    pending = envs.pending
    envs.set_params({"frame_skip": [5, 6]})
    params = envs.reset()[1]["params"]
    assert params["frame_skip"].tolist() == [5, 6]
    assert params["gravity.z"].tolist() == pending["gravity.z"].tolist()
    adapted = AdaptParams(VectorParams(SyncVectorEnv([make] * 2)), "uniform")
    assert adapted.reset(seed=1)[1]["params"]["frame_skip"].tolist() == info["params"]["frame_skip"].tolist()
    shown.close()


def test_layers_of_one_kind_vary_different_parameters() -> None:
    env = RandomizeMujoco(
        masses(gym.make("Hopper-v5")), {"dof_damping:leg_joint": (0.5, 2.0), "body_mass": Scale((2.0, 3.0))}
    )
    params = env.reset(seed=1)[1]["params"]
    assert env.unwrapped.model.joint("leg_joint").damping[0] == params["dof_damping:leg_joint"]
    assert env.unwrapped.model.body("torso").mass[0] == pytest.approx(params["body_mass"] * params["body_mass:torso"])


@pytest.mark.parametrize("outermost", ["attributes", "mujoco"])
def test_the_outer_layer_may_vary_parameters_of_both(outermost: str) -> None:
    kinds = [RandomizeMujoco, partial(RandomizeAttributes, space=SKIP)]
    inner, outer = kinds if outermost == "attributes" else kinds[::-1]
    env = outer(inner(gym.make("Hopper-v5"), "none"), {**MASSES, "frame_skip": Choice((1, 2, 3))})
    _, info = env.reset(seed=1)
    assert info["params"] == stacked().reset(seed=1)[1]["params"]
    assert_physics(env, info["params"])
    assert gym.make(env.spec).reset(seed=1)[1]["params"] == info["params"]


@pytest.mark.parametrize(
    "outer",
    [
        lambda: masses(stacked()),
        lambda: skips(stacked()),
        lambda: RandomizeMujoco(gym.make("gym_dr/HopperDR-v5"), {"body_mass:torso": (1.0, 2.0)}),
        lambda: skips(gym.make("gym_dr/HopperDR-v5", context="hidden")),
        lambda: RandomizeMujoco(skips(gym.make("Hopper-v5")), {"frame_skip": (1.0, 2.0)}),
    ],
    ids=["masses", "skips", "id", "hidden", "unknown"],
)
def test_layers_that_vary_one_parameter_or_hide_theirs_are_refused(outer: Any) -> None:
    with pytest.raises((RandomizationError, UnknownNameError)):
        outer()


def test_an_environment_that_is_built_randomized_takes_a_layer() -> None:
    def scale(env: Any, values: dict[str, float]) -> None:
        env.scale = values["scale"]

    space = ParamSpace("Scale", [Param(name="scale", nominal=1.0, low=0.0, high=3.0)])
    env: Any = RandomizeAttributes(gym.make("gym_dr/LunarLanderDR-v3"), {"scale": (1, 2)}, space=space, apply=scale)
    alone = gym.make("gym_dr/LunarLanderDR-v3")
    for seed in (1, None):
        params, expected = env.reset(seed=seed)[1]["params"], alone.reset(seed=seed)[1]["params"]
        assert params == {**expected, "scale": env.unwrapped.scale}
    env.unwrapped.gravity = -3.0
    assert env.reset()[1]["params"]["gravity"] == -3.0
    assert env.pinned_params == {"gravity": -3.0}


def test_the_info_of_disturbances_between_layers_is_kept() -> None:
    env = skips(Disturb(masses(gym.make("Hopper-v5")), {"obs_noise": 0.1, "push_speed": 1.0, "push_probability": 0.5}))
    _, info = env.reset(seed=1)
    assert info["params"] == stacked().reset(seed=1)[1]["params"] | {
        "obs_noise": 0.1,
        "push_speed": 1.0,
        "push_probability": 0.5,
    }
    assert env.step(np.zeros(3))[-1]["params"] == info["params"]
