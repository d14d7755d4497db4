"""Processes in which tests train, and what is left of processes."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkContext, SpawnContext
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.soak_threads import in_fork

TIMEOUT = 60  # seconds, after which something hangs


def threads() -> int:
    """Threads of this process, not only Python's where the system tells."""
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()


def in_child(work: Callable[[], bytes]) -> bytes:
    """What ``work`` returns in a fork of this process, which is killed if it hangs."""
    return in_fork(work)()


@contextlib.contextmanager
def training_processes() -> Iterator[ForkContext | SpawnContext]:
    """How to start processes that train: they are forked, so that they have imported everything already.

    Torch computes no gradients in the fork of a process that has computed some where there is a GPU. There, processes
    are new ones that see no GPU.
    """
    if not torch.cuda.is_available():
        yield multiprocessing.get_context("fork")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield multiprocessing.get_context("spawn")


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
