"""A disk cache of compiled functions, so that a user waits for the compiler only once.

Numba's own cache checks only the source file of the compiled function, so it misses changes in the modules that it
calls; it writes next to the package, and unpickles damaged files. This cache is keyed by the source of the function and
of everything that it imports from this package, and by numba, Python and the processor. It lives in the user's cache
folder, writes files atomically, so that two processes may start at once, and recompiles if a file's checksum is wrong.

A function may name *parts*: large functions that it calls, which are stored as well. While one process compiles the
function, a second one, ``companion.py``, compiles parts. Each file has a lock: whoever finds it taken compiles another
part meanwhile, or waits. Locks are taken from callers to callees only, so nobody waits in a circle.

The only parts of numba used beyond its documented interface are those with which its own cache stores code
(``CompileResult._reduce`` and ``_rebuild``, and a dispatcher's ``_cache``), and the lock that it holds meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import llvmlite  # type: ignore[import-untyped]
import numba
from filelock import FileLock, Timeout
from numba.core import serialize, types
from numba.core.compiler_lock import global_compiler_lock

from gym_dr.compiled import companion
from gym_dr.compiled.kernel import rebuild
from gym_dr.errors import ConfigError, say

_DIGEST_BYTES = 32
_PATIENCE = 120.0  # seconds to wait for another process that compiles a function
_IMPORT = re.compile(r"^ *(?:from|import) (gym_dr[.\w]*)(?: import (\([^)]*\)|[^(\n]*))?", re.MULTILINE)
_MESSAGE = (
    "gym_dr: compiling {what} for this machine. This may take up to a minute, but only once (the result is cached in "
    "{folder})."
)

Part = tuple[Any, tuple[Any, ...]]  # a compiled function that is cached on disk, and the types of its arguments
_announced: set[str] = set()  # messages that this process has shown, one for all functions of a kind
_parts: list[Part] = []  # that a function which is being compiled here calls, and nobody has begun
_locks: dict[Path | None, FileLock] = {}  # of files that this process is about to write, until they are dropped
_needed: dict[Path | None, str] = {}  # files, and the functions in them
_watching = threading.Event()


def sources_of(file: Path) -> dict[Path, bytes]:
    """Path and source of a module and of all modules of this package that it imports, directly or indirectly."""
    root = Path(__file__).parents[2]
    sources = {file: file.read_bytes()}
    waiting = [file]
    while waiting:
        for module, names in _IMPORT.findall(sources[waiting.pop()].decode()):
            base = root.joinpath(*module.split("."))
            modules = re.findall(r"\w+", names) if base.is_dir() else []
            for path in (base.with_suffix(".py"), *(base / f"{name}.py" for name in modules)):
                if path not in sources and path.is_file():
                    sources[path] = path.read_bytes()
                    waiting.append(path)
    return sources


def source_key(file: Path, content: str = "") -> str:
    """Digest of everything that the machine code of a module depends on, except the processor and argument types."""
    digest = hashlib.sha256(content.encode())
    for path, text in sorted(sources_of(file).items()):
        digest.update(path.name.encode() + b"\0" + text)
    versions = (numba.__version__, llvmlite.__version__, sys.version, sys.byteorder, str(sys.maxsize))
    digest.update("\0".join(versions).encode())
    return digest.hexdigest()[:24]


def cache_folder() -> Path | None:
    """A folder that only this user can write to (in ``NUMBA_CACHE_DIR`` if set), or None."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        # not numba's own setting, which a .numba_config.yaml in the current folder changes, whoever wrote it
        folder = Path(os.environ.get("NUMBA_CACHE_DIR") or home).expanduser() / "gym_dr"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home folder is known
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) and _is_ours(folder) else None


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write files there; unpickling a file may run code."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def cache_on_disk(
    function: Any,
    what: str,
    *,
    name: str = "",
    content: str = "",
    source: Path | None = None,
    parts: Sequence[Part] = (),
) -> None:
    """Caches the machine code of a jitted function, like ``cache=True`` with numba's own cache.

    Args:
        function: Decorated with ``njit``. May call only functions of its module or imported from this package, and
            those that ``content`` describes.
        what: Description for users, for the message.
        name: Of what it belongs to, for the name of the file.
        content: Text that differs if other functions that it calls differ.
        source: File of the functions that it calls, if they are not its own module's.
        parts: Kernels that it calls, by name in their modules, which a second process may compile.

    Raises:
        ConfigError: The compiler is turned off.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # numba sets it from the environment
        raise ConfigError("NUMBA_DISABLE_JIT: expected no such variable: this code runs compiled only. Unset it.")
    file = source or Path(function.py_func.__code__.co_filename)
    name = "-".join(filter(None, [name, function.__name__]))
    function._cache = KernelCache(name, what, source_key(file, content), parts)


def _field_names(signature: Any) -> Iterator[Any]:
    """Field names of named tuples among argument types, which machine code finds by position and numba omits."""
    for kind in signature:
        if isinstance(kind, types.BaseTuple):
            yield getattr(kind, "fields", None)
            yield from _field_names(cast(Iterable[Any], kind))


def _reserve(path: Path | None) -> bool:
    """Whether nobody else is about to write a file; then, this process may."""
    if path is None or path in _locks:
        return True
    lock = FileLock(f"{path}.lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except (OSError, NotImplementedError):  # without locks, each process compiles
        return True
    _locks[path] = lock
    if not _watching.is_set():
        _watching.set()
        threading.Thread(target=_watch, name="gym_dr compiles", daemon=True).start()
    return True


def _compile_part() -> bool:
    """Compiles the last part that nobody has begun; False if there is none."""
    while _parts:
        function, signature = _parts.pop()
        path = function._cache.path(signature, function.targetctx)
        if _reserve(path):
            with contextlib.suppress(Exception):  # whoever calls it finds out
                function.compile(signature)
            _locks.pop(path, None)
            return True
    return False


def serve() -> None:
    """The life of a companion: compiles the parts that it is given, with the key of the function that calls them."""
    key, parts = companion.receive()
    KernelCache("", "", key, parts)._expect_parts()
    with global_compiler_lock:
        while _compile_part():
            pass
    os._exit(0)  # whatever modules do at the end of an interpreter, such as compile


def _watch() -> None:
    """Tells on a terminal what this process compiles and how much is left; in the end, lets others compile.

    It runs in a thread of its own, as numba tells its cache nothing of a function that cannot be compiled.
    """
    began = time.monotonic()
    while not global_compiler_lock._lock.acquire(timeout=1.0):
        now = _needed.get(next(reversed([*_locks]), None), "")
        left = sum(not path.exists() for path in [*_needed] if path)
        line = f"gym_dr: compiling {now}, {left} of {len(_needed)} parts left, {time.monotonic() - began:.0f} s"
        say(f"{line:79}", end="\r")
    say(" " * 79, end="\r")
    _locks.clear()
    _watching.clear()
    global_compiler_lock._lock.release()


def _settle() -> None:
    """Waits for threads that compile, before a fork: none of them would give back numba's lock in the child."""
    global_compiler_lock._lock.acquire()
    _locks.clear()
    _watching.clear()


