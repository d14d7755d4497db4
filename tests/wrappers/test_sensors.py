"""Sensors that fail: which there are, what they read, and how they are named everywhere."""

from __future__ import annotations

import itertools
import pickle
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st

from gym_dr import Bernoulli, Disturb, DisturbVector, Randomization, VectorParams
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import RandomizationError, UnknownNameError
from gym_dr.randomization.presets import resolve
from gym_dr.runs.environments import make_vector_env, param_space_of, wrap_for_policy
from gym_dr.wrappers.sensors import SensorMap, sensor_param, sensors_of
from tests.strategies import few
from tests.wrappers.test_disturb import Tape

NEXT, SAME, OFF = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
CART_POLE, HOPPER, HUMANOID = "gym_dr/CartPoleDR-v1", "gym_dr/HopperDR-v5", "gym_dr/HumanoidDR-v5"


class Clock(Tape):
    """Observes 10 x episode + step, and 100 more than that; both are above 5. Episodes of ``length`` steps."""

    observation_space = gym.spaces.Box(5, 1e6, (2,))
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def observe(self) -> Any:
        return np.array([0, 100], np.float32) + super().observe()


def clocks(mode: AutoresetMode, *lengths: int) -> Any:
    return SyncVectorEnv([partial(Clock, length) for length in lengths], autoreset_mode=mode)


def seen(envs: Any, steps: int) -> list[Any]:
    """The observations of some steps, [final] ones included, ``(num_envs, 2)``."""
    found = [envs.reset(seed=1)[0]]
    for _ in range(steps):
        result = envs.step(np.zeros(envs.num_envs, np.int64))
        found += [np.stack(result[-1]["final_obs"])] if "final_obs" in result[-1] else []
        found.append(result[0])
        done = result[2] | result[3]
        if envs.metadata["autoreset_mode"] == OFF and done.any():
            found.append(envs.reset(options={"reset_mask": done})[0])
    return found


# ---- what sensors read -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [NEXT, SAME, OFF])
def test_where_every_observation_is_lost_the_first_of_each_episode_stays(mode: AutoresetMode) -> None:
    rows = [row[0].tolist() for row in seen(DisturbVector(clocks(mode, 4), {"obs_drop": 1.0}), 10)]
    assert {tuple(row) for row in rows} == {(10, 110), (20, 120), (30, 130)}
    assert rows == sorted(rows)


def test_a_lost_reading_is_the_last_that_arrived_and_as_often_as_asked_for() -> None:
    found = np.array([row[0] for row in seen(DisturbVector(clocks(NEXT, 3000), {"obs_drop:1": 0.25}), 2000)])
    assert (found[:, 0] == 10 + np.arange(2001)).all()
    stale = found[:, 1] != found[:, 0] + 100
    assert (found[1:, 1][stale[1:]] == found[:-1, 1][stale[1:]]).all()
    assert 420 < stale.sum() < 580  # 500 expected, standard deviation 19


def test_the_whole_observation_is_lost_at_once_and_sensors_are_on_their_own() -> None:
    whole = np.array([row[0] for row in seen(DisturbVector(clocks(NEXT, 1000), {"obs_drop": 0.5}), 400)])
    assert (whole[:, 1] == whole[:, 0] + 100).all()
    alone = np.array([row[0] for row in seen(DisturbVector(clocks(NEXT, 1000), {"obs_drop:*": 0.5}), 400)])
    lost = alone != alone[:, :1] * 0 + 10 + np.arange(401)[:, None] + [0, 100]
    assert 0.1 < (lost[:, 0] & lost[:, 1]).mean() < 0.4  # a quarter


def test_a_sensor_fails_in_some_episodes_and_throughout() -> None:
    envs = DisturbVector(clocks(NEXT, *[3] * 200), {"obs_hide:0": Bernoulli(0.3)})
    _, info = envs.reset(seed=1)
    fails = info["params"]["obs_hide:0"]
    assert 40 < fails.sum() < 80
    for _ in range(3):
        observations = envs.step(np.zeros(200, np.int64))[0]
        np.testing.assert_array_equal(observations[:, 0] == 0, fails == 1)
    again = envs.step(np.zeros(200, np.int64))[-1]["params"]["obs_hide:0"]  # new episodes
    assert 0 < (again != fails).sum() < 200


def test_several_numbers_may_be_one_sensor() -> None:
    envs = DisturbVector(gym.make_vec("gym_dr/BipedalWalkerDR-v3", 2), {"obs_hide:lidar": 1})
    observations, _ = envs.reset(seed=1)
    assert (observations[:, -10:] == 0).all()
    assert (observations[:, :14] != 0).any()


