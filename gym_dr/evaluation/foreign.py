"""Policies that are not runs: callables, functions by name and files of Stable-Baselines3.

Functions are code, and files of Stable-Baselines3 and of its ``VecNormalize`` are pickles, which can run code: none is
loaded unless the user names it as trusted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import re
import shlex
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, shortened
from gym_dr.evaluation.actions import checked
from gym_dr.evaluation.policies import FrozenPolicy
from gym_dr.integrations.sb3_policy import digest_of, load_policy, read_saved
from gym_dr.randomization.spec import Randomization
from gym_dr.training.api import Policy

EXPECTED = "[NAME=]sb3:FILE.zip or [NAME=]package.module:function"
PROBED = 64  # observations on which functions are compared

_TEXT = re.compile(r"(?:(?P<name>[^=:]+)=)?(?:sb3:(?P<file>.+)|(?P<function>[^\W\d][\w.]*:[^\W\d][\w.]*))")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What only runs record about themselves."""

    env: str
    has_params: bool
    randomization: Randomization | None  # of their training; None if unknown
    stochastic: bool = False  # whether Stable-Baselines3 samples actions
    trust: Collection[str] = ()  # files and modules whose code may be run


def is_policy_text(text: str) -> bool:
    """Whether a text names a policy (see ``EXPECTED``) rather than a run."""
    return _TEXT.fullmatch(text) is not None and not Path(text).exists()


def is_file_text(text: object) -> bool:
    """Whether a text names a file of Stable-Baselines3."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    return found is not None and found["file"] is not None


def open_foreign(given: Any, setting: Setting, name: str | None = None) -> FrozenPolicy:
    """Opens a policy that is not a run.

    Args:
        given: A text (``EXPECTED``), or a callable: observations ``(N, ...)`` -> actions.
        setting: Its environment, and the files and modules that are trusted.
        name: Name of the policy; None for that of the file or function.

    Raises:
        ConfigError: It is neither, is not trusted, or cannot be loaded.
        InvalidActionError: A function's actions do not fit the environment.
    """
    if not isinstance(given, str):
        if not callable(given):
            raise ConfigError(
                f"Expected a policy: a run, a callable that takes observations (N, ...) and returns actions, or a text "
                f"{EXPECTED}, got {shortened(given)}."
            )
        found = getattr(given, "__name__", type(given).__name__)
        record = {"kind": "callable", "path": None, "algorithm": None, "seed": None, "actions": None}
        # a callable may change without its code, so episodes of earlier calls are never reused
        own_name = name or found.strip("<>")
        return _policy(own_name, f"policy {own_name!r}", given, setting, uuid.uuid4().hex, record)
    match = _TEXT.fullmatch(given)
    if match is None:
        raise ConfigError(f"--policy: expected {EXPECTED}, got {shortened(given)}.")
    name = name or match["name"]
    return (
        _open_file(match["file"], name, setting) if match["file"] else _open_function(match["function"], name, setting)
    )


def _open_file(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    saved = read_saved(Path(text))
    source, statistics = f"sb3:{text}", saved.statistics
    _check_trust(source, [saved.path, *([] if statistics is None else [statistics])], setting.trust)
    make, digest = load_policy(saved, stochastic=setting.stochastic), digest_of(saved)
    actions = "stochastic" if setting.stochastic else "deterministic"
    return FrozenPolicy(
        name=name or saved.path.stem,
        env=setting.env,
        source=source,
        has_params=setting.has_params,
        randomization=setting.randomization,
        digest=hashlib.sha256(f"{actions} {digest}".encode()).hexdigest(),
        load=lambda envs: checked(make(envs), envs, source, setting.env),
        record={
            "kind": "sb3",
            "path": str(saved.path),
            "algorithm": saved.algorithm,
            "seed": saved.seed,
            "steps": saved.steps,
            "actions": actions,
            "statistics": None if statistics is None else statistics.relative_to(saved.path.parent).as_posix(),
            "stable_baselines3": saved.version,
        },
    )


def _check_trust(source: str, files: Sequence[Path], trust: Collection[str]) -> None:
    """Checks that the user names every file whose code would run; a file beside a trusted one is not trusted.

    Raises:
        ConfigError: One is not named; the message has the options that name it.
    """
    trusted = {Path(one).resolve() for one in trust}
    if missing := [file for file in files if file.resolve() not in trusted]:
        statistics = files[1:] and files[1] in missing
        raise ConfigError(
            f"--policy {source}: files of Stable-Baselines3 and of VecNormalize hold pickles, which can run any code "
            f"when they are read. If you trust the source of {' and '.join(file.name for file in missing)}: "
            f"{' '.join(f'--trust {shlex.quote(str(file))}' for file in missing)}"
            + (f" (if {files[1].name} does not belong to the policy, move it elsewhere)" if statistics else "")
        )


def _open_function(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    module_name, _, path = text.partition(":")
    if module_name not in setting.trust:
        raise ConfigError(
            f"--policy {text}: importing {module_name} runs its code. If you trust it: --trust {module_name}"
        )
    try:
        module = found = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module may raise anything when it is imported
        raise ConfigError(
            f"--policy {text}: cannot be imported: {type(error).__name__}: {error}. Install the module, or add its "
            "folder to PYTHONPATH."
        ) from error
    if not callable(found):
        raise ConfigError(f"--policy {text}: expected a function, got {shortened(found)}.")
    file = getattr(module, "__file__", None)
    source = Path(file).read_bytes() if file else b""
    record = {"kind": "function", "path": None, "algorithm": None, "seed": None, "actions": None, "function": text}
    policy = _policy(name or path.rpartition(".")[2], f"policy {text}", found, setting, "", record)
    # its actions too, since they depend on weights that the module may load
    actions = policy.check(PROBED).tobytes()
    return dataclasses.replace(policy, digest=hashlib.sha256(text.encode() + source + actions).hexdigest())


def _policy(name: str, source: str, act: Policy, setting: Setting, digest: str, record: dict[str, Any]) -> FrozenPolicy:
    return FrozenPolicy(
        name=name,
        env=setting.env,
        source=source,
        has_params=setting.has_params,
        randomization=setting.randomization,
        digest=digest,
        load=lambda envs: checked(act, envs, source, setting.env),
        record=record,
    )
