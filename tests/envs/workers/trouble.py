"""A sub-environment that fails when it is told to, and what is left of processes."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr import RandomizeAttributes, WorkerVectorEnv

FAULTS = {  # kind -> how the error describes it
    "killed": "was killed by SIGKILL",
    "terminated": "was killed by SIGTERM",
    "exits": "ended with exit code 3",
    "raises": "raised ZeroDivisionError: at step",
    "raises what cannot be pickled": "raised tests.envs.workers.trouble.StubbornError",
    "hangs": r"did not answer within 0\.5 s",
    "is stopped": r"did not answer within 0\.5 s",
    "wrong shape": r"returned an observation of shape \(3,\), not \(4,\)",
    "one number": r"returned an observation of shape \(1,\), not \(4,\)",
    "wrong type": "returned an observation of dtype <U1, not float32",
    "reward of two": "returned array.* as reward, not one number",
    "no info": "returned .* from step, not observation",
    "info that cannot be pickled": "raised .*([Pp]ickle|local object)",  # by the version of Python
}


class StubbornError(Exception):
    """Cannot be rebuilt from its arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__("stubborn")


class Trouble(gym.Wrapper[Any, Any, Any, Any]):
    """Fails at the next step, or reset, once it is told to."""

    def __init__(self, index: int) -> None:
        super().__init__(RandomizeAttributes(gym.make("CartPole-v1"), {"length": (0.3, 0.9)}))
        self.index, self.kind, self.when = index, "", ""

    def plan(self, index: int, kind: str, when: str = "step") -> None:
        """What sub-environment ``index`` is to do wrong at its next step or reset."""
        if index == self.index:
            self.kind, self.when = kind, when

    def reset(self, **kwargs: Any) -> Any:
        result = super().reset(**kwargs)
        return self._go_wrong(result) if self.when == "reset" else result

    def step(self, action: Any) -> Any:
        result = super().step(action)
        return self._go_wrong(result) if self.when == "step" else result

    def _go_wrong(self, result: Any) -> Any:
        observation, *rest = result
        match self.kind:
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "terminated":
                os.kill(os.getpid(), signal.SIGTERM)
            case "is stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "exits":
                os._exit(3)
            case "hangs":
                while True:
                    time.sleep(60.0)
            case "raises":
                raise ZeroDivisionError("at step")
            case "raises what cannot be pickled":
                raise StubbornError("a", "b")
            case "wrong shape":
                return observation[:3], *rest
            case "one number":  # would fill a row of four
                return observation[:1], *rest
            case "wrong type":
                return np.full(4, "a"), *rest
            case "reward of two":
                return observation, np.zeros(2), *rest[1:]
            case "no info":
                return observation, *rest[:-1]
            case "info that cannot be pickled":
                return observation, *rest[:-1], {"function": lambda: None}
        raise AssertionError(self.kind)


def make(num_envs: int = 3, timeout: float = 0.5, **kwargs: Any) -> WorkerVectorEnv:
    """Starts with time enough for the processes to come up on a busy machine."""
    envs = WorkerVectorEnv([lambda i=i: Trouble(i) for i in range(num_envs)], timeout=60.0, **kwargs)  # type: ignore[misc]
    envs.timeout = timeout
    return envs


def actions(envs: Any) -> Any:
    return np.zeros(envs.num_envs, np.int64)


def left_over() -> dict[str, Any]:
    """Child processes (zombies too), open files and shared memory of this process."""
    gc.collect()
    children = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[1]) == os.getpid():
            children.add(int(status.parent.name))
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {
        "children": children,
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "shared memory": {line.split()[-1] for line in maps if "/dev/shm" in line},
        "in /dev/shm": {path.name for path in Path("/dev/shm").glob(f"*{os.getpid()}*")},
    }


def added(before: dict[str, Any]) -> dict[str, Any]:
    """What is left over and was not before; what earlier tests left may end at any time."""
    now = left_over()
    more = {key: now[key] - was if isinstance(was, set) else max(0, now[key] - was) for key, was in before.items()}
    return {key: found for key, found in more.items() if found}
