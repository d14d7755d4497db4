"""Compiled functions on disk: written once, safe to share, and rebuilt when damaged."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import threading
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from gym_dr.compiled import cache
from gym_dr.compiled.cache import cache_on_disk, source_key, sources_of
from gym_dr.errors import ConfigError

SCRIPT = """
import sys
from numba import njit
from gym_dr.compiled.cache import cache_on_disk
@njit
def double(x): return 2 * x
cache_on_disk(double, "a test")
assert double(21) == 42
print("hits", sum(double._cache_hits.values()))
"""


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function with an empty memory, as in a new process, whose cache is in ``folder``."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))

    @njit
    def double(x: Any) -> Any:
        return 2 * x

    cache_on_disk(double, "a test")
    return double


def hits(function: Any) -> int:
    return sum(function._cache_hits.values())


def test_compiled_once_with_one_message_then_loaded_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # with an empty cache each
        for path in (tmp_path / "gym_dr").glob("*.bin"):
            path.unlink()
        first = fresh(tmp_path, monkeypatch)
        assert first(21) == 42
    assert capsys.readouterr().err.count("compiling a test for this machine") == 1
    second = fresh(tmp_path, monkeypatch)
    assert second(21) == 42
    assert capsys.readouterr().err == ""
    assert (hits(first), hits(second)) == (0, 1)


def test_files_that_nobody_has_loaded_for_two_months_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(tmp_path, monkeypatch)(21)
    (loaded,) = (tmp_path / "gym_dr").glob("*.bin")
    old, newer = loaded.with_name("older-version.bin"), loaded.with_name("other-version.bin")
    for path, days in ((loaded, 90), (old, 90), (newer, 30)):
        path.touch()
        os.utime(path, (0, path.stat().st_mtime - 86400 * days))
    again = fresh(tmp_path, monkeypatch)
    assert again(21) == 42
    assert hits(again) == 1
    again(0.5)  # is compiled and written
    assert len(list(loaded.parent.glob("*.bin"))) == 3
    assert (loaded.exists(), newer.exists(), old.exists()) == (True, True, False)


@pytest.mark.parametrize("damage", ["empty", "short", "flipped"])
def test_a_damaged_file_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    fresh(tmp_path, monkeypatch)(21)
    (path,) = (tmp_path / "gym_dr").glob("*.bin")
    data = bytearray(path.read_bytes())
    whole = bytes(data)
    data[len(data) // 2] ^= 1
    path.write_bytes({"empty": b"", "short": whole[:-100], "flipped": bytes(data)}[damage])
    again = fresh(tmp_path, monkeypatch)
    assert again(21) == 42
    assert hits(again) == 0
    last = fresh(tmp_path, monkeypatch)
    assert last(21) == 42
    assert hits(last) == 1


def test_sources_are_a_module_and_all_that_it_imports_from_the_package_directly_or_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    # pcg64 imports flags and errors, and flags kernel, in turn; numba is covered by its version
    names = ["errors.py", "flags.py", "kernel.py", "module.py", "pcg64.py"]
    for line in (
        "from gym_dr.compiled import pcg64",
        "from gym_dr.compiled.pcg64 import integer, uniform",
        "import gym_dr.compiled.pcg64",
        "from gym_dr.compiled import (\n    pcg64,  # random numbers\n)",
        "def function():\n    from gym_dr.compiled import pcg64",
    ):
        module.write_text(f"import numba\n{line}\n")
        assert sorted(path.name for path in sources_of(module)) == names, line
    before = source_key(module)
    module.write_text("import numba\n")
    assert source_key(module) != before


def test_fields_of_tuples_in_another_order_are_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # machine code finds fields by their place, and the types alone are the same
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @njit
    def quotient(pair: Any) -> Any:
        return pair.above / pair.below

    for fields in (["above", "below"], ["below", "above"]):
        cache_on_disk(quotient, "a test")
        pair: Any = namedtuple("pair", fields)
        assert quotient(pair(above=6.0, below=3.0)) == 2.0
    assert len(list((tmp_path / "gym_dr").glob("*.bin"))) == 2


def test_a_change_of_version_is_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(tmp_path, monkeypatch)(21)
    monkeypatch.setattr("numba.__version__", "0.0")
    changed = fresh(tmp_path, monkeypatch)
    assert changed(21) == 42
    assert hits(changed) == 0
    assert len(list((tmp_path / "gym_dr").glob("*.bin"))) == 2


def test_another_processor_is_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = fresh(tmp_path, monkeypatch)._cache

    class Target:
        def __init__(self, processor: str) -> None:
            self.processor = processor

        def codegen(self) -> Target:
            return self

        def magic_tuple(self) -> tuple[str, ...]:
            return ("x86_64", self.processor, "+avx2")

    assert kernel.path("int64", Target("skylake")) != kernel.path("int64", Target("znver4"))


def test_of_two_processes_that_start_at_once_one_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    processes = [multiprocessing.Process(target=runpy.run_path, args=(str(script),)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert capfd.readouterr().err.count("compiling") == 1  # the other waited and found the result
    runpy.run_path(str(script))
    output = capfd.readouterr()
    assert output.out == "hits 1\n"
    assert output.err == ""
    assert len([*(tmp_path / "gym_dr").glob("*.bin")]) == 1


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="processes cannot be forked")
def test_a_fork_waits_for_a_thread_that_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, held = fresh(tmp_path, monkeypatch), threading.Event()
    process = multiprocessing.get_context("fork").Process(target=function, args=(21,))

    def hold() -> None:
        with global_compiler_lock:
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    process.start()
    process.join(20)
    stuck = process.is_alive()
    process.kill()
    thread.join()
    assert not stuck


def test_without_a_writable_folder_it_compiles_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    function = fresh(blocked, monkeypatch)
    assert function(21) == 42
    assert "no cache folder is writable" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="POSIX permissions")
def test_a_folder_that_others_can_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "gym_dr"
    shared.mkdir()
    shared.chmod(0o777)
    assert fresh(tmp_path, monkeypatch)._cache.cache_path == ""


def test_numbas_setting_which_a_file_in_the_current_folder_changes_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))  # cache_dir in .numba_config.yaml
    folder = cache.cache_folder()
    assert folder is not None
    assert tmp_path not in folder.parents
    assert Path(cache.__file__).parent not in [folder, *folder.parents]  # nor is anything written beside the package


def test_without_a_known_home_folder_there_is_no_cache_unless_its_folder_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user without an account
    assert cache.cache_folder() is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "gym_dr"


def test_a_compiler_that_is_turned_off_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(ConfigError, match="NUMBA_DISABLE_JIT"):
        cache_on_disk(njit(lambda x: x), "a test")
