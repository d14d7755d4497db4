"""Tasks of robots with a memory, parameters of their own, actions that are no controls, and terms of rewards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import pytest

import gym_dr
from gym_dr.envs.mujoco.engine import mujoco_batch
from gym_dr.errors import RandomizationError, RandomizationWarning, RobotError, UnknownNameError
from tests.envs.mujoco.own_robots import legs
from tests.registered import forgotten_afterwards

pytestmark = pytest.mark.skipif(
    not hasattr(mujoco.MjModel, "actuator_history"), reason="MuJoCo before 3.5 has no delays, which this robot has"
)

OWN = "tests/Legs-v0"
STEPS = 30  # more than two episodes


@pytest.fixture(autouse=True)
def own_ids() -> Iterator[None]:
    with forgotten_afterwards():
        yield


def register(**changes: Any) -> str:
    gym_dr.register_robot(OWN, **{**legs.TASK, **changes})
    return OWN


def random_actions(count: int = 3) -> Any:
    return np.random.default_rng(0).uniform(-1, 1, (STEPS, count, 2)).astype(np.float32)


def played(envs: Any, actions: Any) -> list[Any]:
    """Observations, rewards, terms and what the critic sees, step after step."""
    found = []
    for each in actions:
        observations, rewards, _, _, info = envs.step(each)
        terms = [np.where(info[f"_{name}"], info[name], 0.0) if name in info else rewards * 0 for name in TERMS]
        found.append(np.concatenate([observations, rewards[:, None], *(t[:, None] for t in terms), info["critic"]], 1))
    return found


TERMS = ("reward_track", "reward_effort")


@pytest.mark.parametrize(
    "changes",
    [{}, {"action": legs.torque, "substep_action": True}, {"fields": ["cfrc_ext", "time"]}],
    ids=["once a step", "at each simulation step", "with contact forces and the time"],
)
def test_native_equals_sync_in_memory_random_numbers_terms_and_the_critics_observations(changes: Any) -> None:
    env_id, actions = register(**changes), random_actions()
    results = []
    for mode in ("sync", None):
        envs = gym.make_vec(env_id, 3, vectorization_mode=mode)
        first, info = envs.reset(seed=5)
        results.append([first, info["critic"], *played(envs, actions)])
        envs.close()
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_random_numbers_of_a_task_do_not_depend_on_how_many_environments_there_are() -> None:
    env_id = register()
    few, many = (gym.make_vec(env_id, count) for count in (1, 3))
    actions = random_actions()
    few.reset(seed=6)
    many.reset(seed=5)
    for alone, among in zip(played(few, actions[:, 1:2]), played(many, actions), strict=True):
        np.testing.assert_allclose(alone[0], among[1], rtol=0, atol=1e-9)


def test_episodes_with_the_same_draw_get_other_random_numbers() -> None:
    envs = gym.make_vec(register(), 2)
    envs.hold_draws(np.array([7, 8], np.uint64), np.zeros(2, np.int64))
    (first, one), (second, two) = envs.reset(seed=1), envs.reset()
    np.testing.assert_array_equal(one["params"]["fastest"], two["params"]["fastest"])
    assert (first[:, 2] != second[:, 2]).all()  # the command


def test_a_state_holds_the_memory() -> None:
    env_id, actions = register(), random_actions()
    envs, other = gym.make_vec(env_id, 3), gym.make_vec(env_id, 3)
    envs.reset(seed=1)
    other.reset(seed=9)
    played(envs, actions[:7])
    other.unwrapped.set_state(envs.unwrapped.get_state())
    for here, there in zip(played(envs, actions), played(other, actions), strict=True):
        np.testing.assert_array_equal(here, there)


def test_the_reward_is_the_sum_of_its_terms() -> None:
    envs = gym.make_vec(register(), 3)
    envs.reset(seed=1)
    _, rewards, _, _, info = envs.step(random_actions()[0])
    np.testing.assert_allclose(rewards, info["reward_track"] + info["reward_effort"])


def test_a_parameter_of_the_task_varies_like_those_of_the_model_and_the_task_sees_it() -> None:
    envs = gym.make_vec(register(), 3, randomization={"fastest": (0.5, 1.5)})
    _, info = envs.reset(seed=1)
    drawn = info["params"]["fastest"]
    assert ((drawn >= 0.5) & (drawn <= 1.5)).all()
    observations, info = envs.reset(options={"params": {"fastest": 0.0}})
    assert (observations[:, 2] == 0).all()
    assert (info["params"]["fastest"] == 0).all()
    env = gym.make(OWN, randomization="none")
    env.reset(seed=1, options={"params": {"fastest": 0.0}})
    assert env.get_wrapper_attr("memory")["command"] == 0


def test_an_episode_begins_at_the_keyframe_whose_controls_have_always_acted() -> None:
    """With a delay, the controls of the keyframe act at first: 0.2, where the joints are, so that they stay there."""
    if mujoco_batch is None:
        pytest.skip("delays of actuators need a later MuJoCo")
    delayed = {"actuator_delay:*": gym_dr.Constant(0.02), "gravity.z": gym_dr.Constant(0.0)}
    still = lambda state, rng: (state.qpos, state.qvel)  # noqa: E731
    for mode in ("sync", None):
        envs = gym.make_vec(register(reset=still), 1, vectorization_mode=mode, randomization=delayed)
        envs.reset(seed=1)
        observations, *_ = envs.step(np.ones((1, 2), np.float32))
        np.testing.assert_allclose(observations[0, :2], 0.2, atol=1e-9)
        observations, *_ = envs.step(np.ones((1, 2), np.float32))
        assert (observations[0, :2] > 0.2001).all()


def test_the_mirror_joins_the_parts_of_the_observation() -> None:
    """Joints change places, the spin about the vertical changes its sign, the command stays."""
    for mode in ("sync", None):
        envs: Any = gym.make_vec(register(), 2, vectorization_mode=mode).unwrapped
        mirror = envs.mirror if mode is None else envs.get_attr("mirror")[0]
        assert mirror.observation_places.tolist() == [1, 0, 2, 3]
        assert mirror.observation_signs.tolist() == [1, 1, 1, -1]
        assert mirror.action_places.tolist() == [1, 0]
        assert mirror.action_signs.tolist() == [1, 1]


def test_parts_of_the_observation_are_sensors() -> None:
    envs = gym_dr.DisturbVector(gym.make_vec(register(), 2), {"obs_hide:joints": 1})
    observations, _ = envs.reset(seed=1)
    assert (observations[:, :2] == 0).all()
    assert (observations[:, 2:] != 0).all()


def test_disturbances_of_a_preset_are_left_to_the_wrapper_that_can() -> None:
    envs = gym.make_vec(register(), 2)
    assert list(envs.unwrapped.randomization) == ["body_mass:trunk", "fastest"]  # type: ignore[attr-defined]
    assert list(gym_dr.DisturbVector(envs, "default").disturbances) == ["obs_noise"]
    assert list(gym_dr.Disturb(gym.make(OWN), "default").disturbances) == ["obs_noise"]


@pytest.mark.parametrize("source", ["text", "path", "spec", "function", "compiled"])
def test_a_model_is_a_file_text_a_spec_or_a_function(tmp_path: Path, source: str) -> None:
    (tmp_path / "legs.xml").write_text(legs.XML)
    model: Any = {
        "text": legs.XML,
        "path": tmp_path / "legs.xml",
        "spec": mujoco.MjSpec.from_string(legs.XML),
        "function": lambda: mujoco.MjSpec.from_string(legs.XML),
        "compiled": lambda: mujoco.MjModel.from_xml_string(legs.XML),
    }[source]
    assert gym.make(register(model=model, actuator_history=None)).reset(seed=1)[0].shape == (4,)


def test_another_model_takes_the_place_of_the_robots_own_or_goes_to_its_function() -> None:
    heavier = legs.XML.replace('mass="1"', 'mass="2"')
    for model in (legs.XML, lambda text=legs.XML: mujoco.MjSpec.from_string(text)):
        env_id = register(model=model, presets={"default": {}})
        made = gym.make(env_id, model=heavier).unwrapped, gym.make(env_id).unwrapped
        assert [env.model.body("trunk").mass[0] for env in made] == [2.0, 1.0]  # type: ignore[attr-defined]
        native: Any = gym.make_vec(env_id, 2, model=heavier).unwrapped
        assert native.param_space["body_mass:trunk"].nominal == 2.0


def speed(state: Any, rng: Any) -> None:
    state.memory["clock"][:] = np.square(state.qvel).sum(axis=1) * np.where(abs(state.qvel[:, 0]) < 1e6, 1, np.nan)


@pytest.mark.parametrize("mode", ["sync", None])
def test_a_simulation_that_diverges_ends_its_episode_with_finite_memory_and_critic(mode: Any) -> None:
    env_id = register(update=speed, critic=lambda state: np.where(abs(state.qvel[:, :1]) < 1e6, 1, np.nan))
    kick = {"push_speed": gym_dr.Constant(1e12), "push_interval": 3}
    envs = gym_dr.DisturbVector(gym.make_vec(env_id, 2, vectorization_mode=mode), kick)
    envs.reset(seed=1)
    with pytest.warns(RandomizationWarning, match="diverged"):
        truncations = [envs.step(each)[3] for each in random_actions(2)[:5]]
    assert np.any(truncations)


def terrain(state: Any, rng: Any) -> Any:
    """Begins where the height field has steps of the drawn height."""
    qpos = state.qpos.copy()
    qpos[:, 0] = -3.0 + 2.0 * state.params["place"]
    return qpos, state.qvel


def test_a_parameter_chooses_the_place_on_a_height_field() -> None:
    rows = " ".join(str(k // 10 % 2 * k // 20) for k in range(40)) + " "
    field = (
        f'<asset><hfield name="steps" size="4 4 1 .1" nrow="2" ncol="40" elevation="{rows * 2}"/></asset><worldbody>'
    )
    ground = '<geom name="floor" type="hfield" hfield="steps" pos="0 0 -1"/>'
    model = legs.XML.replace("<worldbody>", field).replace('<geom name="floor" type="plane" size="5 5 .1"/>', ground)
    place = gym_dr.Param(name="place", nominal=0, low=0, high=3, kind="int", doc="which steps the robot begins on")
    parameters = [*legs.TASK["parameters"], place]
    env_id = register(model=model, parameters=parameters, reset=terrain)
    envs: Any = gym.make_vec(env_id, 16, randomization={"place": gym_dr.Integer(0, 3)})
    _, info = envs.reset(seed=1)
    places = info["params"]["place"]
    assert set(places) == {0, 1, 2, 3}
    np.testing.assert_array_equal(envs.unwrapped._backend.engine.qpos[:, 0], -3.0 + 2.0 * places)


def forgetful(state: Any, rng: Any) -> None:
    state.memory["clock"][:] = np.random.random()  # noqa: NPY002  which is the mistake


def spoiled(state: Any, rng: Any) -> None:
    state.memory["clock"][:] = np.nan


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"update": forgetful}, "expected update .* rows that depend only on their own simulation"),
    ({"update": spoiled}, "expected finite numbers in memory 'clock'"),
    ({"update": lambda state: None}, r"expected update\(state, rng\)"),
    ({"action": lambda state: state.action[:, :1]}, r"expected action .* shape \(3, 2\)|\(1, 2\)"),
    ({"action": lambda state: state.action * np.nan}, "expected action .* numbers, got NaN"),
    ({"critic": lambda state: state.qvel[0]}, "expected critic .* shape"),
    ({"observe": lambda state: {"joints": state.qpos[0, 7:]}}, "expected observe .* parts of 3 rows"),
    ({"reward": lambda before, after: {"track": 0.0}}, r"expected reward .* shape"),
    ({"mirror": {"leg": legs.SIDES}}, "mirror: expected parts .* joints, command, spin, action, got 'leg'"),
    ({"mirror": {"joints": gym_dr.Mirror(places=[0, 0])}}, "mirror: expected 2 places and signs for 'joints'"),
    ({"mirror": {"action": gym_dr.Mirror(signs=[1])}}, "mirror: expected 2 places and signs for 'action'"),
    ({"steer": {"speed": ((0,), (1,))}}, "steer: expected .* got 'speed'"),
    ({"steer": {"command": ((0, 0), (1, 1))}}, "steer: expected .* of its shape"),
    ({"model": "<mujoco><worldbody/>"}, "cannot be compiled"),
    ({"model": lambda: mujoco.MjSpec().of_a_later_version}, "cannot be compiled with MuJoCo"),
    ({"model": lambda: "nothing.xml"}, "cannot be compiled"),
    ({"model": lambda: mujoco.MjModel.from_xml_string(legs.XML)}, "expected an MjSpec, got an MjModel"),
    ({"model": lambda: 3}, "expected model to be a file, XML, an MjSpec or an MjModel, got 3"),
]


def made_and_stepped(**changes: Any) -> None:
    envs = gym.make_vec(register(**changes), 2)
    envs.reset(seed=1)
    envs.step(random_actions(2)[0])


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_what_is_wrong_with_a_task_is_said_with_the_robots_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RobotError, match=message) as raised:
        made_and_stepped(**changes)
    assert OWN in str(raised.value)


def test_unknown_keyframes_and_names_of_parameters_that_fields_have_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"keyframe of robot 'tests/Legs-v0'.*home"):
        gym.make(register(keyframe="hom"))
    with pytest.raises(RandomizationError, match="Parameter 'gravity'"):
        gym.make(register(parameters=[gym_dr.Param(name="gravity", nominal=0, low=0, high=1)]))


def test_memory_is_read_only_where_a_task_may_not_write() -> None:
    def observe(state: Any) -> Any:
        state.memory["clock"][:] = 0.0
        return legs.observe(state)

    with pytest.raises(ValueError, match="read-only"):
        gym.make(register(observe=observe))


@pytest.mark.parametrize("native", [False, True])
def test_the_state_before_a_step_has_the_action_before_it(native: bool) -> None:
    env_id = register(reward=lambda before, after: {"old": before.action[:, 0], "new": after.action[:, 0]})
    envs: Any = gym.make_vec(env_id, 1, vectorization_mode=None if native else "sync")
    envs.reset(seed=1)
    infos = [envs.step(np.full((1, 2), value, np.float32))[-1] for value in (0.25, 0.5)]
    assert [(float(info["reward_old"][0]), float(info["reward_new"][0])) for info in infos] == [(0, 0.25), (0.25, 0.5)]
