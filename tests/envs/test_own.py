"""Functions that make a randomized environment become ids; `tests/contracts` checks all that ids promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr import Integer, Param, ParamSpace, RandomizeAttributes
from gym_dr.envs.own import id_of
from gym_dr.errors import ConfigError, GymDrError, RandomizationError
from gym_dr.randomization.presets import presets
from gym_dr.runs.environments import source_of
from tests.envs.slide import PARAMS, Slide, make, make_pendulum
from tests.registered import registered_anew

ID, OWN = "tests/Slide-v0", "mine/Slide-v0"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with registered_anew("tests.envs.slide_ids", monkeypatch):
        yield


def params(env: gym.Env[Any, Any], **options: Any) -> dict[str, float]:
    found: dict[str, float] = env.reset(seed=3, **options)[1]["params"]
    return found


def test_an_id_draws_what_its_function_draws_by_itself() -> None:
    gym_dr.register(OWN, make)
    assert params(gym.make(OWN)) == params(make())


def test_an_id_draws_what_its_registration_says_whatever_its_function_does() -> None:
    gym_dr.register(OWN, make, randomization={"slope": (0.2, 0.3)})
    found, again = params(gym.make(OWN)), params(gym.make(OWN, randomization={"mass": (3.0, 4.0), "slope": 0.5}))
    assert (found["mass"], 0.2 <= found["slope"] <= 0.3) == (1.0, True)
    assert (3.0 <= again["mass"] <= 4.0, again["slope"]) == (True, 0.5)
    assert params(gym.make(OWN, randomization="none")) == {"mass": 1.0, "slope": 0.1}


def test_the_physics_has_what_the_id_reports() -> None:
    gym_dr.register(OWN, make)
    env = gym.make(OWN, randomization={"slope": (0.2, 0.3)})
    found, slide = params(env), env.unwrapped
    assert isinstance(slide, Slide)
    assert {"mass": slide.mass, "slope": slide.slope} == found
    pendulum: Any = gym.make("tests/Pendulum-v0")  # its function draws gravity, the id masses
    found = params(pendulum)
    assert pendulum.unwrapped.model.opt.gravity[2] == -9.81
    assert pendulum.unwrapped.model.body("pole").mass[0] == found["body_mass:pole"]


def test_seeds_of_any_size_key_draws_and_reach_generators_that_take_only_small_ones() -> None:
    class Old(Slide):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            self.generator = np.random.RandomState(seed)  # refuses seeds from 2**32
            return super().reset(seed=seed)

    gym_dr.register(OWN, lambda: RandomizeAttributes(Old(), {"mass": (0.5, 2.0)}, space=ParamSpace("Old", PARAMS)))
    env: Any = gym.make(OWN)
    large, small = (env.reset(seed=seed)[1]["params"]["mass"] for seed in (2**40 + 3, 3))
    assert (large != small, env.unwrapped.np_random_seed) == (True, 3)
    env.reset(seed=2**40 + 3)
    assert (env.get_wrapper_attr("params")["mass"], env.np_random_seed) == (large, 2**40 + 3)


def test_a_stack_of_layers_is_drawn_by_the_id() -> None:
    frames = ParamSpace("Frames", [Param(name="frame_skip", nominal=2, low=1, high=9, kind="int")])
    gym_dr.register(OWN, lambda: RandomizeAttributes(make_pendulum(), {"frame_skip": Integer(3, 5)}, space=frames))
    assert params(gym.make(OWN)) == params(RandomizeAttributes(make_pendulum(), {"frame_skip": Integer(3, 5)}, frames))
    env: Any = gym.make(OWN, randomization={"body_mass:pole": 7.0})
    assert params(env)["body_mass:pole"] == env.unwrapped.model.body("pole").mass[0] == 7.0
    assert (env.unwrapped.frame_skip, env.unwrapped.model.opt.gravity[2]) == (2, -9.81)


def test_presets_are_the_users_and_those_of_the_environment_inside() -> None:
    gym_dr.register(OWN, make_pendulum, presets={"wide": {"gravity.z": -5.0}})
    assert params(gym.make(OWN, randomization="wide")) == {"gravity.z": -5.0}
    assert presets(OWN).keys() == {"none", "wide", "default", "random", "extreme"}
    assert [*presets(OWN)["default"]] == ["gravity.z"]
    gym_dr.register(OWN, make)  # in its place
    assert params(gym.make(OWN)) == params(make())
    assert presets(OWN).keys() == {"none", "default"}


def test_what_a_user_writes_to_an_attribute_of_gymnasiums_environment_is_pinned() -> None:
    gym_dr.register(OWN, lambda: RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.3, 0.4)}))
    env: Any = gym.make(OWN)
    assert 0.3 <= params(env)["length"] <= 0.4
    env.unwrapped.length = 0.7
    assert params(env)["length"] == env.unwrapped.length == 0.7


def test_the_spec_of_an_id_makes_all_that_its_function_made() -> None:
    spec = gym.make(ID).spec
    assert spec is not None
    assert params(gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))) == params(make())


def test_the_module_that_registers_an_id_is_its_source_not_that_of_its_function() -> None:
    gym_dr.register(OWN, make)
    assert source_of(OWN) == __name__


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"make": 3}, ConfigError),
        ({"make": lambda size: make()}, ConfigError),
        ({"id": "no id"}, ConfigError),
        ({"id": "module:my/Slide-v0"}, ConfigError),
        ({"id": 3}, ConfigError),
        ({"id": ID}, ConfigError),  # of another module
        ({"id": "CartPole-v1"}, ConfigError),
        ({"id": "gym_dr/LunarLanderDR-v3"}, ConfigError),
        ({"max_episode_steps": 0}, ConfigError),
        ({"reward_threshold": "high"}, ConfigError),
        ({"presets": 3}, RandomizationError),
        ({"presets": {"none": {}}}, RandomizationError),
        ({"randomization": "wide"}, RandomizationError),
    ],
)
def test_impossible_registrations_are_refused_and_change_nothing(
    wrong: dict[str, Any], error: type[GymDrError]
) -> None:
    before = dict(gym.registry)
    with pytest.raises(error, match="Environment"):
        gym_dr.register(**{"id": OWN, "make": make, **wrong})
    assert dict(gym.registry) == before


@pytest.mark.parametrize("given", [3, gym.make("CartPole-v1"), None])
def test_a_function_must_return_a_randomized_environment(given: Any) -> None:
    gym_dr.register(OWN, lambda: given)
    with pytest.raises(RandomizationError, match=r"Environment 'mine/Slide-v0': .*RandomizeMujoco"):
        gym.make(OWN)


def test_an_environment_that_draws_nothing_by_itself_draws_its_preset_default() -> None:
    gym_dr.register(OWN, lambda: gym_dr.RandomizeMujoco(gym.make("Hopper-v5"), None))
    assert params(gym.make(OWN)) == params(gym.make("gym_dr/HopperDR-v5"))


# ---- functions and objects in place of ids ---------------------------------------------------------------------------


def test_functions_and_objects_keep_the_id_that_they_get() -> None:
    functions, slide = [lambda: make() for _ in range(3)], make()
    gym_dr.register(OWN, functions[0])
    assert [id_of(one) for one in ("any/Id-v0", functions[0])] == ["any/Id-v0", OWN]
    found = [id_of(one) for one in (*functions, slide, make())]
    assert len(set(found)) == 5
    assert [id_of(one) for one in (*functions, slide)] == found[:4]


def test_a_function_whose_name_begins_like_that_of_another_does_not_replace_it() -> None:
    def slide1() -> Any:
        return make()

    def slide() -> Any:
        return make()

    assert id_of(slide1) != id_of(slide)


def test_an_object_is_given_back_as_it_was() -> None:
    given = make_pendulum()
    before = given.spec
    env = gym.make(id_of(given), randomization="none")
    assert params(env) == {}
    env.close()
    assert given.spec == before
    assert params(given).keys() == {"gravity.z"}
    given.step(np.zeros(1, np.float32))


@pytest.mark.parametrize("wrong", [3, gym.make("CartPole-v1"), gym.spec("CartPole-v1")])
def test_other_objects_are_refused_with_what_to_use(wrong: Any) -> None:
    with pytest.raises(RandomizationError, match=r"gym_dr\.register"):
        id_of(wrong)


def test_a_sampler_of_a_trainer_draws_in_place_of_the_function() -> None:
    envs = gym_dr.VectorParams(gym.make_vec(ID, 2, vectorization_mode="sync"))
    redrawn = gym_dr.ResampleParams(envs, rollout_steps=None)
    first = redrawn.reset(seed=5)[1]["params"]["mass"]
    assert (redrawn.reset()[1]["params"]["mass"] == first).all()
    redrawn.resample()
    assert (redrawn.reset()[1]["params"]["mass"] != first).all()