def test_a_sensor_reads_too_much_for_a_whole_episode_in_its_own_unit() -> None:
    rules = {"obs_offset:*": (-2.0, 2.0), "obs_offset:cos_theta": 0.25, "obs_noise": 0.0}
    env = Disturb(gym.make("Pendulum-v1"), rules, obs_scale=100.0)
    twin = gym.make("Pendulum-v1")
    errors = [env.reset(seed=1)[0] - twin.reset(seed=1)[0]]
    _, info = env.reset(seed=1)
    errors += [env.step(np.zeros(1))[0] - twin.step(np.zeros(1))[0] for _ in range(3)]
    expected = [info["params"][f"obs_offset:{name}"] for name in ("cos_theta", "sin_theta", "theta_dot")]
    np.testing.assert_allclose(errors, [expected] * 4, atol=1e-6)
    assert expected[0] == 0.25
    assert len(set(expected)) == 3
    assert env.observation_space == gym.spaces.Box(-np.inf, np.inf, (3,))


def test_a_sensor_of_several_numbers_has_one_error_for_all() -> None:
    envs, twin = (gym.make_vec("gym_dr/BipedalWalkerDR-v3", 2) for _ in range(2))
    found = DisturbVector(envs, {"obs_offset:lidar": (0.1, 0.2)}).reset(seed=1)[0] - twin.reset(seed=1)[0]
    assert (found[:, :14] == 0).all()
    assert ((found[:, 14:] > 0.09) & (np.ptp(found[:, 14:], axis=1)[:, None] < 1e-6)).all()


def test_observation_spaces_contain_what_hidden_sensors_read() -> None:
    env = Disturb(Clock(), {"obs_hide:0": Bernoulli(0.5)})
    assert env.observation_space == gym.spaces.Box(np.array([0, 5], np.float32), np.float32(1e6))
    envs = DisturbVector(clocks(NEXT, 3, 3), {"obs_hide:*": 1})
    assert envs.reset(seed=1)[0] in envs.observation_space
    assert DisturbVector(clocks(NEXT, 3), {"obs_drop": 0.5}).single_observation_space == Clock.observation_space


@given(names=st.lists(st.sampled_from(["", ":0", ":1", ":2", ":3"]), unique=True, min_size=1), seed=st.integers(0, 99))
@few
def test_what_one_disturbance_does_changes_nothing_of_another(names: list[str], seed: int) -> None:
    def stale(rules: dict[str, Any]) -> Any:
        env = Disturb(gym.make("CartPole-v1"), rules)
        rows = [env.reset(seed=seed)[0], *(env.step(k % 2)[0] for k in range(8))]
        return np.array([now == before for before, now in itertools.pairwise(rows)])

    alone = [stale({f"obs_drop{name}": 0.5}) for name in names]
    np.testing.assert_array_equal(stale({f"obs_drop{name}": 0.5 for name in names}), np.logical_or.reduce(alone))


# ---- what they are called --------------------------------------------------------------------------------------------


def test_a_name_and_an_index_are_the_same_sensor() -> None:
    by_name, by_index = (
        Disturb(gym.make("CartPole-v1"), {f"obs_hide:{sensor}": 1}).reset(seed=1)[0] for sensor in ("theta_dot", "3")
    )
    np.testing.assert_array_equal(by_name, by_index)
    assert by_name[3] == 0


def test_environments_of_gymnasium_and_of_other_wrappers_have_the_names_of_ours() -> None:
    for env in (gym.make("Hopper-v5"), gym.make(HOPPER), gym.wrappers.ClipAction(gym.make(HOPPER))):
        hidden = Disturb(env, {"obs_hide:*_dot": 1})
        assert hidden.reset(seed=1)[0][5:].tolist() == [0] * 6
        assert len(hidden.disturbances) == 6
        hidden.close()


@pytest.mark.parametrize("kind", ["native", "sync", "async"])
def test_every_kind_of_vector_environment_knows_the_names(kind: str) -> None:
    envs: Any = make_vector_env(CART_POLE, 2, kind, Randomization())
    envs = envs if kind == "native" else VectorParams(envs)
    hidden = DisturbVector(envs, {"obs_hide:x": 1})
    assert hidden.reset(seed=1)[0][:, 0].tolist() == [0, 0]
    hidden.close()


