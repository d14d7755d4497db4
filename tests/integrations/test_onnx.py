"""Policies as ONNX files, in the runtime that people use."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import gym_dr
from gym_dr.envs.autoreset import AutoresetState
from gym_dr.errors import ConfigError
from gym_dr.integrations.onnx import policy_file
from gym_dr.policies.export import weights_of
from gym_dr.policies.open import pretrained_names
from tests.cli.command import gymdr, refused
from tests.integrations.agreement import compared
from tests.training import test_mirror

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.integration

SMALL: dict[str, Any] = {
    "updates": 2,
    "num_envs": 4,
    "rollout_steps": 32,
    "minibatches": 2,
    "hidden_sizes": (8, 6),
    "eval_episodes": 0,
    "progress": False,
}
MEMORY = {"memory": "gru", "memory_size": 5, "sequence_length": 8}
POLE, PENDULUM = "gym_dr/CartPoleDR-v1", "gym_dr/PendulumDR-v1"
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "choices": ("ppo", {"env": POLE, "activation": "relu"}),
    "choices, without normalization": ("a2c", {"env": POLE, "normalize_observations": False}),
    "choices, with memory": ("ppo", {"env": POLE, **MEMORY}),
    "numbers": ("ppo", {"env": PENDULUM}),
    "numbers, with memory": ("ppo", {"env": PENDULUM, **MEMORY}),
    "some sensors": ("ppo", {"env": PENDULUM, "ignored_sensors": ("theta_dot",), **MEMORY}),
    "two heads": ("ppo", {"env": PENDULUM, "state_dependent_std": True}),
    "two heads, with memory": ("ppo", {"env": PENDULUM, "state_dependent_std": True, **MEMORY}),
    "the past": ("ppo", {"env": POLE, "stack_observations": 3, "observe_reward": True, **MEMORY}),
    "the draw": ("ppo", {"env": POLE, "context": "observation", **MEMORY}),
}


class OnnxPolicy:
    """A file in its runtime, called like a policy."""

    def __init__(self, path: Path) -> None:
        self.session = runtime.InferenceSession(str(path))
        self.inputs = {one.name: one for one in self.session.get_inputs()}
        self.outputs = [one.name for one in self.session.get_outputs()]
        self.state: Any = None

    def __call__(self, observations: Any, starts: Any) -> dict[str, Any]:
        feed = {"observation": observations.astype(np.float32)}
        if "state" in self.inputs:
            if self.state is None:
                self.state = np.full((len(observations), self.inputs["state"].shape[1]), np.nan, np.float32)
            feed |= {"state": self.state, "episode_start": starts}
        found = dict(zip(self.outputs, self.session.run(None, feed), strict=True))
        self.state = found.get("next_state")
        return found


def assert_same(run: gym_dr.Run, exported: OnnxPolicy, steps: int = 120) -> None:
    """Plays episodes; the exported policy chooses what the run's does, to 1e-5 and wherever logits differ clearly."""
    from gym_dr.policies.frozen import Draws
    from gym_dr.policies.open import open_runs

    act = run.policy(deterministic=True)
    envs = open_runs(run.opened)[0].make_envs(Draws(episodes=16))
    observations, _ = envs.reset(seed=5)
    episodes, count = AutoresetState.of(envs), 0
    episodes.reset(np.ones(16, np.bool_))
    starts = np.ones(16, np.bool_)
    for _ in range(steps):
        expected = act(observations, starts) if "state" in exported.inputs else act(observations)
        found = exported(observations, starts)
        count += compared(found, expected)
        starts = ~episodes.will_step
        observations, _, terminated, truncated, _ = envs.step(expected)
        episodes.step(terminated | truncated)
    assert count > 14 * steps
    envs.close()


@pytest.mark.parametrize("name", pretrained_names())
def test_a_pretrained_policy_acts_as_its_run_does(name: str, tmp_path: Path) -> None:
    run = gym_dr.load_run(gym_dr.pretrained(name))
    assert_same(run, OnnxPolicy(run.export(tmp_path / "policy.onnx")))


