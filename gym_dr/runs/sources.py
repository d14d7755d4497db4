"""Modules and files that register environments; a configuration runs them only with the user's consent."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import Any

import gymnasium as gym

from gym_dr.envs.family import family_of, origin_of
from gym_dr.errors import ConfigError, GymDrError, as_path, shortened

REGISTERED_BY = "registered_by"  # key of a configuration: see ``source_of``
ALWAYS_THERE = ("gym_dr", "gymnasium")  # packages whose environments are registered in every process


def source_of(env_id: str) -> str:
    """The module, or the file of a program, that registered an environment.

    Empty for environments of gym_dr, its plugins and Gymnasium, and if there is nothing to import, as in a notebook.
    """
    module, colon, name = env_id.rpartition(":")
    family, spec = family_of(env_id), gym.registry.get(name)
    if not colon and family is not None:
        module = family.origin[0] if family.origin is not None else ""
    elif not colon and spec is not None:
        entry_point = spec.entry_point
        module = entry_point.partition(":")[0] if isinstance(entry_point, str) else origin_of(entry_point)[0]
    if module == "__main__":
        program = getattr(sys.modules[module], "__file__", None)
        return os.path.abspath(program) if program else ""
    return "" if module.partition(".")[0] in ALWAYS_THERE else module


def check_source(env_id: str, trusted: Collection[str], source: Any = "") -> None:
    """Checks the id of an environment in a file; imports its source only with the user's consent.

    Modules that are already imported need no consent.

    Args:
        env_id: The id; the caller imports the module of a "module:id".
        trusted: Modules and files whose code may run.
        source: The environment's source, as in the file; see ``source_of``.

    Raises:
        ConfigError: Another module or file would be imported, or it does not register the environment.
    """
    module, colon, _ = env_id.rpartition(":")
    if not colon and (not source or env_id in gym.registry):
        return
    needed = module if colon else source
    if not isinstance(needed, str):
        raise ConfigError(f"{REGISTERED_BY}: expected a module or a file, got {shortened(needed)}.")
    if needed not in sys.modules and Path(needed).resolve() not in [as_path(one).resolve() for one in trusted]:
        raise ConfigError(
            f"env: expected the id of a registered environment, got {shortened(env_id)}, for which {shortened(needed)} "
            f"must be imported. This runs its code. If you trust it: `trust={[shortened(needed)[1:-1]]!r}`"
        )
    if not colon:
        import_source(f"Environment {env_id!r}", needed)
        if env_id not in gym.registry:
            raise ConfigError(f"env: {needed} does not register {env_id!r}. Put the right module in front: MODULE:ID.")


def import_source(needed_for: str, source: str) -> None:
    """Imports a module, or runs a file as one.

    Args:
        needed_for: Begins messages.
        source: The module or file.

    Raises:
        ConfigError: It cannot be imported.
    """
    try:
        if source.endswith(".py") and source not in sys.modules:
            _run_file(source)
        importlib.import_module(source)  # Gymnasium does the same with the "FILE.py:ID" of a file
    except GymDrError:  # of its registrations
        raise
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
        inside = [(f.filename, f.lineno) for f in frames if f.filename not in (__file__, importlib.__file__)]
        inside += [(error.filename or "", error.lineno)] if isinstance(error, SyntaxError) else []
        if not inside:  # it was not even found
            raise ConfigError(
                f"{needed_for}: module {source!r} cannot be imported: {error}. Install it, add its folder to "
                "PYTHONPATH, or name its file: FILE.py:ID."
            ) from None
        raise ConfigError(
            f"{needed_for}: module {source!r} fails with {type(error).__name__}: {error}, at {inside[-1][0]}:"
            f"{inside[-1][1]}."
        ) from error


def _run_file(path: str) -> None:
    """Runs a file as a module whose name is the path."""
    sys.path.append(os.path.dirname(path))  # the file may import modules beside it
    spec = importlib.util.spec_from_file_location(path, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path]
        raise
