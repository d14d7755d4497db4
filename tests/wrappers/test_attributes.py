from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from gym_dr import Normal, Param, ParamSpace, RandomizeAttributes, Scale, Uniform
from gym_dr.errors import RandomizationError, UnknownNameError

CART_POLE = {"length": Scale((0.5, 2.0)), "masspole": (0.05, 0.5), "gravity": Normal(9.8, 1.0, low=7.0, high=13.0)}


def cart_pole(**kwargs: Any) -> Any:
    return RandomizeAttributes(gym.make("CartPole-v1"), CART_POLE, **kwargs)


class Name(str):
    """A name that counts how often it is looked for."""

    looks = 0

    def __hash__(self) -> int:
        Name.looks += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        Name.looks += 1
        return super().__eq__(other)


def test_the_work_for_each_parameter_does_not_grow_with_their_number() -> None:
    names = [Name(f"p{i}") for i in range(400)]
    env = gym.make("CartPole-v1")
    for name in names:
        setattr(env.unwrapped, name, 1.0)
    Name.looks = 0
    space = ParamSpace("many", [Param(name=name, nominal=1.0, low=0.0, high=2.0) for name in names])
    many = RandomizeAttributes(env, dict.fromkeys(names, (0.5, 1.5)), space=space)
    many.reset(seed=0)
    many.reset(options={"params": dict.fromkeys(names, 1.0)})
    assert Name.looks < 200 * len(names)


def test_draws_reach_the_attributes_and_info() -> None:
    env = cart_pole()
    _, info = env.reset(seed=1)
    for name in CART_POLE:
        assert getattr(env.unwrapped, name) == info["params"][name] == env.params[name]
    assert env.unwrapped.force_mag == 10.0  # not randomized


def test_cart_poles_derived_quantities_follow() -> None:
    env = cart_pole()
    for seed in range(3):
        env.reset(seed=seed)
        sub = env.unwrapped
        assert sub.total_mass == sub.masspole + sub.masscart
        assert sub.polemass_length == sub.masspole * sub.length


def test_scale_starts_from_nominal_at_every_reset() -> None:
    env = cart_pole()
    env.reset(seed=1)
    lengths = [env.reset()[1]["params"]["length"] for _ in range(200)]
    assert 0.25 <= min(lengths) < max(lengths) <= 1.0  # nominal 0.5 x [0.5, 2]; drifting would leave this


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_without_randomization_episodes_equal_gymnasiums(env_id: str) -> None:
    ours, theirs = RandomizeAttributes(gym.make(env_id), "none"), gym.make(env_id)
    for seed in (3, None, None):
        assert (ours.reset(seed=seed)[0] == theirs.reset(seed=seed)[0]).all()
        theirs.action_space.seed(0)
        for _ in range(15):
            action = theirs.action_space.sample()
            left, right = ours.step(action), theirs.step(action)
            assert (left[0] == right[0]).all()
            assert left[1:4] == right[1:4]
            if left[2]:
                break


def test_a_seed_gives_the_same_draw_after_any_history_and_exact_values_hold_for_one_episode() -> None:
    env = cart_pole()
    first = env.reset(seed=9)[1]["params"]
    _, info = env.reset(options={"params": {"length": 0.75}})
    assert info["params"]["length"] == env.unwrapped.length == 0.75
    assert env.reset()[1]["params"]["length"] != 0.75
    assert env.reset(seed=9)[1]["params"] == first


def test_other_options_still_reach_the_environment() -> None:
    env = cart_pole()
    observation, _ = env.reset(seed=1, options={"low": 0.04, "high": 0.05, "params": {"length": 0.75}})
    assert (observation >= 0.04).all()


def test_a_space_and_derived_quantities_of_ones_own() -> None:
    space = ParamSpace("Car", [Param(name="force", nominal=0.001, low=0.0, high=0.01)])
    seen = []
    env = RandomizeAttributes(
        gym.make("MountainCar-v0"),
        {"force": Uniform(0.0005, 0.002)},
        space=space,
        derive=lambda sub: seen.append(sub.force),
    )
    env.reset(seed=0)
    assert seen == [env.params["force"]]