@pytest.mark.parametrize("name", RUNS)
def test_any_policy_acts_as_its_run_does(name: str, tmp_path: Path) -> None:
    algorithm, options = RUNS[name]
    run = gym_dr.train(algorithm, run_dir=tmp_path / "run", **{**SMALL, **options})
    exported = OnnxPolicy(run.export(tmp_path / "policy.onnx"))
    assert ("state" in exported.inputs) == ("memory" in options)
    assert_same(run, exported)


@pytest.mark.parametrize("name", ["ppo", "ppo, deviation by observation"])
def test_a_policy_averaged_with_its_mirror_image_acts_as_in_training(name: str) -> None:
    actor, seen = test_mirror.agent_of(name).actor, test_mirror.observed()
    content = policy_file(weights_of(actor, test_mirror.make_envs()), {})
    (found,) = runtime.InferenceSession(content).run(["action"], {"observation": seen})
    expected = actor.to_env(actor.most_likely(torch.from_numpy(seen)).detach())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_reinforces_policy_is_exported_too(tmp_path: Path) -> None:
    run = gym_dr.train(
        "reinforce", env=PENDULUM, run_dir=tmp_path / "run", updates=1, num_envs=2, eval_episodes=0, progress=False
    )
    assert_same(run, OnnxPolicy(run.export(tmp_path / "policy.onnx")))


