"""Steps many environments on threads beside twins on one, through forks, signals and interrupts, and compares them.

    python -m benchmarks.soak_threads                # 100 million steps of 50 environments on two threads
    python -m benchmarks.soak_threads --part 20      # a twentieth of that
    python -m benchmarks.soak_threads --runs 1000    # and so many short processes instead

Every result of every step is compared with that of a twin on one thread, bit for bit, so that no step can be lost. A
hang prints where all Python threads are, and ends the process. ``tests/envs/test_soak.py`` runs a little of it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

import gym_dr
from benchmarks.soak import resident
from gym_dr.compiled.policy import CATEGORICAL, TWO_HEADS, SmallPolicy
from gym_dr.compiled.steps import Steps

STEPS = 100_000_000
TIMEOUT = 600.0  # seconds of a visit, after which something hangs
SWING = "benchmarks/NoisySwing-v0"
# sub-environments, and vector steps of a visit
KINDS: dict[str, tuple[int, int]] = {
    "gym_dr/CartPoleDR-v1": (8192, 24),
    "gym_dr/LunarLanderDR-v3": (1024, 24),
    "gym_dr/PendulumDR-v1": (2048, 24),
    "gym_dr/BipedalWalkerDR-v3": (64, 16),
    "gym_dr/InvertedPendulumDR-v5": (1024, 24),
    "gym_dr/HopperDR-v5": (8, 16),
    SWING: (2048, 24),
}


class Swing(NamedTuple):
    """Radians, and radians per second."""

    angle: float
    speed: float


def _begin(p: Any, u: Any) -> Swing:
    return Swing(u.angle, 0.0)


def _step(p: Any, s: Swing, action: float, w: Any) -> tuple[Swing, float, bool]:
    speed = s.speed + 0.02 * (action - 1.0 - 9.81 / p.length * math.sin(s.angle)) + 0.1 * w.gust
    return Swing(s.angle + 0.02 * speed, speed), -abs(s.angle), abs(s.angle) > 1.1


def _observe(p: Any, s: Swing) -> tuple[float, float]:
    return s.angle, s.speed


def register() -> None:
    """Registers equations as a user would."""
    if SWING not in gym.registry:
        gym_dr.register_equations(
            SWING,
            params=[gym_dr.Param(name="length", nominal=1.0, low=0.1, high=10.0, unit="m")],
            observation_space=Box(-np.inf, np.inf, (2,)),
            action_space=Discrete(3),
            start={"angle": (-1.0, 1.0)},
            process_noise={"gust": (-1.0, 1.0)},
            begin=_begin,
            step=_step,
            observe=_observe,
            presets={"default": {"length": (0.5, 2.0)}},
        )


class Interrupted(BaseException):
    """Raised by a signal at any time."""


@dataclass(kw_only=True)
class Twins:
    """An environment on threads, and the same on one thread."""

    env_id: str
    num_envs: int
    threads: int
    seed: int
    both: list[Any] = field(init=False)
    policy: SmallPolicy = field(init=False)

    def __post_init__(self) -> None:
        self.both = [
            gym.make_vec(self.env_id, self.num_envs, max_episode_steps=50, num_threads=count)
            for count in (self.threads, 1)
        ]
        envs = self.both[0]
        space, inputs = envs.single_action_space, envs.single_observation_space.shape[0]
        self.discrete = isinstance(space, Discrete)
        low, high = (np.zeros(0, np.float32),) * 2 if self.discrete else (space.low, space.high)
        self.columns = 1 if self.discrete else len(low)
        self.policy = SmallPolicy.allocate(
            sizes=[inputs, 16, int(space.n) if isinstance(space, Discrete) else 2 * len(low)],
            activation="tanh",
            kind=CATEGORICAL if self.discrete else TWO_HEADS,
            low=low,
            high=high,
            floor=0.1,
            num_envs=self.num_envs,
        )
        self.policy.network.weights[:] = np.random.default_rng(self.seed).normal(
            0, 0.3, self.policy.network.weights.shape
        )
        self.reset()

    def reset(self) -> None:
        self.seen = [envs.reset(seed=self.seed)[0] for envs in self.both]
        compare(*self.seen)
        self.seed += 1

    def play(self, which: int, rows: int, seed: int, *, rollout: bool) -> Iterator[Any]:
        """The results of each step of one of both, or of a rollout."""
        envs, rng = self.both[which], np.random.default_rng(seed)
        if not rollout:
            for _ in range(rows):
                yield envs.step(self._actions(rng))
            self.seen[which] = None
            return
        actions = 0 if self.discrete else self.columns
        noise = (rng.random if self.discrete else rng.standard_normal)((rows, self.num_envs, self.columns), np.float32)
        steps = Steps.allocate(rows, self.num_envs, inputs=envs.single_observation_space.shape[0], actions=actions)
        steps.observations[0] = envs.unwrapped._episodes.observe()
        played = envs.rollout(self.policy, noise, steps, 0, rows)
        steps = steps if self.discrete else steps._replace(discrete=steps.rewards)  # which continuous ones leave empty
        yield [*steps, played.begun, played.draws, played.info]

    def _actions(self, rng: np.random.Generator) -> Any:
        space = self.both[0].single_action_space
        if isinstance(space, Discrete):
            return rng.integers(space.start, space.start + space.n, self.num_envs)
        return rng.uniform(space.low, space.high, (self.num_envs, self.columns)).astype(np.float32)

    def close(self) -> None:
        for envs in self.both:
            envs.close()


def compare(one: Any, other: Any) -> None:
    """Raises AssertionError unless all arrays have the same bits."""
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            compare(a, b)
        return
    a, b = np.asarray(one), np.asarray(other)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes(), f"{(a != b).sum()} of {a.size} differ"


def digest(found: Any) -> bytes:
    """Of all arrays."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return hashlib.blake2b(b"".join(map(digest, found))).digest()
    return hashlib.blake2b(np.ascontiguousarray(found).tobytes()).digest()


