"""Gymnasium's own keywords are constants: the environments equal Gymnasium's, and presets do not vary what they set."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import load_env_creator

from gym_dr.envs.family import ENVIRONMENTS, EnvId, reference_class
from gym_dr.errors import RandomizationError
from gym_dr.testing.playing import MODES, Mode

# other values of Gymnasium's keywords
OTHER: dict[str, Any] = {
    "gravity": -5.0,
    "enable_wind": True,
    "wind_power": 3.0,
    "turbulence_power": 0.5,
    "g": 9.0,
    "goal_velocity": 0.02,
    "sutton_barto_reward": True,
}
FIXED = {"self", "render_mode", "continuous", "hardcore"}  # the last two by the id
IDS = [entry.id for entry in ENVIRONMENTS.values() if entry.reference and "mujoco" not in entry.entry_point]
LANDER = "gym_dr/LunarLanderDR-v3"


def keywords_of(env_id: str) -> list[str]:
    parameters = inspect.signature(reference_class(ENVIRONMENTS.get(env_id).reference).__init__).parameters
    return [name for name in parameters if name not in FIXED]


def play(env: gym.Env[Any, Any]) -> list[Any]:
    env.action_space.seed(0)
    rows: list[Any] = [env.reset(seed=7)[0]]
    for _ in range(50):
        rows.append(env.step(env.action_space.sample())[:4])
        if rows[-1][2]:
            break
    return rows


@pytest.mark.parametrize("env_id", IDS)
def test_with_each_keyword_a_nominal_episode_equals_gymnasiums(env_id: str) -> None:
    if "box2d" in ENVIRONMENTS.get(env_id).entry_point:
        pytest.importorskip("Box2D")
    for given in (
        {},
        *({name: OTHER[name]} for name in keywords_of(env_id)),
        {n: OTHER[n] for n in keywords_of(env_id)},
    ):
        ours = play(gym.make(env_id, randomization="none", **given))
        theirs = play(gym.make(ENVIRONMENTS.get(env_id).reference, **given))
        for own, stock in zip(ours, theirs, strict=True):
            for left, right in zip(own, stock, strict=True):
                assert np.array_equal(left, right), given


@pytest.mark.parametrize("name", MODES)
def test_a_keyword_is_a_constant_that_the_default_draws_leave_alone(name: str) -> None:
    with Mode(env_id=LANDER, name=name).opened(gravity=-5.0) as env:
        for seed in (1, 2):
            params = env.reset(seed=seed)[1]["params"]
            assert np.all(np.asarray(params["gravity"]) == -5.0)
        assert np.all(np.asarray(params["wind_power"]) != 15.0)  # still drawn


def test_a_keyword_turns_no_switch_on_and_holds_its_own() -> None:
    _, info = gym.make(LANDER, wind_power=3.0, randomization="none").reset(seed=1)
    assert info["params"]["enable_wind"] == 0.0
    with pytest.raises(RandomizationError, match="'wind_power' has no effect here: it needs enable_wind = 1"):
        gym.make(LANDER, enable_wind=False, randomization={"wind_power": (0, 20)})


def test_a_rule_that_would_replace_a_keyword_is_refused() -> None:
    with pytest.raises(RandomizationError, match=r"expected a keyword or a rule, got gravity=-5 and Uniform\(-6.0, -4"):
        gym.make_vec(LANDER, num_envs=2, gravity=-5.0, randomization={"gravity": (-6, -4)})
    envs: Any = gym.make_vec(LANDER, num_envs=2, gravity=-5.0, randomization={"gravity": "scale:uniform:0.8:1.2"})
    gravity = envs.reset(seed=1)[1]["params"]["gravity"]
    assert ((gravity > -6.0) & (gravity < -4.0)).all()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"gravty": -5.0}, TypeError, r"keyword argument 'gravty'\. Did you mean 'gravity'\? Known: gravity"),
        ({"randomisation": "none"}, TypeError, r"keyword argument 'randomisation'\. Did you mean 'randomization'\?"),
        ({"main_engine_power": 9.0}, TypeError, r"Use randomization={'main_engine_power': ...}"),
        ({"gravity": 5.0}, RandomizationError, "from -12 to 0"),
        ({"enable_wind": 2}, RandomizationError, "0 or 1"),
    ],
)
def test_unknown_keywords_and_impossible_constants_are_refused_with_what_to_do(
    given: dict[str, Any], error: type[Exception], message: str
) -> None:
    for make in (gym.make, gym.make_vec):
        with pytest.raises(error, match=message):
            make(LANDER, **given)


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.id) for entry in ENVIRONMENTS.values()])
def test_other_trainers_recognize_an_environment_by_what_they_read(entry: EnvId) -> None:
    # TorchRL tries its keyword and goes on at Python's words; skrl takes direct bases of module gym... for old Gym's
    for name in MODES[::3]:
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
            Mode(env_id=entry.id, name=name).make(frameskip=1)
    vector = load_env_creator(str(entry.vector_entry_point))
    assert any(base.__module__.startswith("gymnasium.") for base in cast(type, vector).__bases__)
    with contextlib.closing(gym.make(entry.id).unwrapped) as env:
        assert any(base.__module__.startswith("gymnasium.") for base in type(env).__bases__)
