from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import gym_dr
from gym_dr import Scale
from gym_dr.envs.family import ENVIRONMENTS, family_of, point_camera
from gym_dr.errors import ConfigError, NameClashError, RandomizationError, RobotError, UnknownNameError
from gym_dr.randomization.presets import presets
from gym_dr.runs.environments import param_space_of
from tests.cli.command import TINY, Result, gymdr, refused
from tests.envs.mujoco.names import assert_same_episodes
from tests.registered import forgotten_afterwards

OWN = "tests/Own-v0"


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten_afterwards():
        yield


@pytest.fixture
def swing() -> Any:
    """The module of a robot; it may be registered or not."""
    from tests.envs.mujoco.own_robots import swing

    return swing


def register(swing: Any, **changes: Any) -> str:
    """Registers the swing with something else about it."""
    parts = {name: getattr(swing, name) for name in ("observe", "reward", "terminated", "reset")}
    parts |= {"model": Path(swing.__file__).with_name("swing.xml"), "fields": ["site_xpos"], "frame_skip": 2}
    gym_dr.register_robot(OWN, **{**parts, **changes})
    return OWN


def body(inside: str, actuators: str = '<motor joint="j" ctrlrange="-1 1"/>', more: str = "") -> str:
    """A model of one body that slides."""
    world = f'<body name="b"><joint name="j" type="slide"/><geom name="g" size="0.1"/>{inside}</body>'
    return f"<mujoco><worldbody>{world}</worldbody><actuator>{actuators}</actuator>{more}</mujoco>"


def plain(state: Any) -> Any:
    return np.concatenate([state.qpos, state.qvel], axis=1)


def at_rest(state: Any, rng: Any) -> Any:
    return np.zeros_like(state.qpos), np.zeros_like(state.qvel)


def slider(tmp_path: Path, text: str, **changes: Any) -> str:
    """Registers a model that is text, whose observation is its state."""
    path = tmp_path / "model.xml"
    path.write_text(text)
    task = {"observe": plain, "reward": lambda before, after: after.qpos[:, 0], "reset": at_rest}
    gym_dr.register_robot(OWN, model=path, **{**task, **changes})  # type: ignore[arg-type]
    return OWN


# ---- what it is ------------------------------------------------------------------------------------------------------


def test_a_robot_has_our_presets_its_own_limit_and_a_step_of_frame_skip(swing: Any) -> None:
    own = {"heavy": {"body_mass": Scale((1.0, 2.0))}}
    env = gym.make(register(swing, max_episode_steps=7, reward_threshold=3.5, presets=own))
    assert set(presets(OWN)) == {"none", "default", "wide", "random", "extreme", "heavy"}
    assert env.spec is not None
    assert (env.spec.max_episode_steps, env.spec.reward_threshold) == (7, 3.5)
    assert family_of(f"some_module:{OWN}") is not None
    env.reset(seed=1)
    env.step(env.action_space.sample())
    assert env.unwrapped.data.time == pytest.approx(0.02)  # type: ignore[attr-defined]
    assert env.metadata["render_fps"] == 50
    _, info = gym.make(OWN, randomization="heavy").reset(seed=1)
    assert 1.0 < info["params"]["body_mass"] < 2.0


@pytest.mark.parametrize("preset", ["none", "wide", "extreme"])
def test_native_equals_sync_under_every_preset(swing: Any, preset: str) -> None:
    kwargs: Any = {"randomization": preset, "max_episode_steps": 15}
    sync = gym.make_vec(register(swing), 3, vectorization_mode="sync", **kwargs)
    native = gym.make_vec(OWN, 3, vectorization_mode="vector_entry_point", **kwargs)
    assert assert_same_episodes(sync, native, 40) >= 3


FIELDS = ("xpos", "xmat", "site_xpos", "geom_xpos", "cvel", "qacc", "qfrc_constraint", "actuator_force")
CONTACT = ("cfrc_ext", "cacc")  # which a batch does not compute, so that another engine steps


@pytest.mark.parametrize("fields", [("time", *FIELDS), ("time", *FIELDS, *CONTACT)], ids=["batch", "own data"])
def test_every_field_that_is_named_is_what_a_single_environment_has(swing: Any, fields: tuple[str, ...]) -> None:
    def observe(state: Any) -> Any:
        return np.concatenate([getattr(state, name).reshape(len(state.qpos), -1) for name in fields], axis=1)

    register(swing, observe=observe, fields=fields)
    sync = gym.make_vec(OWN, 2, vectorization_mode="sync", max_episode_steps=6)
    assert assert_same_episodes(sync, gym.make_vec(OWN, 2, max_episode_steps=6), 15) >= 2


