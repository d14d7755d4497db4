from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.bench import contenders, machine, throughput
from gym_dr.bench.contenders import Contender, LeftOutError, make_contender, stock_id
from tests.bench.tiny import TINY


@pytest.fixture
def one_second_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is read, so by one from before to after a step."""
    clock = itertools.count()
    monkeypatch.setattr(contenders, "time", SimpleNamespace(perf_counter=lambda: next(clock)))


def scripted(done: list[list[bool]], *, resets_at_next_step: bool) -> Contender:
    """A contender whose episodes end as told, one row a step, again and again."""
    rows = itertools.cycle(np.array(done))
    return Contender(
        num_envs=len(done[0]),
        action_space=gym.spaces.Discrete(2),
        step=lambda actions: next(rows),
        resets_at_next_step=resets_at_next_step,
        close=lambda: None,
    )


@pytest.mark.usefixtures("one_second_a_step")
@pytest.mark.parametrize(
    ("resets_at_next_step", "expected"),
    [
        (True, 9 / 4),  # of 4 steps of 3, the second has one reset and the fourth two: 3 + 2 + 3 + 1
        (False, 12 / 4),  # who resets within a step makes a real one each time
    ],
)
def test_steps_that_only_reset_do_not_count(resets_at_next_step: bool, expected: float) -> None:
    done = [[True, False, False], [False, False, False], [False, True, True], [False, False, False]]
    assert scripted(done, resets_at_next_step=resets_at_next_step).rate(4.0) == expected


@pytest.mark.usefixtures("one_second_a_step")
def test_a_reset_that_is_due_is_remembered_from_round_to_round() -> None:
    contender = scripted([[False, True]], resets_at_next_step=True)
    assert contender.rate(1.0) == 2.0
    assert contender.rate(1.0) == 1.0


@pytest.mark.usefixtures("one_second_a_step")
def test_a_round_goes_on_until_a_step_counts() -> None:
    contender = scripted([[True], [False]], resets_at_next_step=True)
    assert contender.rate(0.5) == 1.0
    assert contender.rate(0.5) == 0.5  # a reset, then a step: one that counts in two seconds


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_our_environments_step_nominal_physics(mode: str) -> None:
    contender = make_contender(mode, TINY.env, 3)
    assert contender.rate(0.0) > 0
    contender.close()
    nominal = contenders.nominal_of(TINY.env)
    assert nominal is not None
    assert len(nominal) == 0


def test_an_environment_without_a_native_form_is_left_out() -> None:
    with pytest.raises(LeftOutError, match="Acrobot-v1 has no native vector environment"):
        make_contender("native", "Acrobot-v1", 1)


@pytest.mark.parametrize("mode", ["EnvPool", "SB3 DummyVecEnv", "SB3 SubprocVecEnv"])
def test_a_peer_that_is_not_installed_is_left_out(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("envpool", "stable_baselines3", "stable_baselines3.common"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LeftOutError, match="is not installed"):
        make_contender(mode, TINY.env, 1)


@pytest.mark.parametrize("error", [OSError(11, "Resource temporarily unavailable"), MemoryError(), EOFError()])
def test_a_system_without_room_leaves_a_contender_out(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(env_id: str, num_envs: int) -> Any:
        raise error

    monkeypatch.setitem(contenders.MAKERS, "async", fail)
    with pytest.raises(LeftOutError, match=f"could not be started: {type(error).__name__}"):
        make_contender("async", TINY.env, 2)


@pytest.mark.parametrize(
    ("env_id", "expected"),
    [
        ("gym_dr/LunarLanderDR-v3", "LunarLander-v3"),
        ("gym_dr:gym_dr/HopperDR-v5", "Hopper-v5"),
        ("CartPole-v1", "CartPole-v1"),
        ("other/LunarLanderDR-v3", "other/LunarLanderDR-v3"),
    ],
)
def test_peers_are_asked_for_the_environment_that_ours_is_made_from(env_id: str, expected: str) -> None:
    assert stock_id(env_id) == expected


def test_what_is_left_out_stands_in_the_results_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(env_id: str, num_envs: int) -> Any:
        raise LeftOutError("is not here")

    native = contenders.MAKERS["native"]
    monkeypatch.setattr(throughput, "MAKERS", ("native", "async"))
    monkeypatch.setattr(throughput, "PROCESSES", ("native",))  # as if it were one of processes; TINY allows one
    monkeypatch.setattr(contenders, "MAKERS", {"native": native, "async": fail})
    lines: list[str] = []
    result = throughput.measure_throughput(TINY, lines.append)
    assert lines == ["stepping 1 environment", "stepping 2 environments"]
    assert result["left_out"] == [
        {"mode": "async", "num_envs": None, "reason": "is not here"},
        {"mode": "native", "num_envs": 2, "reason": "more than the limit of 1 processes"},
    ]
    assert [(row["mode"], row["num_envs"], row["speedup"]) for row in result["rows"]] == [("native", 1, 1.0)]


def test_processes_are_refused_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 10 * 2**30)
    # 60 % of 10 GiB are 6 GiB
    assert machine.why_no_room(10, 2**29) is None
    assert machine.why_no_room(13, 2**29) == "13 processes need 6.5 GiB, more than 60% of the 10.0 GiB of free memory"


def test_processes_are_refused_where_open_files_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    monkeypatch.setattr(machine, "_soft_limit", {"RLIMIT_NOFILE": 1024, "RLIMIT_NPROC": None}.get)
    assert machine.why_no_room(231, 1) is None  # 4 x 231 + 100 = 1024
    assert "need 928 open files, the limit is 1024" in str(machine.why_no_room(232, 1))


def test_processes_are_refused_where_the_system_allows_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    monkeypatch.setattr(machine, "_soft_limit", {"RLIMIT_NOFILE": None, "RLIMIT_NPROC": None}.get)
    monkeypatch.setattr(machine, "_pids_limit", lambda: 100)
    assert machine.why_no_room(50, 1) is None
    assert "more than half of the 100 allowed" in str(machine.why_no_room(51, 1))