@pytest.mark.parametrize(
    ("space", "error", "message"),
    [
        (None, RandomizationError, "space=ParamSpace"),
        (ParamSpace("Car", [Param(name="forc", nominal=0, low=0, high=1)]), UnknownNameError, "Did you mean 'force'"),
    ],
)
def test_an_unknown_environment_needs_a_space_of_attributes_that_it_has(space: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        RandomizeAttributes(gym.make("MountainCar-v0"), {}, space=space)


@pytest.mark.parametrize("value", [None, "heavy", np.ones(3)])
def test_an_attribute_that_is_no_number_is_named(value: Any) -> None:
    env: Any = gym.make("CartPole-v1")
    env.unwrapped.masscart = value
    with pytest.raises(RandomizationError, match="'masscart': expected a finite nominal value"):
        RandomizeAttributes(env, "none")


def test_spec_recreates_the_wrapped_environment() -> None:
    env = cart_pole()
    assert env.spec is not None
    copy: Any = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert copy.reset(seed=4)[1] == env.reset(seed=4)[1]


def test_sub_environment_seeds_key_the_draws() -> None:
    envs = gym.vector.SyncVectorEnv([cart_pole] * 3)
    _, info = envs.reset(seed=20)
    single = cart_pole().reset(seed=22)[1]["params"]["length"]
    assert info["params"]["length"][2] == single
    assert len(np.unique(info["params"]["length"])) == 3


def test_an_environment_made_with_other_values_keeps_them() -> None:
    env: Any = RandomizeAttributes(gym.make("Pendulum-v1", g=9.81), {"m": Scale((0.5, 1.5))})
    _, info = env.reset(seed=0)
    assert env.unwrapped.g == 9.81
    assert env.unwrapped.m == info["params"]["m"] != 1.0


def test_two_around_one_environment_are_refused() -> None:
    with pytest.raises(RandomizationError, match="already randomized"):
        RandomizeAttributes(cart_pole(), {"gravity": (9.0, 10.0)})


def test_a_reset_that_sets_an_attribute_again_is_refused() -> None:
    class Forgetful(gym.Wrapper[Any, Any, Any, Any]):
        """As an environment whose own reset sets its length."""

        def reset(self, **kwargs: Any) -> Any:
            self.unwrapped.length = 0.5  # type: ignore[attr-defined]
            return super().reset(**kwargs)

    env = RandomizeAttributes(Forgetful(gym.make("CartPole-v1")), {"length": (0.4, 0.7), "gravity": (9.0, 11.0)})
    with pytest.raises(RandomizationError, match="reset of CartPoleEnv sets length, too"):
        env.reset(seed=1)


def test_whole_numbers_and_flags_are_set_as_such() -> None:
    inner = gym.make("MountainCar-v0")
    inner.unwrapped.repeats, inner.unwrapped.slippery = 1, False  # type: ignore[attr-defined]
    space = ParamSpace(
        "Car",
        [
            Param(name="repeats", nominal=1, low=1, high=5, kind="int"),
            Param(name="slippery", nominal=0, low=0, high=1, kind="bool"),
        ],
    )
    env: Any = RandomizeAttributes(inner, {"repeats": "integer:1:5", "slippery": True}, space=space)
    env.reset(seed=0)
    assert type(env.unwrapped.repeats) is int
    assert env.unwrapped.slippery is True


class Flyer(gym.Env[Any, Any]):
    """An environment that builds its world in reset, as those on PyBullet do."""

    observation_space = action_space = gym.spaces.Box(-9.0, 9.0, (1,))
    world: dict[str, Any]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.world = {"mass": np.float32(1.0)}
        return np.zeros(1, np.float32), {}


FLYER = ParamSpace("Flyer", [Param(name="mass", nominal=1.0, low=0.1, high=9.0)])


def put_mass(env: Flyer, values: dict[str, float]) -> None:
    env.world["mass"] = np.float32(values["mass"])


def flyer(apply: Any = put_mass, read: Any = lambda env: env.world) -> Any:
    return RandomizeAttributes(Flyer(), {"mass": (2.0, 3.0)}, space=FLYER, apply=apply, read=read)


def test_a_world_that_reset_builds_gets_its_values_afterwards() -> None:
    env = flyer()
    for seed in (1, None):
        _, info = env.reset(seed=seed)
        assert env.unwrapped.world["mass"] == np.float32(info["params"]["mass"])


def test_values_that_the_world_does_not_have_after_reset_are_refused() -> None:
    with pytest.raises(RandomizationError, match="mass"):
        flyer(apply=lambda env, values: None).reset(seed=1)
    with pytest.raises(RandomizationError, match="mass"):
        flyer(read=lambda env: {}).reset(seed=1)
    with pytest.raises(RandomizationError, match="mass"):
        flyer(read=lambda env: None).reset(seed=1)  # it forgot to return
    assert flyer(apply=lambda env, values: None, read=None).reset(seed=1)  # nobody knows


def test_the_world_may_be_compared_with_attributes_set_before_reset() -> None:
    env = RandomizeAttributes(gym.make("CartPole-v1"), CART_POLE, read=lambda env: {**vars(env), "length": 0.5})
    with pytest.raises(RandomizationError, match="sets length, too"):
        env.reset(seed=1)
