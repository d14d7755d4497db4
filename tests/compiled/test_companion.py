"""A second process that compiles parts of a function: it helps where it can, and never stands in the way."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gym_dr.compiled import cache, companion
from gym_dr.compiled.processors import using_threads

MODULE = """
from numba import njit, types
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY, KERNEL

@njit(**KERNEL)
def half(x): return x / 2

@njit(**KERNEL)
def third(x): return x / 3

@njit(**ENTRY)
def both(x): return half(x) + third(x)

PARTS = [(half, (types.float64,)), (third, (types.float64,))]
cache_on_disk(both, "a test", parts=PARTS)
"""
HOLD = """
import sys, time
from filelock import FileLock
locks = [FileLock(path) for path in sys.argv[1:]]
for lock in locks: lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


def finish(process: subprocess.Popen[bytes]) -> None:
    """Waits until a companion has ended and this process has taken note."""
    process.wait(timeout=120)
    deadline = time.monotonic() + 10.0
    while companion._running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not companion._running


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function of the module with nothing in memory, as in a new process; the cache is in ``tmp_path``."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "two_parts.py").write_text(MODULE)
    for process in [*companion._running]:  # of other tests
        finish(process)

    def load() -> Any:
        sys.modules.pop("two_parts", None)
        cache._needed.clear()
        return importlib.import_module("two_parts")

    yield load
    sys.modules.pop("two_parts", None)
    cache._parts.clear()


def hits(module: Any) -> list[int]:
    return [sum(function._cache_hits.values()) for function in (module.half, module.third, module.both)]


def files(folder: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in (folder / "gym_dr").glob("*.bin"))


def test_parts_are_stored_and_found_by_a_function_that_is_compiled_again(tmp_path: Path, fresh: Any) -> None:
    with using_threads(1):
        module = fresh()
        assert module.both(6.0) == 5.0
        assert files(tmp_path) == ["both", "half", "third"]
        next((tmp_path / "gym_dr").glob("both*.bin")).unlink()
        module = fresh()
        assert module.both(6.0) == 5.0
    assert hits(module) == [1, 1, 0]


def test_a_second_process_compiles_parts_shows_nothing_and_ends(
    tmp_path: Path, fresh: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with using_threads(2):
        module = fresh()
        companion.start(module.both._cache._key, module.PARTS, tmp_path)
        (process,) = companion._running
        finish(process)
        assert (files(tmp_path), process.returncode) == (["half", "third"], 0)
        assert capfd.readouterr() == ("", "")
        assert module.both(6.0) == 5.0
    assert hits(module) == [1, 1, 0]


def test_a_second_process_starts_no_third(fresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, started = fresh(), []
    monkeypatch.setattr(companion, "start", lambda *arguments: started.append(arguments))
    monkeypatch.setattr(companion, "receive", lambda: (module.both._cache._key, module.PARTS))
    monkeypatch.setattr("os._exit", lambda status: None)
    cache.serve()
    assert files(tmp_path) == ["half", "third"]
    assert started == []


@pytest.mark.parametrize("script", ["raise SystemExit(1)", "import os, sys; sys.stdin.close(); os.abort()", None])
def test_without_a_second_process_or_if_it_fails_the_first_does_all(
    fresh: Any, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    if script is None:
        monkeypatch.setattr(companion, "get_executable", lambda: "/nowhere/python")
    else:
        monkeypatch.setattr(companion, "_START", script)
    with using_threads(2):
        assert fresh().both(6.0) == 5.0
    for process in [*companion._running]:
        finish(process)


def test_a_process_that_is_killed_while_it_compiles_a_part_blocks_nobody(fresh: Any) -> None:
    with using_threads(1):
        module = fresh()
        module.both._cache._expect_parts()
        paths = [f"{part._cache.path(kinds, part.targetctx)}.lock" for part, kinds in module.PARTS]
        process = subprocess.Popen([sys.executable, "-c", HOLD, *paths], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout:
            process.stdout.readline()
        threading.Timer(0.5, process.kill).start()
        assert module.both(6.0) == 5.0
    assert process.wait(timeout=10) != 0


def test_a_second_process_ends_with_the_first(fresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = "from gym_dr.compiled.companion import receive; receive(); import time; time.sleep(60)"
    monkeypatch.setattr(companion, "_START", f"import sys; sys.path[:] = {{}}; {wait}")
    with using_threads(2):
        companion.start("", fresh().PARTS, tmp_path)
    (process,) = companion._running
    assert process.stdin is not None
    time.sleep(0.5)  # it has its orders
    process.stdin.close()  # as when the first process ends
    finish(process)