def test_the_functions_get_states_of_before_and_after_that_they_cannot_write_to(swing: Any) -> None:
    seen: list[tuple[Any, Any]] = []

    def reward(before: Any, after: Any) -> Any:
        seen.append((before, after))
        return after.qpos[:, 0]

    envs = gym.make_vec(register(swing, reward=reward), 3, vectorization_mode="vector_entry_point")
    envs.reset(seed=1)
    envs.step(np.full((3, 1), 0.5))
    before, after = seen[-1]
    assert before.qpos.shape == after.qpos.shape == (3, 2)
    assert (after.ctrl == 0.5).all()
    assert (before.ctrl == 0.0).all()
    assert (before.qpos != after.qpos).all()
    assert after.sensor("bump").shape == (3, 1)
    with pytest.raises(ValueError, match="read-only"):
        after.qpos[:] = 0
    assert after.model.body("cart").mass == 1.0


def test_without_terminated_the_limit_alone_ends_episodes(swing: Any) -> None:
    envs = gym.make_vec(register(swing, terminated=None), 2, max_episode_steps=4)
    envs.reset(seed=1)
    ends = [envs.step(np.ones((2, 1)))[2:4] for _ in range(4)]
    assert not any(terminated.any() for terminated, _ in ends)
    assert ends[-1][1].all()


def test_registering_again_replaces_the_robot_as_a_notebook_does(swing: Any) -> None:
    register(swing)
    register(swing, reward=lambda before, after: np.full(len(after.qpos), 42.0), presets={"default": {"gravity.z": -5}})
    env = gym.make(OWN)
    _, info = env.reset(seed=1)
    assert info["params"] == {"gravity.z": -5.0}
    assert env.step(np.zeros(1))[1] == 42.0
    assert list(ENVIRONMENTS).count(OWN) == 1


def test_a_registration_that_fails_leaves_the_one_before(swing: Any) -> None:
    register(swing)
    gym_dr.add_preset(OWN, "mine", gym_dr.Randomization({"gravity.z": (-11, -9)}))
    with pytest.raises(NameClashError, match="preset 'mine of tests/Own-v0'"):
        register(swing, presets={"mine": {"gravity.z": (-12, -9)}})
    _, info = gym.make(OWN, randomization="mine").reset(seed=1)
    assert -11 < info["params"]["gravity.z"] < -9


def test_a_preset_that_is_a_randomization_keeps_its_correlation(swing: Any) -> None:
    both = ("gravity.x", "gravity.y")
    tied = gym_dr.Correlation(both, [[1.0, 0.999], [0.999, 1.0]])
    register(swing, presets={"tilted": gym_dr.Randomization(dict.fromkeys(both, (-1, 1)), correlation=tied)})
    assert presets(OWN)["tilted"].correlation == tied


@pytest.mark.parametrize(("camera", "expected"), [(None, "track"), ("side", "side")])
def test_pictures_are_drawn_from_the_camera_that_was_chosen_or_from_the_one_that_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, camera: str | None, expected: str
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "egl")  # what would be set for the rest of the process
    text = body('<camera name="side"/><camera name="track"/>')
    env: Any = gym.make(slider(tmp_path, text, camera=camera), render_mode="rgb_array")
    point_camera(env)
    inner = env.unwrapped
    assert inner.mujoco_renderer.camera_id == inner.model.camera(expected).id


def test_a_relative_path_starts_at_the_file_of_observe(swing: Any) -> None:
    register(swing, model="swing.xml")
    gym.make(OWN).reset(seed=1)
    with pytest.raises(RobotError, match=r"expected a model file, got '.*own_robots/missing.xml'"):
        register(swing, model="missing.xml")
    register(swing, observe=partial(swing.observe), model="swing.xml")


def test_a_relative_path_in_a_notebook_starts_at_the_current_folder(
    swing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"np": np, "__name__": "__main__"}
    code = "def observe(state): return np.concatenate([state.qpos, state.qvel], axis=1)"
    exec(compile(code, "/tmp/ipykernel_1/2.py", "exec"), names)
    (tmp_path / "cart.xml").write_text(Path(swing.__file__).with_name("swing.xml").read_text())
    monkeypatch.chdir(tmp_path)
    register(swing, observe=names["observe"], model="cart.xml")
    gym.make(OWN).reset(seed=1)