if hasattr(os, "register_at_fork"):
    _go_on = global_compiler_lock._lock.release
    os.register_at_fork(before=_settle, after_in_parent=_go_on, after_in_child=_go_on)


class KernelCache:
    """Replaces numba's cache in a dispatcher."""

    def __init__(self, name: str, what: str, key: str, parts: Sequence[Part] = ()) -> None:
        """Makes a cache for one function, and for its parts; see ``cache_on_disk``."""
        self._name = name
        self._what = what
        self._folder = cache_folder()
        self._key = key
        self.parts = parts

    @property
    def cache_path(self) -> str:
        """The cache folder; empty if there is none."""
        return str(self._folder or "")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled function for these argument types; None, with a message on stderr, if it must be compiled.

        One process compiles it: others compile something else or wait, and find the result.
        """
        target_context.refresh()
        path = self.path(signature, target_context)
        result = self._load(path, target_context)
        if result is None and path is not None:
            _needed[path] = self._name
            self._expect_parts()
            deadline = time.monotonic() + _PATIENCE
            while not _reserve(path) and time.monotonic() < deadline:
                if not _compile_part():
                    time.sleep(0.02)
            result = self._load(path, target_context)  # another process may have compiled it meanwhile
            if result is None and self.parts and _parts:  # not for a part itself: a companion has none
                companion.start(self._key, _parts, path.parents[1])
        if result is not None:
            _locks.pop(path, None)
            return result
        where = self._folder or "memory only, since no cache folder is writable"
        message = _MESSAGE.format(what=self._what, folder=where)
        if self._what and message not in _announced:
            _announced.add(message)
            say(message)
        return None

    def _expect_parts(self) -> None:
        """Notes the parts that are to be compiled."""
        for function, signature in self.parts:
            function._cache = KernelCache(function.__name__, "", self._key)
            path = function._cache.path(signature, function.targetctx)
            if path not in _needed and not path.exists():
                _needed[path] = function.__name__
                _parts.append((function, signature))

    def _load(self, path: Path | None, target_context: Any) -> Any:
        try:
            data = path.read_bytes() if path else b""
        except OSError:
            return None
        digest, payload = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if len(digest) < _DIGEST_BYTES or hashlib.sha256(payload).digest() != digest:
            return None
        try:
            os.utime(cast(Path, path))  # it is in use
            return rebuild(target_context, *pickle.loads(payload))
        except Exception:  # this numba cannot read the file, for whatever reason: compile again
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Stores a compiled function; if the disk is full or read-only, the next process compiles again."""
        path = self.path(signature, result.target_context)
        if path is None:
            return
        with contextlib.suppress(Exception):  # such as from a numba that stores code in another way
            payload = serialize.dumps(result._reduce())  # type: ignore[no-untyped-call]
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
            for old in path.parent.glob(f"*{path.suffix}*"):  # of older versions, not loaded for two months
                if path.stat().st_mtime - old.stat().st_mtime > 60 * 86400:
                    old.unlink()
        _locks.pop(path, None)

    def path(self, signature: Any, target_context: Any) -> Path | None:
        """The file for these argument types and this processor; ``magic_tuple`` is the processor and its features."""
        if self._folder is None:
            return None
        form = (signature, *_field_names(signature), target_context.codegen().magic_tuple())
        digest = hashlib.sha256(repr(form).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}-{self._key}-{digest}.bin"
