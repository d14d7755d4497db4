"""The Box2D environment against Gymnasium's own, and against itself in other forms."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.box2d import lunar_lander as stock
from gymnasium.utils.env_checker import check_env

import gym_dr
from gym_dr.envs.box2d.lunar_lander.env import LunarLanderDR
from gym_dr.errors import EnvStateError, InvalidActionError, RandomizationError, UnknownNameError

IDS = ("gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3")


def play(env: gym.Env[Any, Any], seed: int, act: Callable[[Any, int], Any], steps: int = 600) -> list[tuple[Any, ...]]:
    """Plays one episode; returns every observation, reward and flag as comparable values."""
    observation, _ = env.reset(seed=seed)
    rows: list[tuple[Any, ...]] = [(observation.tobytes(), 0.0, False, False)]
    for t in range(steps):
        observation, reward, terminated, truncated, _ = env.step(act(observation, t))
        rows.append((observation.tobytes(), float(reward), terminated, truncated))
        if terminated or truncated:
            break
    return rows


def random_actions(seed: int, continuous: bool) -> Callable[[Any, int], Any]:
    rng = np.random.default_rng(seed)
    if continuous:
        return lambda _observation, _t: rng.uniform(-1.5, 1.5, 2).astype(np.float32)  # beyond the bounds too
    return lambda _observation, _t: int(rng.integers(4))


def heuristic_actions(env: Any) -> Callable[[Any, int], Any]:
    def act(observation: Any, _t: int) -> Any:
        action = stock.heuristic(env, observation)
        return action.astype(np.float32) if env.unwrapped.continuous else action

    return act


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_nominal_episodes_equal_gymnasiums_bit_for_bit(continuous: bool, render_mode: str | None) -> None:
    theirs = stock.LunarLander(continuous=continuous, render_mode=render_mode)
    ours = LunarLanderDR(continuous=continuous, render_mode=render_mode, randomization="none")
    for seed in range(6 if render_mode is None else 2):
        if seed % 2:
            assert play(ours, seed, heuristic_actions(ours)) == play(theirs, seed, heuristic_actions(theirs))
        else:
            ours_rows = play(ours, seed, random_actions(seed, continuous))
            assert ours_rows == play(theirs, seed, random_actions(seed, continuous))


def test_episodes_after_the_first_equal_gymnasiums_too() -> None:
    # resets without a seed go on with the generator; no draw of ours may take numbers out of it
    theirs, ours = stock.LunarLander(), LunarLanderDR(randomization="none")
    assert (theirs.reset(seed=5)[0] == ours.reset(seed=5)[0]).all()
    for _ in range(5):
        assert (theirs.reset()[0] == ours.reset()[0]).all()
        for action in (0, 1, 2, 3):
            assert (theirs.step(action)[0] == ours.step(action)[0]).all()


@pytest.mark.parametrize("continuous", [False, True])
def test_wind_and_gravity_equal_gymnasiums_keywords(continuous: bool) -> None:
    values = {"gravity": -7.25, "enable_wind": True, "wind_power": 17.0, "turbulence_power": 0.75}
    theirs = stock.LunarLander(continuous=continuous, **values)
    ours = LunarLanderDR(continuous=continuous, randomization=values)
    for seed in range(4):
        assert play(ours, seed, heuristic_actions(ours)) == play(theirs, seed, heuristic_actions(theirs))


def test_engines_legs_and_push_equal_gymnasium_with_other_module_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "MAIN_ENGINE_POWER", 15.5)
    monkeypatch.setattr(stock, "SIDE_ENGINE_POWER", 0.9)
    monkeypatch.setattr(stock, "INITIAL_RANDOM", 1500.0)
    monkeypatch.setattr(stock, "LEG_SPRING_TORQUE", 20.0)
    values = {
        "main_engine_power": 15.5,
        "side_engine_power": 0.9,
        "initial_random": 1500.0,
        "leg_spring_torque": 20.0,
    }
    theirs, ours = stock.LunarLander(), LunarLanderDR(randomization=values)
    for seed in range(4):
        assert play(ours, seed, heuristic_actions(ours)) == play(theirs, seed, heuristic_actions(theirs))


def test_density_and_friction_reach_the_bodies() -> None:
    env = LunarLanderDR(randomization={"lander_density": 10.0, "ground_friction": 0.7})
    env.reset(seed=0)
    nominal = LunarLanderDR(randomization="none")
    nominal.reset(seed=0)
    # twice the density is twice the mass and inertia of the hull (derived by Box2D, float32); the legs keep theirs
    assert env.lander.mass == pytest.approx(2 * nominal.lander.mass, rel=1e-6)
    assert env.lander.inertia == pytest.approx(2 * nominal.lander.inertia, rel=1e-6)
    assert [leg.mass for leg in env.legs] == [leg.mass for leg in nominal.legs]
    # the first fixture is the base line, which is no terrain
    assert [f.friction for f in env.moon.fixtures[1:]] == pytest.approx([0.7] * 10)
    assert env.moon.fixtures[0].friction == pytest.approx(0.2)


@pytest.mark.parametrize("name", sorted(LunarLanderDR().param_space))
def test_every_parameter_changes_the_episode(name: str) -> None:
    param = LunarLanderDR().param_space[name]
    changed = 1.0 if param.kind == "bool" else 0.5 * (param.nominal + param.high)
    base: dict[str, float] = {"enable_wind": 1.0} if name in ("wind_power", "turbulence_power") else {}
    without, with_change = LunarLanderDR(randomization=base), LunarLanderDR(randomization={**base, name: changed})
    assert any(
        play(without, seed, heuristic_actions(without)) != play(with_change, seed, heuristic_actions(with_change))
        for seed in range(3)
    )


def test_other_instances_and_gymnasiums_module_keep_their_physics() -> None:
    before = {key: value for key, value in vars(stock).items() if key.isupper()}
    reference = play(stock.LunarLander(), 3, random_actions(3, False))
    extreme, nominal = LunarLanderDR(randomization="extreme"), LunarLanderDR(randomization="none")
    extreme.reset(seed=1)
    with pytest.raises(InvalidActionError):
        extreme.step(7)
    assert {key: value for key, value in vars(stock).items() if key.isupper()} == before
    assert play(nominal, 3, random_actions(3, False)) == reference
    assert play(stock.LunarLander(), 3, random_actions(3, False)) == reference


def test_a_refused_reset_leaves_the_episode_as_it_was() -> None:
    env, twin = LunarLanderDR(), LunarLanderDR()
    for e in (env, twin):
        e.reset(seed=4)
    with pytest.raises(RandomizationError, match="gravity"):
        env.reset(seed=9, options={"params": {"wind_power": 3.0, "gravity": 4.0}})
    assert env.params == twin.params
    assert (env.step(2)[0] == twin.step(2)[0]).all()


@pytest.mark.parametrize("env_id", IDS)
def test_spaces_limit_and_threshold_are_gymnasiums(env_id: str) -> None:
    ours = gym.make(env_id)
    theirs = gym.make(env_id.replace("gym_dr/", "").replace("DR", ""))
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.spec is not None
    assert theirs.spec is not None
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps == 1000
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold == 200


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_checker_passes_without_a_warning(env_id: str) -> None:
    # warnings are errors in this suite
    env = gym.make(env_id, render_mode="rgb_array")
    check_env(env.unwrapped)
    env.close()


def test_rgb_array_renders_a_picture() -> None:
    env = gym.make(IDS[0], render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(5):
        env.step(2)
    frame: Any = env.render()
    assert frame.shape == (400, 600, 3)
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 3
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_spec_and_pickle_give_the_same_environment_back(env_id: str) -> None:
    env = gym.make(env_id, randomization={"gravity": gym_dr.Uniform(-11, -9)})
    assert env.spec is not None
    for copy in (gym.make(env.spec), pickle.loads(pickle.dumps(env))):
        assert copy.spec == env.spec
        assert copy.unwrapped.randomization == env.unwrapped.randomization  # type: ignore[attr-defined]
        observation, info = copy.reset(seed=8)
        expected, expected_info = env.reset(seed=8)
        assert (observation == expected).all()
        assert info == expected_info


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_spec_gives_the_same_environment_back(mode: str) -> None:
    envs = gym.make_vec(IDS[0], 2, vectorization_mode=mode, randomization="wide")
    assert envs.spec is not None
    copy = gym.make_vec(envs.spec)
    assert copy.num_envs == 2
    assert type(copy) is type(envs)
    assert (copy.reset(seed=1)[0] == envs.reset(seed=1)[0]).all()
    envs.close()
    copy.close()


def test_info_tells_the_values_in_force_at_every_step() -> None:
    env = gym.make(IDS[0])
    _, info = env.reset(seed=0)
    assert set(info["params"]) == set(env.unwrapped.param_space)  # type: ignore[attr-defined]
    assert info["draw_index"] == 0
    drawn = dict(info["params"])
    info["params"]["gravity"] = 99.0  # a caller's change must not reach the environment
    assert env.step(0)[4]["params"] == drawn
    _, info = env.reset()
    assert info["draw_index"] == 1
    assert info["params"]["gravity"] != drawn["gravity"]


def test_exact_values_hold_for_one_episode_and_replay_a_draw() -> None:
    env = LunarLanderDR()
    env.reset(seed=6)
    recorded = env.reset()[1]["params"]
    for other in (LunarLanderDR(), LunarLanderDR(randomization="none")):
        _, info = other.reset(seed=1, options={"params": recorded})
        assert info["params"] == recorded
        assert other.reset()[1]["params"] != recorded


def test_set_params_holds_until_it_is_handed_back() -> None:
    env = LunarLanderDR()
    env.set_params({"gravity": -3.7})
    gravities = [env.reset(seed=1)[1]["params"]["gravity"], env.reset()[1]["params"]["gravity"]]
    assert gravities == [-3.7, -3.7]
    env.set_params(None)
    assert env.reset()[1]["params"]["gravity"] != -3.7


@pytest.mark.parametrize("action", [4, -1, 1.5, "up", None, np.array([0, 1]), float("nan")])
def test_impossible_discrete_actions_are_refused(action: object) -> None:
    env = LunarLanderDR()
    env.reset(seed=0)
    with pytest.raises(InvalidActionError, match="Expected"):
        env.step(action)


@pytest.mark.parametrize("action", [0, [0.5], [0.1, np.nan], [np.inf, 0.0], "ab", None, [[0.0, 0.0]]])
def test_impossible_continuous_actions_are_refused(action: object) -> None:
    env = LunarLanderDR(continuous=True)
    env.reset(seed=0)
    with pytest.raises(InvalidActionError, match=r"Expected (finite actions|actions that are numbers of shape \(2,\))"):
        env.step(action)


def test_a_refused_action_leaves_the_episode_as_it_was() -> None:
    env, twin = LunarLanderDR(), LunarLanderDR()
    for e in (env, twin):
        e.reset(seed=4)
    with pytest.raises(InvalidActionError):
        env.step(17)
    assert (env.step(1)[0] == twin.step(1)[0]).all()


def test_step_before_reset_is_refused() -> None:
    with pytest.raises(EnvStateError, match="reset"):
        LunarLanderDR().step(0)


def test_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'gravity'"):
        gym.make(IDS[0], randomization={"gravty": -9.0})


def test_impossible_range_names_parameter_and_bounds() -> None:
    with pytest.raises(RandomizationError, match=r"gravity.*from -12 to 0 m/s\^2.*-20"):
        gym.make(IDS[0], randomization={"gravity": (-20, -5)})
