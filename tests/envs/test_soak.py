"""Long runs: memory stays flat, observations stay plausible, and nothing is left of environments that were closed."""

from __future__ import annotations

import gc
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from benchmarks import soak_threads
from benchmarks.soak import STEPS, soak
from tests.processes import added, left_over

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")

# no component of an observation may come near these, whatever is drawn; MuJoCo's Hopper clips velocities to 10
BOUNDS = {"gym_dr/LunarLanderDR-v3": 100.0, "gym_dr/HopperDR-v5": 1000.0}


@pytest.mark.parametrize("env_id", STEPS)
@pytest.mark.parametrize(
    "part", [pytest.param(2000, id="a little"), pytest.param(1, marks=pytest.mark.slow, id="in full")]
)
def test_a_long_run_keeps_its_memory_and_plausible_observations(env_id: str, part: int) -> None:
    result = soak(env_id, STEPS[env_id] // part)
    assert result.finite
    assert max(np.abs(result.low).max(), np.abs(result.high).max()) < BOUNDS[env_id]
    if part == 1:  # a short run is all warm-up
        after = result.memory[1:]
        assert max(after) <= 1.02 * min(after), f"resident after each tenth: {result.memory}"
        assert result.draws > 10
    print(f"steps/s of each tenth: {[round(speed) for speed in result.speeds]}")


def use(kind: str) -> None:
    name, mode = kind.split(" ")
    envs = gym.make_vec(name, 2, vectorization_mode=None if mode == "native" else mode)
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    envs.close()


@pytest.mark.parametrize(
    "kind",
    [
        "gym_dr/LunarLanderDR-v3 native",
        pytest.param("gym_dr/LunarLanderDR-v3 sync", marks=pytest.mark.slow),
        "gym_dr/LunarLanderDR-v3 async",
        pytest.param("gym_dr/HopperDR-v5 native", marks=pytest.mark.slow),
        "gym_dr/AntDR-v5 native",  # its engine is another: simulations and threads of its own
    ],
)
@pytest.mark.parametrize("rounds", [pytest.param(2, id="2"), pytest.param(1000, marks=pytest.mark.slow, id="1000")])
def test_environments_that_were_closed_leave_nothing(
    kind: str, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        use(kind)
    before = left_over()
    for _ in range(rounds):
        use(kind)
    assert added(before) == {}
    assert list(tmp_path.iterdir()) == []


def test_an_environment_that_was_dropped_is_freed_at_once() -> None:
    envs: Any = gym.make_vec("gym_dr/CartPoleDR-v1", 2)
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    physics = weakref.ref(envs.unwrapped._backend)
    gc.disable()
    try:
        del envs
        assert physics() is None
    finally:
        gc.enable()


FEW = {"gym_dr/CartPoleDR-v1": (2048, 8), "gym_dr/InvertedPendulumDR-v5": (2048, 4)}  # enough for two threads


@pytest.mark.parametrize(
    ("part", "options"),
    [
        pytest.param(130, {"kinds": FEW, "environments": 6}, id="a little"),
        pytest.param(1, {}, marks=pytest.mark.slow, id="in full"),
    ],
)
def test_steps_on_threads_are_those_on_one_through_forks_signals_and_interrupts(
    part: int, options: dict[str, Any]
) -> None:
    report = soak_threads.soak(soak_threads.STEPS // part, **options)
    assert {"forks", "interrupts", "made anew", "rollouts", "runs of steps"} <= set(report.done)
    if part == 1:
        after = report.memory[3:]
        assert max(after) <= 1.1 * min(after), f"resident after each tenth: {report.memory}"
    print(report)


@pytest.mark.parametrize("runs", [pytest.param(1000, marks=pytest.mark.slow, id="1000")])
def test_short_processes_end_well_with_threads_that_wait(runs: int) -> None:
    assert soak_threads.short_runs(runs).total() == runs