def test_names_are_not_used_where_an_observation_is_another() -> None:
    longer = gym.make(HOPPER, exclude_current_positions_from_observation=False)
    with pytest.raises(UnknownNameError, match="an index from 0 to 11, got 'rootz'"):
        Disturb(longer, {"obs_hide:rootz": 1})
    assert Disturb(longer, {"obs_hide:11": 1}).reset(seed=1)[0][11] == 0


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"obs_hide:tehta": 1}, "sensor of CartPole-v1, x, x_dot.* index from 0 to 3, got 'tehta'"),
        ({"obs_drop:4": 0.1}, "index from 0 to 3, got '4'"),
        ({"obs_hide:qvel*": 1}, r"index from 0 to 3, got 'qvel\*'"),
        ({"obs_hide": 1}, "index from 0 to 3, got ''"),
        ({"obs_hide:x": 1, "obs_hide:0": 0}, "once, got obs_hide:0 and obs_hide:x, the same one"),
        ({"obs_hide:x*": 1, "obs_hide:*t": 0, "obs_hide:*dot": 0}, "'obs_hide:.*': two patterns match it"),
        ({"obs_hide:x": 0.5}, "expected 0 or 1"),
        ({"obs_hide:x": (0, 1)}, "expected 0 or 1"),
        ({"obs_drop:x": 1.5}, "expected a value from 0 to 1"),
    ],
)
def test_what_cannot_fail_is_refused_with_what_can(rules: dict[str, Any], message: str) -> None:
    for make in (
        lambda: Disturb(gym.make("CartPole-v1"), rules),
        lambda: DisturbVector(gym.make_vec("CartPole-v1", 2), rules),
    ):
        with pytest.raises((UnknownNameError, RandomizationError), match=message):
            make()
    space = param_space_of(CART_POLE)
    assert space is not None
    with pytest.raises((UnknownNameError, RandomizationError), match=message.replace("CartPole-v1", CART_POLE)):
        resolve(rules, space)


def test_an_explicit_sensor_takes_precedence_over_a_pattern() -> None:
    sensors = SensorMap("a plane", 4, {"x": (0, 1), "y": (1, 2), "rest": (2, 4)})
    rules = Randomization({"obs_hide:*": 1, "obs_hide:1": 0, "obs_noise": 0.1})
    found = {name: rule.support(0.0)[0] for name, rule in sensors.expand(rules).items()}
    assert found == {"obs_hide:x": 1, "obs_hide:1": 0, "obs_hide:rest": 1, "obs_noise": 0.1}


def test_patterns_of_environments_without_names_match_indices() -> None:
    assert list(Disturb(Clock(), {"obs_drop:*": 0.1}).disturbances) == ["obs_drop:0", "obs_drop:1"]


@given(names=st.lists(st.text("abxy_", min_size=1, max_size=4), unique=True, min_size=1, max_size=8), data=st.data())
@few
def test_every_name_and_every_index_is_a_sensor_and_nothing_else(names: list[str], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=len(names), max_size=len(names)))
    ends = np.cumsum(sizes).tolist()
    named = {name: (end - size, end) for name, size, end in zip(names, sizes, ends, strict=True)}
    sensors = SensorMap("something", ends[-1], named)
    assert all(sensors.span(name) == span for name, span in named.items())
    assert all(sensors.span(str(k)) == (k, k + 1) for k in range(ends[-1]))
    other = data.draw(st.text().filter(lambda text: text not in names and text not in map(str, range(ends[-1]))))
    assert other not in sensors
    with pytest.raises(UnknownNameError):
        sensors.span(other)


# ---- parameters like others ------------------------------------------------------------------------------------------


def test_a_space_knows_every_sensor_and_lists_none() -> None:
    space: Any = param_space_of(HUMANOID)
    assert not [name for name in space if sensor_param(name)]
    for name in ("obs_hide:cinert", "obs_drop:347", "obs_drop:torso.z_dot"):
        assert name in space
        assert space[name] == sensor_param(name)
        assert space.in_order([name, "obs_noise", "gravity.z", "none"]) == ["gravity.z", "obs_noise", name]
    assert "obs_hide:348" not in space
    assert space.check({"obs_hide:cvel": 1}) == {"obs_hide:cvel": 1.0}
    assert space.check_vector({"obs_drop:3": [0.1, 0.2]}, 2)["obs_drop:3"].tolist() == [0.1, 0.2]
    assert pickle.loads(pickle.dumps(space)).sensors == space.sensors


@pytest.mark.parametrize("env_id", list(ENVIRONMENTS))
def test_names_are_for_the_observation_that_an_environment_has(env_id: str) -> None:
    with gym.make(env_id) as env:
        assert sensors_of(env_id) == sensors_of(env_id, env.observation_space)


def test_values_by_hand_and_cells_may_set_a_sensor_that_is_not_drawn() -> None:
    envs = wrap_for_policy(gym.make_vec(CART_POLE, 2), Randomization(), settable=["obs_hide:x", "obs_drop", "gravity"])
    assert envs.reset(seed=1, options={"params": {"obs_hide:x": [0, 1]}})[0][:, 0].tolist()[1] == 0
    with pytest.raises(RandomizationError, match="expected 0 or 1"):
        envs.reset(options={"params": {"obs_hide:x": 0.5}})
