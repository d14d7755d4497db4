"""Policies that are not runs: callables, functions by name, ONNX files and files of Stable-Baselines3.

Functions are code, and files of Stable-Baselines3 and of its ``VecNormalize`` are pickles, which can run code: none is
loaded unless the user names it as trusted. ONNX files are data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import json
import operator
import re
import uuid
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError, shortened
from gym_dr.evaluation.acting import takes_episode_starts, with_episode_starts
from gym_dr.evaluation.actions import checked
from gym_dr.evaluation.cells import nominal
from gym_dr.evaluation.exported import read_metadata
from gym_dr.evaluation.policies import FrozenPolicy
from gym_dr.integrations.onnx_policy import MAX_FILE, OnnxPolicy, read_policy
from gym_dr.integrations.sb3_policy import digest_of, load_policy, read_saved
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import ContextRanges
from gym_dr.runs.plain import read_plain
from gym_dr.training.api import Policy
from gym_dr.wording import at_command_line, either, flag, spelled

EXPECTED = "[NAME=]sb3:FILE.zip, [NAME=]onnx:FILE.onnx or [NAME=]package.module:function"
PROBED = 64  # episodes on whose first observations functions are compared ...
PROBED_STEPS = 8  # ... and their next ones, if they remember

_TEXT = re.compile(
    r"(?:(?P<name>[^=:]+)=)?(?:sb3:(?P<file>.+)|onnx:(?P<graph>.+)|(?P<function>[^\W\d][\w.]*:[^\W\d][\w.]*))"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What only runs record about themselves."""

    env: str
    space: ParamSpace | None  # what may vary in it; None if nothing may
    randomization: Randomization | None  # of their training; None if unknown
    context_ranges: ContextRanges | None = None  # of the parameters that they observe, mapped to [-1, 1]
    stochastic: bool = False  # whether Stable-Baselines3 samples actions
    trust: Collection[str] = ()  # files and modules whose code may be run


def is_policy_text(text: str) -> bool:
    """Whether a text names a policy (see ``EXPECTED``) rather than a run."""
    return _TEXT.fullmatch(text) is not None and not Path(text).exists()


