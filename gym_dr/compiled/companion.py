"""A second process that compiles parts of a function, to be found in the cache on disk.

It is a fresh interpreter with the same search path, since forking is not safe everywhere, and does not run the user's
script again. It shows nothing, and ends when its work is done or when the first process ends. If it cannot start, or
fails, all work is left to the first.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from importlib import import_module
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import IO, Any, cast

from gym_dr.compiled.processors import usable_threads

_START = "import sys; sys.path[:] = {}; from gym_dr.compiled.cache import serve; serve()"
_running: list[subprocess.Popen[bytes]] = []


def start(key: str, parts: Any, folder: Path) -> None:
    """Starts the second process, unless it runs or there is only one processor.

    Args:
        key: What ``receive`` returns there.
        parts: The same: compiled functions and the types of their arguments.
        folder: The value of ``NUMBA_CACHE_DIR`` there.
    """
    if _running or usable_threads() < 2:
        return
    orders = pickle.dumps((key, [(function.__module__, function.__name__, kinds) for function, kinds in parts]))
    command = [os.fsdecode(get_executable()), "-I", "-c", _START.format(sys.path)]
    with contextlib.suppress(OSError, ValueError):
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        _running.append(process)
        threading.Thread(target=_attend, args=(process, orders), name="gym_dr compiles", daemon=True).start()


def _attend(process: subprocess.Popen[bytes], orders: bytes) -> None:
    """Gives the second process its orders, and waits for its end."""
    with cast(IO[bytes], process.stdin) as pipe:
        with contextlib.suppress(OSError, ValueError):
            pipe.write(orders)
        process.wait()  # meanwhile the pipe stays open: its end tells that this process has ended
    _running.remove(process)


def receive() -> tuple[str, list[Any]]:
    """What ``start`` was given, in the second process, which ends with the first one from now on."""
    key, named = pickle.load(sys.stdin.buffer)
    # not the buffered read, which an interpreter cannot leave when it ends
    threading.Thread(target=lambda: (os.read(sys.stdin.fileno(), 1), os._exit(1)), daemon=True).start()
    return key, [(getattr(import_module(module), name), kinds) for module, name, kinds in named]