remembering = pytest.mark.skipif(
    not hasattr(mujoco.MjModel, "actuator_history"), reason="MuJoCo before 3.5 has no delays"
)


@remembering
def test_actuators_remember_controls_for_as_long_as_their_delays_may_be(tmp_path: Path) -> None:
    actuators = '<motor joint="j" ctrlrange="-1 1"/><motor name="late" joint="j" ctrlrange="-1 1" nsample="9"/>'

    def made(**changes: Any) -> Any:
        return gym.make_vec(slider(tmp_path, body("", actuators), **changes), 2, randomization="none")

    stock, remembering = made(), made(actuator_history=4)
    assert stock._backend.nominal.actuator_history[:, 0].tolist() == [0, 9]
    assert remembering._backend.nominal.actuator_history[:, 0].tolist() == [4, 9]
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 2, 2))
    for envs in (stock, remembering):
        envs.reset(seed=1)
    for action in actions:  # nothing is delayed yet
        np.testing.assert_array_equal(stock.step(action)[0], remembering.step(action)[0])


def test_a_robot_with_delays_names_the_mujoco_that_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = slider(tmp_path, body(""), actuator_history=4)
    old = SimpleNamespace(MjModel=object, __version__="3.4.0")
    monkeypatch.setattr("gym_dr.envs.mujoco.robot_env.mujoco", old)
    with pytest.raises(RobotError, match=r"actuator_history: expected MuJoCo 3\.5 or later, got 3\.4\.0"):
        gym.make(robot)


@remembering
def test_controls_arrive_late_by_a_draw_in_simulation_steps(tmp_path: Path) -> None:
    robot = slider(
        tmp_path, body(""), actuator_history=4, fields=["actuator_force"], observe=lambda s: s.actuator_force
    )
    assert param_space_of(robot)["actuator_delay:j"].high == 4 * 0.002  # type: ignore[index]
    kwargs: Any = {"randomization": {"actuator_delay:*": (0.0, 0.008)}, "max_episode_steps": 8}
    modes = {mode: gym.make_vec(robot, 5, vectorization_mode=mode, **kwargs) for mode in ("sync", "vector_entry_point")}
    found = {}
    for mode, envs in modes.items():
        _, info = envs.reset(seed=1)
        steps = np.ceil(info["params"]["actuator_delay:j"] / 0.002).astype(int)
        found[mode] = np.array([envs.step(np.full((5, 1), 0.1 * t))[0][:, 0] for t in range(1, 8)])
        expected = 0.1 * np.maximum(np.arange(1, 8)[:, None] - steps, 0)
        np.testing.assert_allclose(found[mode], expected)
    np.testing.assert_array_equal(*found.values())
    native: Any = modes["vector_entry_point"]
    state = native.get_state()
    went_on = [native.step(np.zeros((5, 1)))[0] for _ in range(3)]
    native.set_state(state)
    np.testing.assert_array_equal([native.step(np.zeros((5, 1)))[0] for _ in range(3)], went_on)


# ---- disturbances, training, evaluation, the command line ------------------------------------------------------------


def test_a_run_names_its_robots_module_which_is_imported_again_only_if_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent / "own_robots")
    run = tmp_path / "run"

    def afresh(*arguments: str | Path) -> Result:
        """As in a process of its own."""
        sys.modules.pop("swing", None)
        with forgotten_afterwards():
            return gymdr(*arguments)

    trained = afresh("train", "a2c", "--env", "swing:tests/Swing-v0", *TINY, "--run-dir", run)
    assert trained.code == 0, trained.err
    command = ("evaluate", run, "--episodes", "2")
    assert "--trust swing" in refused(afresh(*command))
    evaluated = afresh(*command, "--trust", "swing")
    assert evaluated.code == 0, evaluated.err
    resumed = afresh("resume", run, "--trust", "swing")
    assert resumed.code == 0, resumed.err


