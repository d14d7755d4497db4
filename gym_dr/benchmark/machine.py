"""What was measured on, and how many processes it has room for."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gym_dr.compiled.threads import usable_threads

UNKNOWN_PROCESS = 200 * 2**20  # bytes that a process is assumed to need where the system does not say
_MEMORY_SHARE = 0.6  # of the free memory that processes may take; the rest is for what they grow by, and for others
_DESCRIPTORS = 4  # open files in this process for each of its children: a pipe for calls, and those of multiprocessing
_SPARE_DESCRIPTORS = 100


def describe() -> dict[str, Any]:
    """The machine, as it stands in the results.

    Returns:
        Processor, cores (all, and those that this process may use), memory in bytes, operating system, load average of
        the last minute (None where there is none), and versions by package.
    """
    return {
        "cpu": _processor(),
        "cores": os.cpu_count() or 1,
        "usable_cores": usable_threads(),
        "memory_bytes": _memory(),
        "os": platform.platform(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {"python": platform.python_version(), **_versions(["gym-dr", *_requirements()])},
    }


def _requirements() -> list[str]:
    """The packages that this one needs to run and to be measured beside its peers."""
    wanted = [text for text in importlib.metadata.requires("gym-dr") or [] if "extra" not in text or '"bench"' in text]
    return [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in wanted]


def private_memory(pid: int) -> int:
    """Bytes that a process shares with no other; ``UNKNOWN_PROCESS`` where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return UNKNOWN_PROCESS
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def free_memory() -> int | None:
    """Bytes that can still be used, by the machine and by this process's control group; None where neither is known."""
    known = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        known += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        known.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(known, default=None)


def why_no_room(processes: int, bytes_each: int) -> str | None:
    """Why there is no room for more processes; None if there is.

    Args:
        processes: How many more.
        bytes_each: Memory of one that it shares with no other.
    """
    free = free_memory()
    needed = processes * bytes_each
    if free is not None and needed > _MEMORY_SHARE * free:
        return (
            f"{processes} processes need {needed / 2**30:.1f} GiB, "
            f"more than {_MEMORY_SHARE:.0%} of the {free / 2**30:.1f} GiB that are free"
        )
    files = _soft_limit("RLIMIT_NOFILE")
    if files is not None and processes * _DESCRIPTORS + _SPARE_DESCRIPTORS > files:
        return f"{processes} processes need {processes * _DESCRIPTORS} open files, the limit is {files} (ulimit -n)"
    for limit in (_soft_limit("RLIMIT_NPROC"), _pids_limit()):
        if limit is not None and processes > limit // 2:
            return f"{processes} processes are more than half of the {limit} that are allowed"
    return None


def _soft_limit(name: str) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else int(soft)


def _pids_limit() -> int | None:
    try:
        return int(Path("/sys/fs/cgroup/pids.max").read_text())
    except (OSError, ValueError):  # ValueError: "max"
        return None


def _processor() -> str:
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        return None


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