def is_file_text(text: object) -> bool:
    """Whether a text names a file of Stable-Baselines3."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    return found is not None and found["file"] is not None


def read_if_onnx(given: Any, name: str | None = None) -> tuple[str | None, Any]:
    """Reads an ONNX file, once; what it holds decides how it is opened.

    Args:
        given: A text that names one; anything else is returned as it is.
        name: Name of the policy; None for that in the text or of the file.

    Returns:
        The name, and the ``OnnxPolicy``.

    Raises:
        ConfigError: There is no such file, a package is missing, or the file is no policy, or a dangerous one.
    """
    found = _TEXT.fullmatch(given) if isinstance(given, str) else None
    if found is None or found["graph"] is None:
        return name, given
    path = Path(found["graph"])
    try:
        content = read_plain(path.resolve(), MAX_FILE)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return name or found["name"] or path.stem, read_policy(path, content)


def open_foreign(given: Any, setting: Setting, name: str | None = None) -> FrozenPolicy:
    """Opens a policy that is not a run.

    Args:
        given: A text (``EXPECTED``), a callable (see ``takes_episode_starts``), or what ``read_if_onnx`` returns.
        setting: Its environment, and the files and modules that are trusted.
        name: Name of the policy; None for that of the file or function.

    Raises:
        ConfigError: It is neither, is not trusted, or cannot be loaded.
        InvalidActionError: A function's actions do not fit the environment.
    """
    name, given = read_if_onnx(given, name)
    if isinstance(given, OnnxPolicy):
        return _open_onnx(given, name or given.path.stem, setting)
    if not isinstance(given, str):
        if not callable(given):
            raise ConfigError(
                "Expected a policy: a run, a callable that takes observations (N, ...), and episode_starts (N,) if it "
                f"remembers, and returns actions, or a text {EXPECTED}, got {shortened(given)}."
            )
        found = getattr(given, "__name__", type(given).__name__)
        record = {"kind": "callable", "path": None, "algorithm": None, "seed": None, "actions": None}
        # a callable may change without its code, so episodes of earlier calls are never reused
        own_name = name or found.strip("<>")
        source = f"policy {own_name!r}"
        act = with_episode_starts(given, source)
        return _policy(own_name, source, lambda envs: act, setting, uuid.uuid4().bytes, record)
    match = _TEXT.fullmatch(given)
    if match is None:
        raise ConfigError(f"{either(flag('policy'), 'policies')}: expected {EXPECTED}, got {shortened(given)}.")
    name = name or match["name"]
    return (
        _open_file(match["file"], name, setting) if match["file"] else _open_function(match["function"], name, setting)
    )


def _open_file(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    saved = read_saved(Path(text))
    source, statistics = f"sb3:{text}", saved.statistics
    _check_trust(source, [saved.path, *([] if statistics is None else [statistics])], setting.trust)
    loaded, digest = load_policy(saved, stochastic=setting.stochastic), digest_of(saved)
    actions = "stochastic" if setting.stochastic else "deterministic"
    record = {
        "kind": "sb3",
        "path": str(saved.path),
        "algorithm": saved.algorithm,
        "seed": saved.seed,
        "steps": saved.steps,
        "actions": actions,
        "statistics": None if statistics is None else statistics.relative_to(saved.path.parent).as_posix(),
        "stable_baselines3": saved.version,
    }
    policy = _policy(name or saved.path.stem, source, loaded.make, setting, f"{actions} {digest}".encode(), record)
    with contextlib.closing(policy.make_envs(nominal(episodes=1))) as envs:
        policy.make(envs)  # if it does not fit, a better message
        frames = loaded.frames(envs)
    return policy if frames == 1 else dataclasses.replace(policy, record={**policy.record, "frames": frames})


def _open_onnx(found: OnnxPolicy, name: str, setting: Setting) -> FrozenPolicy:
    told = read_metadata(found, setting.env, setting.space)
    if setting.randomization is None:
        setting = dataclasses.replace(setting, randomization=told.randomization)
    if found.says_what_it_observes:
        setting = dataclasses.replace(setting, context_ranges=None)
    record = {"kind": "onnx", "path": str(found.path), "algorithm": told.algorithm, "seed": told.seed}
    record["actions"] = "deterministic"
    policy = _policy(name, f"onnx:{found.path}", found.make, setting, found.digest.encode(), record)
    if not found.says_what_it_observes:
        return policy
    shown: Any = {"context_ranges": told.context_ranges, "context_span": told.context_span, "past": told.past}
    return dataclasses.replace(policy, **shown)


def _check_trust(source: str, files: Sequence[Path], trust: Collection[str]) -> None:
    """Checks that the user names every file whose code would run; a file beside a trusted one is not trusted.

    Raises:
        ConfigError: One is not named; the message has the options that name it.
    """
    trusted = {Path(one).resolve() for one in trust}
    if missing := [file for file in files if file.resolve() not in trusted]:
        statistics = files[1:] and files[1] in missing
        raise ConfigError(
            f"policy {source}: files of Stable-Baselines3 and of VecNormalize hold pickles, which can run any code "
            f"when they are read. If you trust the source of {' and '.join(file.name for file in missing)}: "
            f"{spelled('trust', [str(file) for file in (missing if at_command_line() else files)])}"
            + (f" (if {files[1].name} does not belong to the policy, move it elsewhere)" if statistics else "")
        )


def _open_function(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    module_name, _, path = text.partition(":")
    if module_name not in setting.trust:
        raise ConfigError(
            f"policy {text}: importing {module_name} runs its code. If you trust it: {spelled('trust', [module_name])}"
        )
    try:
        module = importlib.import_module(module_name)
        found = operator.attrgetter(path)(module)
    except Exception as error:  # a module may raise anything when it is imported
        raise ConfigError(
            f"policy {text}: cannot be imported: {type(error).__name__}: {error}. Install the module, or add its "
            "folder to PYTHONPATH."
        ) from error
    if not callable(found):
        raise ConfigError(f"policy {text}: expected a function, got {shortened(found)}.")
    file = getattr(module, "__file__", None)
    source = Path(file).read_bytes() if file else b""
    record = {"kind": "function", "path": None, "algorithm": None, "seed": None, "actions": None, "function": text}
    own_name, place = name or path.rpartition(".")[2], f"policy {text}"
    act = with_episode_starts(found, place)
    policy = _policy(own_name, place, lambda envs: act, setting, b"", record)
    # its actions too, since they depend on weights that the module may load; those of a memory show in later steps
    actions = policy.check(PROBED, PROBED_STEPS if takes_episode_starts(found) else 1).tobytes()
    return _policy(own_name, place, lambda envs: act, setting, text.encode() + source + actions, record)


def _policy(
    name: str,
    source: str,
    make: Callable[[VectorEnv[Any, Any, Any]], Policy],
    setting: Setting,
    content: bytes,
    record: dict[str, Any],
) -> FrozenPolicy:
    """A policy that ``make`` makes for its environments; ``content`` determines its actions on an observation."""
    ranges = {one: [float(low), float(high)] for one, (low, high) in (setting.context_ranges or {}).items()}
    if ranges:
        content, record = content + json.dumps(ranges).encode(), {**record, "context": ranges}
    return FrozenPolicy(
        name=name,
        env=setting.env,
        source=source,
        space=setting.space,
        randomization=setting.randomization,
        context_ranges=setting.context_ranges,
        context_span=1.0,  # as in environments that are made with context="observation"
        digest=hashlib.sha256(content).hexdigest(),
        load=lambda envs: checked(make(envs), envs, source, setting.env),
        record=record,
    )
