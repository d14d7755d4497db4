"""Workers that are killed, raise, hang or answer in a wrong shape: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gym_dr import AdaptParams, DisturbVector, RecordEpisodes, ResampleParams, VectorParams, WorkerVectorEnv
from gym_dr.errors import ConfigError, EnvStateError, InvalidActionError, RandomizationError, WorkerError, WorkerWarning
from gym_dr.randomization.draws import draw
from tests.envs.workers.trouble import FAULTS, Trouble, actions, added, left_over, make

LANDER = "gym_dr/LunarLanderDR-v3"
pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_names_the_sub_environment_its_draw_and_its_seed_and_leaves_nothing(kind: str) -> None:
    before = left_over()
    envs = make()
    _, info = envs.reset(seed=40)
    envs.step(actions(envs))
    envs.call("plan", 1, kind)
    with pytest.raises(
        WorkerError, match=rf"Sub-environment 1 \(seed 41, draw 0: .*length=.*\) {FAULTS[kind]}"
    ) as caught:
        envs.step(actions(envs))
    error = caught.value
    assert (error.env_index, error.seed, error.draw_index) == (1, 41, 0)
    assert error.params["length"] == info["params"]["length"][1]
    assert added(before) == {}
    with pytest.raises(EnvStateError, match="closed"):
        envs.step(actions(envs))
    envs.close()


def test_the_traceback_of_the_worker_is_shown() -> None:
    envs = make()
    envs.reset(seed=1)
    envs.call("plan", 0, "raises")
    with pytest.raises(WorkerError) as caught:
        envs.step(actions(envs))
    assert "in _go_wrong" in str(caught.value.__cause__)


FEW = ("killed", "raises", "hangs", "wrong shape")  # the others take the same way


@pytest.mark.parametrize("kind", [k if k in FEW else pytest.param(k, marks=pytest.mark.slow) for k in FAULTS])
def test_a_worker_is_replaced_and_its_episode_truncated(kind: str) -> None:
    # step        reward  truncated  draw  observation
    # the fault        0       True     0  the last one again
    # the next         0      False     1  the new episode's first
    # the next         1      False     1  (CartPole's reward)
    envs = make(restart=True)
    before = left_over()
    envs.reset(seed=40)
    observations = envs.step(actions(envs))[0]
    envs.call("plan", 1, kind)
    with pytest.warns(WorkerWarning, match=rf"Sub-environment 1 \(seed 41, draw 0.*{FAULTS[kind]}.*replaced, and its"):
        after, rewards, terminated, truncated, info = envs.step(actions(envs))
    assert rewards.tolist() == [1, 0, 1]
    assert truncated.tolist() == info["worker_restarted"].tolist() == [False, True, False]
    assert not terminated.any()
    assert (after[1] == observations[1]).all()
    assert (after[0] != observations[0]).any()
    assert info["draw_index"].tolist() == [0, 0, 0]
    _, rewards, _, truncated, info = envs.step(actions(envs))
    assert (rewards.tolist(), info["draw_index"].tolist()) == ([1, 0, 1], [0, 1, 0])
    assert not truncated.any()
    assert envs.step(actions(envs))[1].tolist() == [1, 1, 1]
    assert len(left_over()["children"]) == len(before.pop("children"))
    assert added(before) == {}
    envs.close()


def test_draws_go_on_after_a_restart_and_all_is_the_same_again() -> None:
    def run() -> tuple[list[Any], list[float]]:
        envs, rows, lengths = make(restart=True), [], []
        envs.reset(seed=7)
        for t in range(80):
            if t in (5, 20, 41):
                envs.call("plan", 2, "killed")
            *arrays, info = envs.step(actions(envs))
            rows.append([array.tolist() for array in arrays])
            if not lengths or info["draw_index"][2] == len(lengths):
                lengths.append(info["params"]["length"][2])
        envs.close()
        return rows, lengths

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkerWarning)
        first, second = run(), run()
    assert first == second
    envs = make(1)
    randomization, space = envs.get_attr("randomization")[0], envs.get_attr("param_space")[0]
    envs.close()
    count = len(first[1])
    assert count > 5
    expected = draw(randomization, space, np.full(count, 9, np.uint64), np.arange(count))["length"]
    assert first[1] == expected.tolist()  # seed 7 + 2, draws 0, 1, 2, ... with none left out


def test_a_replaced_worker_does_not_play_the_first_episode_again() -> None:
    envs = make(2, restart=True)
    first, _ = envs.reset(seed=3)
    envs.step(actions(envs))
    envs.call("plan", 0, "killed")
    with pytest.warns(WorkerWarning):
        envs.step(actions(envs))
    assert (envs.step(actions(envs))[0][0] != first[0]).any()
    envs.close()


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_a_restart_in_the_other_autoreset_modes(mode: AutoresetMode) -> None:
    envs = make(restart=True, autoreset_mode=mode)
    envs.reset(seed=40)
    last = envs.step(actions(envs))[0]
    envs.call("plan", 1, "killed")
    with pytest.warns(WorkerWarning):
        observations, _, _, truncated, info = envs.step(actions(envs))
    assert truncated.tolist() == [False, True, False]
    if mode == AutoresetMode.SAME_STEP:
        assert (info["final_obs"][1] == last[1]).all()
        assert info["final_info"]["worker_restarted"].tolist() == [False, True, False]
        assert info["draw_index"].tolist() == [0, 1, 0]
        assert (observations[1] != last[1]).any()
    else:
        assert (observations[1] == last[1]).all()
        with pytest.raises(EnvStateError, match=r"\[1\]"):
            envs.step(actions(envs))
        _, info = envs.reset(options={"reset_mask": truncated})
        assert info["draw_index"][1] == 1
    assert envs.step(actions(envs))[1].tolist() == [1, 1, 1]
    envs.close()


def test_a_fault_in_a_reset_restarts_without_a_truncation() -> None:
    envs = make(restart=True)
    envs.reset(seed=1)
    envs.call("plan", 0, "killed", "reset")
    with pytest.warns(WorkerWarning, match=r"length="):
        _, info = envs.reset(seed=5)
    sync = SyncVectorEnv([lambda i=i: Trouble(i) for i in range(3)])  # type: ignore[misc]
    expected = sync.reset(seed=5)[1]
    assert info["params"]["length"].tolist() == expected["params"]["length"].tolist()
    assert envs.step(actions(envs))[1].tolist() == [1, 1, 1]
    envs.close()


def test_a_fault_between_steps_is_truncated_at_the_next_step() -> None:
    envs = VectorParams(make(restart=True))
    envs.reset(seed=1)
    envs.set_params({"length": 0.5})
    base: Any = envs.unwrapped
    os.kill(base._slots[2].worker.pid, signal.SIGKILL)
    with pytest.warns(WorkerWarning):
        assert len(envs.params["length"]) == 3
    assert envs.step(actions(envs))[3].tolist() == [False, False, True]
    info = envs.step(actions(envs))[4]
    assert info["params"]["length"][2] == 0.5  # what was fixed before is fixed in the successor too
    assert (info["params"]["length"][:2] != 0.5).all()
    envs.close()


def test_exact_values_reach_a_worker_that_dies_in_the_reset_they_are_for() -> None:
    envs = VectorParams(make(restart=True))
    envs.reset(seed=1)
    base: Any = envs.unwrapped
    base.call("plan", 1, "killed", "reset")
    with pytest.warns(WorkerWarning):
        _, info = envs.reset(options={"params": {"length": [0.31, 0.32, 0.33]}})
    assert info["params"]["length"].tolist() == [0.31, 0.32, 0.33]
    _, info = envs.reset()
    assert (info["params"]["length"] != [0.31, 0.32, 0.33]).all()
    envs.close()


def test_a_worker_that_fails_before_its_first_step_is_not_replaced_for_ever() -> None:
    before = left_over()
    envs = make(restart=True)
    envs.reset(seed=1)
    envs.call("plan", 0, "killed")
    with pytest.warns(WorkerWarning):
        envs.step(actions(envs))
    envs.call("plan", 0, "killed")
    envs.step(actions(envs))  # a reset
    with pytest.raises(WorkerError, match="right after it was replaced"):
        envs.step(actions(envs))
    assert added(before) == {}


def test_several_faults_at_once() -> None:
    envs = make(4, restart=True)
    envs.reset(seed=1)
    envs.step(actions(envs))
    for i, kind in enumerate(["killed", "hangs", "raises"]):
        envs.call("plan", i, kind)
    with pytest.warns(WorkerWarning) as caught:
        truncated = envs.step(actions(envs))[3]
    assert sum(warning.category is WorkerWarning for warning in caught) == 3
    assert truncated.tolist() == [True, True, True, False]
    envs.close()


def test_an_environment_that_cannot_be_made_in_its_process() -> None:
    before, parent = left_over(), os.getpid()

    def make_here_only() -> Any:
        if os.getpid() != parent:
            raise OSError("no such device")
        return gym.make("CartPole-v1")

    with pytest.raises(
        WorkerError, match=r"Sub-environment 0 \(before its first reset\) raised OSError: no such device"
    ):
        WorkerVectorEnv([make_here_only] * 2)
    assert added(before) == {}


@pytest.mark.parametrize("faults", [10, pytest.param(500, marks=pytest.mark.slow)])
def test_no_zombie_file_or_thread_is_left_after_many_faults(faults: int) -> None:
    kinds = [kind for kind in FAULTS if kind not in ("hangs", "is stopped")]
    others = left_over().pop("children")  # of tests before this one
    envs = make(restart=True, timeout=60.0)
    envs.reset(seed=1)
    before = left_over()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkerWarning)
        for n in range(faults):
            envs.call("plan", n % 3, kinds[n % len(kinds)])
            for _ in range(3):  # the fault, the reset, a step
                envs.step(actions(envs))
    assert len(left_over()["children"] - others) == len(before.pop("children") - others) == 3
    assert added(before) == {}
    envs.close()


def plain(value: Any) -> Any:
    """Arrays of any depth as lists with their types, which can be compared."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return (str(value.dtype), plain(value.tolist())) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("mode", AutoresetMode, ids=lambda m: m.value)
