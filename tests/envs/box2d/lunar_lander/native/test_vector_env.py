"""What the vector environment promises: the same as a sync one of the same id, in every mode."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gym_dr.envs.box2d.lunar_lander.backend import LunarLanderVectorEnv
from gym_dr.errors import ConfigError
from gym_dr.testing.playing import assert_same
from tests.envs.box2d.exact import EXACT

NUM_ENVS = 5
STEPS = 90


@pytest.mark.skipif(not EXACT, reason="bit equality needs x86-64 Linux with glibc")
@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "continuous"])
@pytest.mark.parametrize("mode", AutoresetMode, ids=lambda m: m.value)
def test_whole_episodes_equal_a_sync_environments(mode: AutoresetMode, continuous: bool) -> None:
    name = "gym_dr/LunarLanderContinuousDR-v3" if continuous else "gym_dr/LunarLanderDR-v3"
    kwargs: dict[str, Any] = {"randomization": "extreme", "max_episode_steps": 70}
    sync = SyncVectorEnv([lambda: gym.make(name, **kwargs) for _ in range(NUM_ENVS)], autoreset_mode=mode)
    native = LunarLanderVectorEnv(NUM_ENVS, continuous=continuous, autoreset_mode=mode, **kwargs)
    rng, ends = np.random.default_rng(0), 0
    assert_same(native.reset(seed=3), sync.reset(seed=3))
    for _ in range(STEPS):
        actions: Any = rng.integers(0, 4, NUM_ENVS)
        if continuous:
            actions = rng.uniform(-1.3, 1.3, (NUM_ENVS, 2)).astype(np.float32)  # beyond the bounds too: clipped
        result = native.step(actions)
        assert_same(result, sync.step(actions))
        done = result[2] | result[3]
        ends += int(done.sum())
        if mode == AutoresetMode.DISABLED and done.any():
            assert_same(*(envs.reset(options={"reset_mask": done.copy()}) for envs in (native, sync)))
    assert ends >= NUM_ENVS
    assert native.np_random_seed == sync.np_random_seed


def test_results_do_not_depend_on_the_number_of_threads_or_of_environments_and_numbas_is_left_alone() -> None:
    runs, before = [], numba.get_num_threads()
    for num_envs, threads in ((160, 1), (160, 3), (64, 2), (40, 1)):
        envs = LunarLanderVectorEnv(num_envs, num_threads=threads, randomization="extreme")
        assert envs.num_threads == threads
        rows = [envs.reset(seed=1)[0][:40]]
        for t in range(120):
            step = envs.step((np.arange(num_envs) + t // 9) % 4)
            rows += [step[0][:40], step[1][:40]]
        runs.append(rows)
        envs.close()
    assert numba.get_num_threads() == before
    for rows in runs[1:]:
        assert all((a == b).all() for a, b in zip(runs[0], rows, strict=True))


def test_a_child_process_steps_after_a_fork() -> None:
    envs = LunarLanderVectorEnv(64, num_threads=2)
    envs.reset(seed=0)
    expected = envs.step(np.zeros(64, np.int64))[0]

    def child(queue: Any) -> None:
        envs.reset(seed=0)
        queue.put(envs.step(np.zeros(64, np.int64))[0])

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside threads
        process = context.Process(target=child, args=(queue,))
        process.start()
    got = queue.get(timeout=60)
    process.join()
    assert (got == expected).all()


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_sub_environments_work(count: int) -> None:
    envs = LunarLanderVectorEnv(count)
    observations, info = envs.reset(seed=0)
    assert observations.shape == (count, 8)
    assert np.isfinite(envs.step(np.zeros(count, np.int64))[0]).all()
    assert len(np.unique(info["params"]["gravity"])) > 0.95 * count  # the rest is at a bound
    envs.close()


def test_rendering_draws_chosen_sub_environments() -> None:
    envs = LunarLanderVectorEnv(4, render_mode="rgb_array", randomization="extreme")
    envs.reset(seed=0)
    for _ in range(30):
        envs.step(np.full(4, 2))
    frames = envs.render([1, 3])
    assert frames is not None
    assert [frame.shape for frame in frames] == [(400, 600, 3)] * 2
    box = gym.make("gym_dr/LunarLanderDR-v3", render_mode="rgb_array", randomization="extreme").unwrapped
    box.reset(seed=3)
    for _ in range(30):
        box.step(2)
    box._clean_particles(True)  # the engines' sparks are decoration that only Box2D's environment has
    assert np.abs(frames[1].astype(int) - box.render().astype(int)).mean() < 0.05
    assert len(envs.render() or ()) == 4
    envs.close()


def test_an_absurd_number_of_sub_environments_is_refused_before_memory_is_touched() -> None:
    with pytest.raises(ConfigError, match="memory"):
        LunarLanderVectorEnv(10**12)
