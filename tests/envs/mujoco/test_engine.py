"""Threads of the engines: they end with their environments, and children of a fork start their own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from gym_dr import Scale
from gym_dr.envs.mujoco.engine import engine_class
from gym_dr.envs.mujoco.reference import make_reference
from tests.envs.mujoco.names import native
from tests.processes import TIMEOUT, in_child, threads

BOTH = pytest.mark.parametrize("name", ["Hopper", "Ant"])  # one for each engine
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def played(envs: Any, steps: int, seed: int) -> bytes:
    actions = np.random.default_rng(seed).uniform(-1, 1, (steps, *envs.action_space.shape))
    return b"".join(array.tobytes() for action in actions for array in envs.step(action)[:4])


@forks
@BOTH
@pytest.mark.parametrize("generations", [1, 2])
def test_a_child_of_a_fork_goes_on_as_its_parent_does(name: str, generations: int) -> None:
    envs = native(name, 4, num_threads=2, max_episode_steps=7, randomization={"body_mass:*": Scale((0.5, 2.0))})
    envs.reset(seed=1)
    played(envs, 5, 0)  # episodes end later, with new masses

    def go_on() -> bytes:
        first = played(envs, 2, 1)
        return first + (in_child(rest) if generations == 2 and os.getpid() != parent else rest())

    def rest() -> bytes:
        return played(envs, 4, 2)

    parent = os.getpid()
    assert in_child(go_on) == go_on()
    assert in_child(lambda: envs.reset(seed=2)[0].tobytes()) == envs.reset(seed=2)[0].tobytes()
    envs.close()


@forks
@BOTH
def test_a_child_of_a_fork_continues_from_a_state(name: str) -> None:
    envs = native(name, 4, num_threads=2)
    envs.reset(seed=1)
    state = envs.get_state()
    played(envs, 3, 0)

    def go_on() -> bytes:
        envs.set_state(state)
        return played(envs, 3, 1)

    assert in_child(go_on) == go_on()
    envs.close()


@forks
def test_a_child_of_a_fork_has_the_fields_of_the_last_step() -> None:
    engine = engine_class(contact_forces=False)(make_reference("Hopper-v5").model, 3, 2, ["xpos"])
    everyone, none = np.arange(3), np.arange(0)
    engine.start(everyone, engine.qpos.copy(), engine.qvel.copy())
    engine.step(None, 2)

    def after_first_call() -> bytes:
        engine.start(none, engine.qpos[none], engine.qvel[none])
        return engine.field("xpos").tobytes()

    assert in_child(after_first_call) == engine.field("xpos").tobytes()


@forks
@BOTH
@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_child_of_a_fork_can_end_what_it_inherits(name: str, end: str) -> None:
    held = [native(name, 4, num_threads=2)]
    held[0].reset(seed=1)

    def finish() -> bytes:
        if end == "close":
            held[0].close()
        held.clear()
        gc.collect()
        return b"done"

    assert in_child(finish) == b"done"
    played(held[0], 2, 0)


EXIT = """
import os, sys
import gymnasium as gym
import gym_dr

held = [gym.make_vec(f"gym_dr/{name}DR-v5", 4, num_threads=2) for name in ("Hopper", "Ant", "Hopper")]
for envs in held:
    envs.reset(seed=1)
if child := os.fork():
    sys.exit(os.waitpid(child, 0)[1])
held[2].step(held[2].action_space.sample())
"""


@forks
def test_a_child_of_a_fork_exits_with_environments_that_it_used_and_that_it_did_not() -> None:
    subprocess.run([sys.executable, "-c", EXIT], check=True, timeout=TIMEOUT)


@pytest.mark.parametrize("contact_forces", [False, True])
def test_a_snapshot_has_every_field_that_was_written_and_what_derives_from_it(contact_forces: bool) -> None:
    model = make_reference("Ant-v5").model
    engine = engine_class(contact_forces)(model, 2, 1, [])
    fields = {name: np.array(getattr(model, name))[None] * 1.5 for name in ("body_mass", "geom_friction", "geom_size")}
    engine.write({**fields, "gravity": np.array([[1.0, 0.0, -3.0]])}, np.array([1]))
    engine.start(np.array([1]), engine.qpos[:1] + 0.1, engine.qvel[:1] + 0.2)
    drawn = make_reference("Ant-v5")
    engine.snapshot(1, drawn.model, drawn.data)
    for name, values in fields.items():
        assert (getattr(drawn.model, name) == values[0]).all()
        assert (engine.written[name] == [getattr(model, name), values[0]]).all()
    assert drawn.model.opt.gravity.tolist() == [1.0, 0.0, -3.0]
    np.testing.assert_allclose(drawn.model.body_subtreemass, model.body_subtreemass * 1.5)
    assert (drawn.data.qpos == engine.qpos[1]).all()
    assert (drawn.data.qvel == engine.qvel[1]).all()


class Interrupting:
    """A queue of jobs that interrupts its caller once, as soon as a thread has work."""

    def __init__(self, jobs: Any) -> None:
        self.jobs, self.left = jobs, 1

    def put(self, job: Any) -> None:
        self.jobs.put(job)
        if self.left:
            self.left = 0
            raise KeyboardInterrupt


def test_what_follows_an_interrupted_step_waits_for_its_threads() -> None:
    envs = native("Ant", 12, num_threads=3)

    def episodes() -> bytes:
        return envs.reset(seed=1)[0].tobytes() + played(envs, 5, 0)

    expected, engine = episodes(), envs.unwrapped._backend.engine
    engine._jobs = Interrupting(engine._jobs)
    with pytest.raises(KeyboardInterrupt):
        played(envs, 1, 0)
    assert episodes() == expected
    envs.close()


class Stop(BaseException):
    """An interrupt at any time."""


def stop(*_: Any) -> None:
    raise Stop


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="sends signals")
@BOTH
@pytest.mark.parametrize("rounds", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_signals_in_the_middle_of_a_step_do_no_harm(name: str, rounds: int) -> None:
    envs = native(name, 6, num_threads=3)
    delays = np.random.default_rng(1).uniform(1e-4, 8e-3, rounds)

    def episodes() -> bytes:
        return envs.reset(seed=1)[0].tobytes() + played(envs, 2, 0)

    def play_on(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, since an exception in a callback is lost
        try:
            while True:
                played(envs, 1, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    expected = episodes()
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for delay in delays:
            with pytest.raises(Stop):
                play_on(delay)
            assert episodes() == expected
    finally:
        signal.signal(signal.SIGALRM, before)
    envs.close()


@BOTH
@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_threads_end_with_environments_that_are_dropped(name: str, count: int) -> None:
    gc.collect()
    before = threads()
    held = [native(name, 3, num_threads=3) for _ in range(count)]
    for envs in held:
        envs.reset(seed=1)
        played(envs, 1, 0)
    assert threads() > before
    held.clear()
    del envs
    gc.collect()
    deadline = time.monotonic() + TIMEOUT
    while threads() > before and time.monotonic() < deadline:  # they end at their next chance to run
        time.sleep(0.01)
    assert threads() <= before


@pytest.mark.parametrize(("name", "num_envs", "expected"), [("Reacher", 2, 1), ("Hopper", 1, 1), ("Hopper", 2, 2)])
def test_a_thread_has_enough_to_do(name: str, num_envs: int, expected: int) -> None:
    assert native(name, num_envs, num_threads=5).unwrapped.num_threads == expected