def test_without_faults_all_is_as_in_a_sync_environment(mode: AutoresetMode) -> None:
    fns = [lambda: gym.make(LANDER, max_episode_steps=40)] * 3
    envs: Any
    rows: list[list[Any]] = []
    for envs in (WorkerVectorEnv(fns, autoreset_mode=mode), SyncVectorEnv(fns, autoreset_mode=mode)):
        envs = VectorParams(envs)
        assert envs.unwrapped.autoreset_mode is mode
        rows.append([envs.reset(seed=11)])
        envs.set_params({"wind_power": 3.0})
        for t in range(90):
            result = envs.step((np.arange(3) + t // 7) % 4)
            rows[-1].append(result)
            done = result[2] | result[3]
            if mode == AutoresetMode.DISABLED and done.any():
                rows[-1].append(envs.reset(options={"reset_mask": done}))
        rows[-1].append((envs.unwrapped.np_random_seed, envs.params))
        envs.close()
    assert plain(rows[0]) == plain(rows[1])


def test_wrappers_count_a_restarted_episode_as_truncated() -> None:
    records: list[Any] = []
    envs = RecordEpisodes(ResampleParams(make(restart=True), rollout_steps=4), records.append)
    envs.reset(seed=1)
    envs.step(actions(envs))
    base: Any = envs.unwrapped
    base.call("plan", 0, "killed")
    with pytest.warns(WorkerWarning):
        envs.step(actions(envs))
    assert [(r.env_index, r.terminated, r.length, r.episode_return) for r in records] == [(0, False, 2, 1.0)]
    envs.close()


def test_impossible_actions_reach_no_worker() -> None:
    envs, twin = make(), make()
    envs.reset(seed=1)
    twin.reset(seed=1)
    impossible: list[Any] = [[0, 1], np.zeros(3), np.array([0, 2, 0]), np.array([0, -1, 0]), None, [[0], [1, 2], 0]]
    for bad in impossible:
        with pytest.raises(InvalidActionError, match="Expected"):
            envs.step(bad)
        assert (envs.step(actions(envs))[0] == twin.step(actions(twin))[0]).all(), bad
    envs.close()
    twin.close()


@pytest.mark.parametrize(
    "bad", [{"timeout": 0}, {"timeout": 1e7}, {"timeout": float("nan")}, {"timeout": "1"}, {"autoreset_mode": "x"}]
)
def test_impossible_arguments(bad: Any) -> None:
    with pytest.raises(ConfigError, match="Expected"):
        WorkerVectorEnv([lambda: gym.make("CartPole-v1")], **bad)


def test_different_spaces_are_refused() -> None:
    before = left_over()
    with pytest.raises(ConfigError, match=r"another one in sub-environments \[1\]"):
        WorkerVectorEnv([lambda: gym.make("CartPole-v1"), lambda: gym.make("Acrobot-v1")])
    with pytest.raises(ConfigError, match="at least one"):
        WorkerVectorEnv([])
    assert added(before) == {}


def test_what_an_environment_refuses_costs_no_worker() -> None:
    envs = make()
    with pytest.raises(EnvStateError, match="reset"):
        envs.step(actions(envs))
    envs.reset(seed=1)
    with pytest.raises(AttributeError, match="lengt"):
        envs.get_attr("lengt")
    with pytest.raises(RandomizationError):
        envs.reset(options={"params": {"length": -1.0}})
    with pytest.raises(ConfigError, match="3 values"):
        envs.set_attr("pinned_params", [{}])
    assert envs.step(actions(envs))[1].tolist() == [1, 1, 1]
    envs.close()
    envs.close()
    for call in (envs.reset, envs.render, lambda: envs.get_attr("x"), lambda: envs.set_attr("x", 1)):
        with pytest.raises(EnvStateError, match="closed"):
            call()


def test_sensors_and_thresholds_are_those_of_the_sub_environments_id() -> None:
    envs: Any = WorkerVectorEnv([lambda: gym.make("gym_dr/CartPoleDR-v1")] * 2)
    assert envs.spec.id == "gym_dr/CartPoleDR-v1"
    assert DisturbVector(envs, {"obs_hide:theta": 1}).reset(seed=1)[0][:, 2].tolist() == [0, 0]
    AdaptParams(envs, "doraemon")  # which needs the reward threshold
    envs.close()
    unregistered: Any = WorkerVectorEnv([CartPoleEnv])
    assert unregistered.spec is None
    unregistered.close()


def test_dictionary_observations() -> None:
    space = gym.spaces.Dict({"a": gym.spaces.Box(-1, 1, (2,)), "b": gym.spaces.Tuple([gym.spaces.Discrete(3)] * 2)})

    class Nested(gym.Env[Any, Any]):
        observation_space, action_space = space, gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return {"a": np.zeros(2, np.float32), "b": (1, 2)}, {}

        def step(self, action: Any) -> Any:
            b = (1, 2) if action == 0 else (1,)
            return {"a": np.ones(2, np.float32), "b": b}, 0.0, False, False, {}

    envs = WorkerVectorEnv([Nested] * 2)
    observations, _ = envs.reset(seed=1)
    assert observations["b"][1].tolist() == [2, 2]
    assert envs.step(np.array([0, 0]))[0]["a"].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(WorkerError, match="as observation, not one of"):
        envs.step(np.array([0, 1]))


def test_workers_end_when_their_parent_is_killed() -> None:
    program = """
import sys, time, gymnasium as gym, gym_dr
envs = gym_dr.WorkerVectorEnv([lambda: gym.make("CartPole-v1")] * 3, restart=True)
envs.reset(seed=1)
print(*(slot.worker.pid for slot in envs._slots), flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = parent.stdout.readline().split()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.05)