def in_fork(work: Callable[[], bytes]) -> Callable[[], bytes]:
    """Begins work in a fork of this process; returns a function that waits for its result."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside threads
        child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            faulthandler.register(signal.SIGALRM, chain=True)  # its own watchdog cannot be set in a fork
            signal.alarm(60)
            os.write(writing, work())
        finally:
            os._exit(0)
    os.close(writing)

    def result() -> bytes:
        with os.fdopen(reading, "rb") as pipe:
            found = pipe.read()
        assert os.waitpid(child, 0)[1] == 0
        return found

    return result


class Signals:
    """Sends itself signals all the time, from another thread."""

    def __init__(self) -> None:
        self.caught: Counter[int] = Counter()
        self._end = threading.Event()

    def __enter__(self) -> Signals:
        self._before = [signal.signal(number, self._catch) for number in (signal.SIGINT, signal.SIGUSR1)]
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._sender.join()
        for number, before in zip((signal.SIGINT, signal.SIGUSR1), self._before, strict=True):
            signal.signal(number, before)

    def _catch(self, number: int, frame: Any) -> None:
        self.caught[number] += 1

    def _send(self) -> None:
        while not self._end.wait(0.004):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGUSR1)


@contextlib.contextmanager
def interrupted(delay: float) -> Iterator[None]:
    """Raises ``Interrupted`` in the block after ``delay`` seconds, and suppresses it."""

    def stop(number: int, frame: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(kw_only=True)
class Report:
    """What a soak has done."""

    steps: Counter[str] = field(default_factory=Counter)  # of sub-environments, on threads
    done: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)  # resident bytes after each tenth
    seconds: float = 0.0


def soak(
    steps: int,
    *,
    kinds: dict[str, tuple[int, int]] = KINDS,
    environments: int = 50,
    threads: int = 2,
    watch: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Visits environments in random order until all together have made ``steps`` steps on threads."""
    register()
    rng, report, started = np.random.default_rng(0), Report(), time.perf_counter()
    names = [list(kinds)[k % len(kinds)] for k in range(environments)]
    made = [Twins(env_id=name, num_envs=kinds[name][0], threads=threads, seed=k) for k, name in enumerate(names)]
    with Signals() as signals:
        visits = 0
        while (total := sum(report.steps.values())) < steps:
            while len(report.memory) < total * 10 // steps:
                report.memory.append(resident())
                report.seconds = time.perf_counter() - started
                watch(report)
            faulthandler.dump_traceback_later(TIMEOUT, exit=True)
            place = int(rng.integers(environments))
            name, seed = names[place], visits
            _visit(made, place, kinds[name][1], seed, rng, report, threads)
            visits += 1
        faulthandler.cancel_dump_traceback_later()
    report.memory.append(resident())
    report.done["SIGINT"], report.done["SIGUSR1"] = signals.caught[signal.SIGINT], signals.caught[signal.SIGUSR1]
    report.done["visits"], report.seconds = visits, time.perf_counter() - started
    for twins in made:
        twins.close()
    return report


