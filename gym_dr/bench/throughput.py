"""Steps per second of every vector environment against the number of sub-environments, and how that scales."""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from gym_dr.bench.contenders import MAKERS, PROCESSES, Contender, LeftOutError, make_contender
from gym_dr.bench.machine import UNKNOWN_PROCESS, private_memory, why_no_room
from gym_dr.bench.settings import BenchSettings
from gym_dr.bench.timing import alternate, karp_flatt, max_speedup, speedup
from gym_dr.wording import counted

Rates = dict[tuple[str, int], list[float]]  # (mode, sub-environments) -> steps per second of each round


def measure_throughput(settings: BenchSettings, report: Callable[[str], None]) -> dict[str, Any]:
    """Measures all contenders for each number of sub-environments.

    In each round a contender steps once with N sub-environments and once with a single one, so speed-ups compare
    measurements from about the same time.

    Returns:
        ``rows``, one for each mode and number, and ``left_out``, the contenders that could not take part, and why.
    """
    rows: list[dict[str, Any]] = []
    left_out: list[dict[str, Any]] = []
    with _opened(MAKERS, 1, settings, left_out) as singles:
        for num_envs in settings.sizes:
            report(f"stepping {counted(num_envs, 'environment')}")
            rates = _measure(singles, num_envs, settings, left_out)
            rows += [_row(mode, num_envs, rates) for mode in singles if (mode, num_envs) in rates]
    return {"unit": "steps/s", "rows": rows, "left_out": left_out}


def _measure(
    singles: dict[str, Contender], num_envs: int, settings: BenchSettings, left_out: list[dict[str, Any]]
) -> Rates:
    """Measures the rates of all modes with one sub-environment and with ``num_envs``."""
    with _opened(singles if num_envs > 1 else (), num_envs, settings, left_out) as many:
        sides = {(mode, 1): contender for mode, contender in singles.items() if num_envs == 1 or mode in many}
        sides |= {(mode, num_envs): contender for mode, contender in many.items()}
        return alternate({name: partial(side.rate, settings.seconds) for name, side in sides.items()}, settings.rounds)


@contextlib.contextmanager
def _opened(
    modes: Iterable[str], num_envs: int, settings: BenchSettings, left_out: list[dict[str, Any]]
) -> Iterator[dict[str, Contender]]:
    """Opens the contenders that can take part, and closes them at the end."""
    contenders = {}
    with contextlib.ExitStack() as closing:
        for mode in modes:
            try:
                if mode in PROCESSES and num_envs > 1:
                    _check_room(num_envs, settings)
                contenders[mode] = make_contender(mode, settings.env, num_envs)
                closing.callback(contenders[mode].close)
            except LeftOutError as error:
                # a contender that fails with a single sub-environment is left out entirely
                left_out.append({"mode": mode, "num_envs": None if num_envs == 1 else num_envs, "reason": str(error)})
        yield contenders


def _check_room(processes: int, settings: BenchSettings) -> None:
    if processes > settings.max_processes:
        raise LeftOutError(f"more than the limit of {settings.max_processes} processes")
    children = [process.pid for process in multiprocessing.active_children() if process.pid]
    each = max((private_memory(pid) for pid in children), default=UNKNOWN_PROCESS)
    if reason := why_no_room(processes, each):
        raise LeftOutError(reason)


def _row(mode: str, num_envs: int, rates: Rates) -> dict[str, Any]:
    """One row of the results; docs/guides/bench.md describes the fields."""
    own = rates[mode, num_envs]
    psi = speedup(own, rates[mode, 1])
    serial_fraction = karp_flatt(psi, num_envs)
    return {
        "mode": mode,
        "num_envs": num_envs,
        "steps_per_second": statistics.median(own),
        "lowest": min(own),
        "highest": max(own),
        "speedup": psi,
        "serial_fraction": serial_fraction,
        "max_speedup": max_speedup(serial_fraction),
    }