def test_a_module_that_is_not_found_is_answered_with_where_modules_are_looked_for() -> None:
    with pytest.raises(ConfigError, match="PYTHONPATH"):
        gym_dr.train("a2c", env="no_such_robot:Foo-v0", progress=False)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observe": None}, "expected observe to be a function, got None"),
        ({"frame_skip": 0}, "frame_skip to be a whole number above 0, got 0"),
        ({"presets": {"default": {"gravity.z": (1, 0)}}}, "gravity.z"),
        ({"presets": ["default"]}, r"presets: expected names with mappings .*, got \['default'\]"),
        ({"presets": {"none": {}}}, "presets: expected names other than 'none'"),
        ({"reset": lambda rng: rng}, r"expected reset\(state, rng\), got reset\(rng\)"),
        ({"model": "x" * 5000}, "expected a model file, got .{200,250}, which does not exist"),
        ({"actuator_history": 0}, "actuator_history to be a whole number above 0, got 0"),
        ({"reward_threshold": "x"}, "reward_threshold to be a number or None, got 'x'"),
    ],
)
def test_impossible_arguments_are_refused_before_anything_is_registered(
    swing: Any, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises((RobotError, ConfigError, RandomizationError), match=message):
        register(swing, **changes)
    assert OWN not in gym.registry
    assert OWN not in ENVIRONMENTS
    assert set(presets(OWN)) == {"none"}


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("Hopper-v5", "another environment"),
        ("my robot", "Malformed environment ID"),
    ],
)
def test_ids_of_others_and_malformed_ones_are_refused(swing: Any, env_id: Any, message: str) -> None:
    spec = gym.registry.get(env_id)
    with pytest.raises(RobotError, match=message):
        gym_dr.register_robot(env_id, model="swing.xml", observe=swing.observe, reward=swing.reward, reset=swing.reset)
    assert gym.registry.get(env_id) is spec


def rolling(state: Any, rng: Any) -> Any:
    return np.random.random(state.qpos.shape), state.qvel  # noqa: NPY002  which is the mistake


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"observe": lambda s: s.qpos[0]}, r"observe .* to return shape \(n, size\), .* got shape \(2,\)"),
    ({"observe": lambda s: s.qpos[:1]}, r"observe .* to return shape \(3, 2\), got shape \(1, 2\)"),
    ({"observe": lambda s: s.qpos - s.qpos.mean(axis=0)}, "rows that depend only on their own simulation"),
    ({"observe": lambda s: s.qpos * np.nan}, "observe .* to return numbers, got NaN as number 0 of sub-environment 0"),
    ({"observe": lambda s: s.xpos}, r"'xpos'; add it with register_robot\(..., fields=\['xpos'\]\)"),
    ({"observe": lambda s: s.speed}, "not 'speed'"),
    ({"fields": ["site_pos"]}, "Unknown field of MjData for robot 'tests/Own-v0': 'site_pos'. Did you mean"),
    ({"reward": lambda b, a: a.qpos}, r"reward .* to return shape \(1,\), got shape \(1, 2\)"),
    ({"reward": lambda b, a: [None] * len(a.qpos)}, "NaN as sub-environment 0"),
    ({"terminated": lambda s: s.qpos[:, 0]}, r"terminated .* booleans of shape \(1,\), got float64 of shape \(1,\)"),
    ({"reset": lambda state, rng: state.qpos}, "reset .* a pair of positions"),
    (
        {"reset": lambda state, rng: (np.full_like(state.qpos, np.nan), state.qvel)},
        r"reset .* finite positions, got \[\[nan nan\]",
    ),
    ({"reset": rolling}, "reset .* same seed, .* from the rng"),
    ({"presets": {"default": {}, "odd": {"nope": (0, 1)}}}, "Robot 'tests/Own-v0': preset 'odd': .*nope"),
    ({"camera": "rear"}, "Unknown camera of robot 'tests/Own-v0': 'rear'. .*Known: side"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
@pytest.mark.parametrize("mode", ["single", "native"])
def test_functions_that_cannot_be_right_are_refused_when_the_environment_is_made(
    swing: Any, mode: str, changes: dict[str, Any], message: str
) -> None:
    register(swing, **changes)
    with pytest.raises((RobotError, UnknownNameError, RandomizationError, AttributeError), match=message):
        gym.make(OWN) if mode == "single" else gym.make_vec(OWN, 2)


def test_presets_are_checked_wherever_parameters_are_asked_for(swing: Any) -> None:
    register(swing, presets={"odd": {"nope": (0, 1)}})
    with pytest.raises(UnknownNameError, match="preset 'odd'"):
        param_space_of(OWN)  # makes no environment


@pytest.mark.parametrize("mode", ["single", "sync", "native"])
@pytest.mark.parametrize("name", ["observe", "reward"])
def test_nan_is_refused_in_the_step_that_gives_it_with_the_place_and_the_state(
    swing: Any, mode: str, name: str
) -> None:
    def spoilt(values: Any, time: Any) -> Any:
        return np.where((time > 0.03).reshape(-1, *[1] * (values.ndim - 1)), np.nan, values)  # from the second step on

    changes = {
        "observe": lambda s: spoilt(swing.observe(s), s.time),
        "reward": lambda b, a: spoilt(swing.reward(b, a), a.time),
    }
    register(swing, fields=["site_xpos", "time"], **{name: changes[name]})
    modes = {"sync": "sync", "native": "vector_entry_point"}
    env: Any = gym.make(OWN) if mode == "single" else gym.make_vec(OWN, 2, vectorization_mode=modes[mode])
    env.reset(seed=1)
    action = np.zeros(env.action_space.shape)
    env.step(action)
    with pytest.raises(RobotError, match=rf"{name} .* to return numbers, got NaN as .*sub-environment 0, at qpos \["):
        env.step(action)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbod/></mujoco>", "model.xml cannot be compiled with MuJoCo .*: XML Error"),
        (body("", actuators=""), "at least one actuator, got none"),
        (body("", actuators='<motor name="m" joint="j"/>'), "a ctrlrange for each actuator, .* got none for m"),
    ],
)
def test_models_that_cannot_be_driven_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RobotError, match=message):
        gym.make(slider(tmp_path, text))


