"""Compiled functions on disk, so that a user waits for the compiler once.

Numba's own cache looks at the source file of the compiled function alone, would miss a change in the modules that it
calls, writes beside the package, and passes on whatever a damaged file makes of ``pickle``. This one is keyed by the
source of the function and of all that it imports from this package, numba, Python and the processor; lives in the
user's cache folder; writes files whole or not at all, so that two processes may start at once; and compiles again if a
file's checksum is wrong.

The only parts of numba used beyond its documented interface are those by which its own cache stores code
(``CompileResult._reduce`` and ``_rebuild``, and a dispatcher's ``_cache``).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import llvmlite  # type: ignore[import-untyped]
import numba
from numba.core import config, serialize, types
from numba.core.compiler import CompileResult

_DIGEST_BYTES = 32
_IMPORT = re.compile(r"^ *(?:from|import) (gym_dr[.\w]*)(?: import (\([^)]*\)|[^(\n]*))?", re.MULTILINE)
_MESSAGE = "gym_dr: compiling {what} for this machine. This happens once (the result is kept in {folder})."


def sources_of(file: Path) -> dict[Path, bytes]:
    """A module's file and those of all modules of this package that it imports, directly or not, with what they say."""
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


def source_key(*files: Path) -> str:
    """Digest of everything but the processor and the arguments that the machine code of modules depends on."""
    digest = hashlib.sha256()
    for path, text in sorted({path: text for file in files for path, text in sources_of(file).items()}.items()):
        digest.update(path.name.encode() + b"\0" + text)
    versions = (numba.__version__, llvmlite.__version__, sys.version, sys.byteorder, str(sys.maxsize))
    digest.update("\0".join(versions).encode())
    return digest.hexdigest()[:24]


def cache_folder() -> Path | None:
    """A folder that this user can write and nobody else can (``NUMBA_CACHE_DIR`` if set), or None."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    given = getattr(config, "CACHE_DIR", "")
    candidates = [Path(given)] if given else [home, Path(tempfile.gettempdir()) / f"cache-{user}"]
    for candidate in candidates:
        folder = candidate / "gym_dr"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK) and _is_ours(folder):
            return folder
    return None


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can put files there: what is unpickled from a file runs as code."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def cache_on_disk(function: Any, what: str, *parts: Path) -> None:
    """Stores what a jitted function is compiled to, as ``cache=True`` would with numba's own cache.

    Args:
        function: Decorated with ``njit``. All that it calls must be its module's own or imported from this package.
        what: What it is in a user's words, and how long compiling takes, for the message.
        *parts: Files of functions that it was handed instead.
    """
    name = "-".join([*(part.stem for part in parts), function.__name__])
    function._cache = KernelCache(name, what, Path(function.py_func.__code__.co_filename), *parts)


def _field_names(signature: Any) -> Iterator[Any]:
    """Of named tuples among argument types: machine code finds fields by their place, numba's names do not tell it."""
    for kind in signature:
        if isinstance(kind, types.BaseTuple):
            yield getattr(kind, "fields", None)
            yield from _field_names(cast(Iterable[Any], kind))


class KernelCache:
    """Takes the place of numba's cache in a dispatcher."""

    def __init__(self, name: str, what: str, *files: Path) -> None:
        """Makes a cache for one function that is made of some modules; see ``cache_on_disk``."""
        self._name = name
        self._what = what
        self._folder = cache_folder()
        self._key = source_key(*files)

    @property
    def cache_path(self) -> str:
        """Where files are kept; empty if there is no such place."""
        return str(self._folder or "")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled function for these argument types, or None if it must be compiled; then says so on stderr."""
        target_context.refresh()
        result = self._load(signature, target_context)
        if result is None:
            where = self._folder or "memory only: no folder for it can be written"
            print(_MESSAGE.format(what=self._what, folder=where), file=sys.stderr, flush=True)
        return result

    def _load(self, signature: Any, target_context: Any) -> Any:
        path = self._path(signature, target_context.codegen())
        try:
            data = path.read_bytes() if path else b""
        except OSError:
            return None
        digest, payload = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if len(digest) < _DIGEST_BYTES or hashlib.sha256(payload).digest() != digest:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(payload))  # type: ignore[no-untyped-call]
        except Exception:  # a file of ours that this numba cannot read, whatever the reason, is compiled anew
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled function; a full or read-only disk only costs the next process its time."""
        path = self._path(signature, result.codegen)
        if path is None:
            return
        try:
            payload = serialize.dumps(result._reduce())  # type: ignore[no-untyped-call]
        except Exception:  # a numba that stores code in another way: nothing is kept
            return
        try:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        """One file for each argument types and processor; ``magic_tuple`` is the processor and its features."""
        if self._folder is None:
            return None
        form = (signature, *_field_names(signature), codegen.magic_tuple())
        digest = hashlib.sha256(repr(form).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}-{self._key}-{digest}.bin"

    def enable(self) -> None:
        """Part of numba's interface; this cache is always on."""

    def disable(self) -> None:
        """Part of numba's interface; this cache is always on."""

    def flush(self) -> None:
        """Part of numba's interface (``recompile``): nothing to forget, files are keyed by their source."""