def _visit(
    made: list[Twins], place: int, rows: int, seed: int, rng: np.random.Generator, report: Report, threads: int
) -> None:
    """Plays some rows of an environment, and perhaps forks, interrupts it, or makes it anew."""
    twins = made[place]
    rollout, event = bool(rng.random() < 0.5), float(rng.random())
    if event < 0.04:  # closed or dropped, while others live
        if event < 0.02:
            twins.close()
        made[place] = twins = Twins(env_id=twins.env_id, num_envs=twins.num_envs, threads=threads, seed=twins.seed)
        report.done["made anew"] += 1
    elif event < 0.10:  # interrupted anywhere, and used on
        with interrupted(float(rng.uniform(0, 0.02))):
            for found in twins.play(0, rows, seed, rollout=rollout):
                del found
            for found in twins.play(0, rows, seed, rollout=not rollout):
                del found
            report.done["too late to interrupt"] += 1
        report.done["interrupts"] += 1
        twins.reset()
    child = None
    if 0.10 <= event < 0.14:  # a fork steps on by itself, at the same time
        child = in_fork(lambda: digest(list(twins.play(0, rows, seed, rollout=rollout))))
        report.done["forks"] += 1
    ours, theirs = (twins.play(which, rows, seed, rollout=rollout) for which in (0, 1))
    if child is None:
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
    else:
        found = list(ours)
        compare(found, list(theirs))
        assert child() == digest(found), "a fork went another way"
    report.steps[twins.env_id] += rows * twins.num_envs
    report.done["rollouts" if rollout else "runs of steps"] += 1


SHORT = """
import sys, warnings
import gymnasium as gym
import gym_dr
name, threads, close = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "close"
envs = gym.make_vec(name, 256, num_threads=threads)
envs.reset(seed=1)
envs.action_space.seed(1)
for _ in range(3):
    found = envs.step(envs.action_space.sample())
if close:
    envs.close()
print(found[0].sum(dtype="float64").hex())
"""


def short_runs(count: int) -> Counter[str]:
    """Starts processes that step a little on two or three threads and exit, with environments closed or not."""
    done: Counter[str] = Counter()
    expected: dict[str, str] = {}
    names = [name for name in KINDS if name != SWING]
    for k in range(count):
        name, threads = names[k % len(names)], 1 if k < len(names) else 2 + k % 2
        command = [sys.executable, "-c", SHORT, name, str(threads), ("close", "drop")[k // 2 % 2]]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert (ended.returncode, ended.stderr) == (0, ""), (command, ended)
        assert expected.setdefault(name, ended.stdout) == ended.stdout, command
        done[f"{name} {threads}"] += 1
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", type=int, default=1, help="make 1/PART of the steps")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=0, help="start so many short processes instead")
    given = parser.parse_args()
    started = time.perf_counter()
    if given.runs:
        print(dict(short_runs(given.runs)), f"{time.perf_counter() - started:.0f} s")
        return

    def watch(report: Report) -> None:
        print(f"{sum(report.steps.values()):,} {report.seconds:.0f} s {report.memory[-1] / 1e6:.1f} MB", flush=True)

    report = soak(STEPS // given.part, threads=given.threads, watch=watch)
    after = report.memory[1:]
    print(f"{sum(report.steps.values()):,} steps in {report.seconds:.0f} s: {dict(report.steps)}")
    print(f"  {dict(report.done)}")
    print(f"  resident MB: {min(after) / 1e6:.1f} to {max(after) / 1e6:.1f}")


if __name__ == "__main__":
    main()