@pytest.fixture(scope="module")
def lander(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gym_dr.load_run(gym_dr.pretrained("lander_memory")).export(tmp_path_factory.mktemp("lander") / "a.onnx")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_counts_as_its_mean_in_training(value: float, lander: Path) -> None:
    run, (broken, whole) = gym_dr.load_run(gym_dr.pretrained("lander_memory")), (OnnxPolicy(lander) for _ in range(2))
    from gym_dr.runs.checkpoint import load_newest

    mean = load_newest(run.folder)["state"]["actor"]["network.0.mean"].numpy().astype(np.float32)
    rng, starts = np.random.default_rng(1), np.ones(4, np.bool_)
    for _ in range(5):
        observations = rng.normal(size=(4, 8)).astype(np.float32)
        observations[:, 3] = mean[3]
        expected = whole(observations, starts)
        observations[:, 3] = value
        found = broken(observations, starts)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
            assert np.isfinite(values).all()
        starts = np.zeros(4, np.bool_)


def test_huge_observations_give_an_action_of_the_space(tmp_path: Path) -> None:
    run = gym_dr.train("ppo", run_dir=tmp_path / "run", env=PENDULUM, **SMALL)
    exported, starts = OnnxPolicy(run.export(tmp_path / "policy.onnx")), np.ones(2, np.bool_)
    for size in (1e6, 1e30, 3e38):
        actions = exported(np.array([[size] * 3, [-size] * 3]), starts)["action"]
        assert np.isfinite(actions).all()
        assert (np.abs(actions) <= 2.0).all()


def test_it_says_what_goes_in_and_out(lander: Path) -> None:
    about = {entry.key: entry.value for entry in onnx.load(str(lander)).metadata_props}
    assert about["env"] == "gym_dr/LunarLanderDR-v3"
    assert about["gym_dr"] == gym_dr.__version__
    assert float(about["time_step_seconds"]) == 0.02  # 50 pictures per second
    observation = json.loads(about["observation"])
    assert len(observation) == 8
    assert (observation[0]["low"], observation[0]["high"]) == (-2.5, 2.5)
    assert all(entry["meaning"] for entry in observation)
    assert [entry["value"] for entry in json.loads(about["action"])] == [0, 1, 2, 3]
    assert json.loads(about["randomization"])["action_delay"] == {"distribution": "integer", "low": 0, "high": 5}


@pytest.mark.parametrize(
    ("env", "expected"),
    [("PendulumDR-v1", 0.05), ("CartPoleDR-v1", 0.02), ("BipedalWalkerDR-v3", 0.02), ("MountainCarDR-v0", None)],
)
def test_it_says_how_long_a_step_is_where_physics_has_time(env: str, expected: float | None, tmp_path: Path) -> None:
    run = gym_dr.train("ppo", env=f"gym_dr/{env}", run_dir=tmp_path / "run", **{**SMALL, "updates": 1})
    about = {e.key: e.value for e in onnx.load(str(run.export(tmp_path / "policy.onnx"))).metadata_props}
    step = about.get("time_step_seconds")
    assert (None if step is None else float(step)) == expected  # pictures of Pendulum: 30 per second


def test_it_runs_without_us_and_without_torch(lander: Path) -> None:
    code = (
        "import sys, numpy as np, onnxruntime\n"
        f"session = onnxruntime.InferenceSession({str(lander)!r})\n"
        "size = session.get_inputs()[1].shape[1]\n"
        "feed = {'observation': np.zeros((1, 8), np.float32), 'state': np.zeros((1, size), np.float32)}\n"
        "print(session.run(['action'], {**feed, 'episode_start': np.ones(1, bool)})[0])\n"
        "assert not {'torch', 'gym_dr', 'gymnasium'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in {"[0]", "[1]", "[2]", "[3]"}


LOOP = Path(gym_dr.__file__).parents[1] / "examples" / "deploy" / "loop.py"


@pytest.mark.parametrize(("name", "period"), [("lander_memory", 20), ("hopper", 8)])
def test_the_control_loop_of_the_examples_runs_at_its_rate(name: str, period: int, tmp_path: Path) -> None:
    text = LOOP.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30
    assert "gym_dr" not in text
    path = gym_dr.load_run(gym_dr.pretrained(name)).export(tmp_path / "policy.onnx")
    done = subprocess.run([sys.executable, LOOP, path, "20"], capture_output=True, text=True, check=True)
    number = r"\d+"
    assert re.fullmatch(f"20 steps of {period} ms: {number} us, 99 % below {number} us, {number} missed\n", done.stdout)


def test_the_program_of_the_go1_observes_and_acts_in_plain_mujoco_as_in_our_environment(tmp_path: Path) -> None:
    import mujoco  # type: ignore[import-untyped]

    from gym_dr.zoo.go1 import model

    path, env_id = LOOP.with_name("go1.py"), "gym_dr/Go1JoystickDR-v0"
    run = gym_dr.train("ppo", env=env_id, run_dir=tmp_path / "run", **SMALL)
    file = run.export(tmp_path / "policy.onnx")
    robot = runpy.run_path(str(path))["Go1"](model().compile(), str(file))
    env = gym.make(env_id, randomization="none")
    seen, _ = env.reset(seed=1)
    simulated: Any = env.unwrapped
    robot.command[:], robot.clock = simulated.memory["command"][0], float(simulated.memory["clock"][0])
    robot.data.qpos[:], robot.data.qvel[:] = simulated.data.qpos, simulated.data.qvel
    mujoco.mj_forward(robot.model, robot.data)
    for _ in range(50):
        np.testing.assert_allclose(robot.observe(), seen, atol=1e-6)
        action = robot.act()
        seen, *_ = env.step(action)
        robot.command[:] = simulated.memory["command"][0]  # which the task may change
    assert (robot.last_action != 0.0).all()


def test_the_command_line_writes_it_and_refuses_other_names(tmp_path: Path) -> None:
    folder = gym_dr.pretrained("hopper")
    result = gymdr("export", folder, "--output", tmp_path / "hopper.onnx")
    assert result.code == 0, result.err
    assert result.out == f"Wrote {tmp_path / 'hopper.onnx'}\n"
    message = refused(gymdr("export", folder, "--output", tmp_path / "h.pt"))
    assert message.startswith("--output: expected a file that ends in .onnx, got")
    message = refused(gymdr("export", folder, "--output", tmp_path / "nowhere" / "hopper.onnx"))
    assert "nowhere" in message


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError, match=r"needs the package 'onnx', which is not installed: pip install 'gym-dr\[on"):
        gym_dr.load_run(gym_dr.pretrained("lander")).export(tmp_path / "policy.onnx")
