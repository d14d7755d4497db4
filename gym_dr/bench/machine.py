"""Describes this machine, and checks its room for more processes."""

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

UNKNOWN_PROCESS = 200 * 2**20  # assumed bytes of a process if the system does not report them
_MEMORY_SHARE = 0.6  # share of free memory for processes; the rest is for their growth and for other programs
_DESCRIPTORS = 4  # open files in this process per child: a pipe for calls, and those of multiprocessing
_SPARE_DESCRIPTORS = 100


def describe() -> dict[str, Any]:
    """Describes the machine for the results.

    Returns:
        Processor, cores (all, and those that this process may use), memory in bytes, operating system, load average of
        the last minute (None if unknown), and versions by package.
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
    """The packages that gym_dr needs, and its peers in the extra ``bench``."""
    wanted = [text for text in importlib.metadata.requires("gym-dr") or [] if "extra" not in text or '"bench"' in text]
    return [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in wanted]


def private_memory(pid: int) -> int:
    """Private memory of a process in bytes; ``UNKNOWN_PROCESS`` if the system does not report it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return UNKNOWN_PROCESS
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def free_memory() -> int | None:
    """Free memory in bytes, of the machine and within this process's control group; None if unknown."""
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
        processes: Number of additional processes.
        bytes_each: Private memory of each.
    """
    free = free_memory()
    needed = processes * bytes_each
    if free is not None and needed > _MEMORY_SHARE * free:
        return (
            f"{processes} processes need {needed / 2**30:.1f} GiB, "
            f"more than {_MEMORY_SHARE:.0%} of the {free / 2**30:.1f} GiB of free memory"
        )
    files = _soft_limit("RLIMIT_NOFILE")
    if files is not None and processes * _DESCRIPTORS + _SPARE_DESCRIPTORS > files:
        return f"{processes} processes need {processes * _DESCRIPTORS} open files, the limit is {files} (ulimit -n)"
    for limit in (_soft_limit("RLIMIT_NPROC"), _pids_limit()):
        if limit is not None and processes > limit // 2:
            return f"{processes} processes are more than half of the {limit} allowed"
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
    except (AttributeError, ValueError, OSError):  # not available on this system
        return None


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