# ---- what a model may have -------------------------------------------------------------------------------------------

MESH = '<mesh name="m" vertex="0 0 0  0.1 0 0  0 0.1 0  0 0 0.1"/>'
MODELS = {
    "a mesh": body('<geom type="mesh" mesh="m"/>', more=f"<asset>{MESH}</asset>"),
    "a tendon and a muscle": body(
        "",
        '<muscle tendon="t" ctrlrange="0 1"/><position joint="j" kp="10" ctrlrange="-1 1"/>',
        '<tendon><fixed name="t" range="-1 1"><joint joint="j" coef="1"/></fixed></tendon>'
        '<sensor><tendonpos tendon="t"/></sensor>',
    ),
    "an equality and a mocap body": body(
        '<body name="c" pos="0 0 1"><joint type="ball"/><geom size="0.05"/></body>',
        more='<equality><connect body1="c" body2="world" anchor="0 0 0"/></equality>',
    ).replace("<worldbody>", '<worldbody><body name="goal" mocap="true"><site name="s"/></body>'),
    "two robots": body("").replace(
        "</worldbody>", '<body name="other" pos="0 1 0"><freejoint/><geom name="h" size="0.1"/></body></worldbody>'
    ),
    "runge-kutta and contacts": body("").replace(
        "<worldbody>",
        '<option integrator="RK4"/><worldbody><geom name="floor" type="plane" size="1 1 1" pos="0 0 -0.1"/>',
    ),
}


@pytest.mark.parametrize("text", MODELS.values(), ids=list(MODELS))
def test_native_equals_sync_for_what_a_model_may_have(tmp_path: Path, text: str) -> None:
    slider(tmp_path, text, frame_skip=3)
    sync = gym.make_vec(OWN, 2, vectorization_mode="sync", max_episode_steps=6)
    assert assert_same_episodes(sync, gym.make_vec(OWN, 2, max_episode_steps=6), 15) >= 2


def test_a_urdf_is_a_model_too_once_it_has_an_actuator(tmp_path: Path) -> None:
    moments = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    link = f'<inertial><origin xyz="0 0.1 0"/><mass value="1"/>{moments}</inertial>'
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit lower="-1" upper="1"/></joint>'
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="r"><link name="a"/><link name="b">{link}</link>{joint}</robot>')
    with pytest.raises(RobotError, match="at least one actuator"):
        gym.make(slider(tmp_path, path.read_text()))
    whole = (
        '<mujoco><asset><model name="arm" file="arm.urdf"/></asset><worldbody><frame>'
        '<attach model="arm" body="b" prefix="r_"/></frame></worldbody>'
        '<actuator><motor joint="r_j" ctrlrange="-1 1"/></actuator></mujoco>'
    )
    env = gym.make(slider(tmp_path, whole), randomization={"body_mass:r_b": (0.5, 2.0)})
    assert 0.5 < env.reset(seed=1)[1]["params"]["body_mass:r_b"] < 2.0
