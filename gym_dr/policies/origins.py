"""Opens a policy of each origin: a run, a callable, a function by name, a file, or random actions.

Functions are code, and files of Stable-Baselines3 and of its ``VecNormalize`` are pickles, which can run code: they are
loaded only if the user names them as trusted. ONNX files are data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import operator
import os
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError, as_path, located, raised_as, shortened
from gym_dr.integrations.onnx_policy import MAX_FILE, OnnxPolicy, read_policy
from gym_dr.integrations.sb3_policy import LoadedPolicy, SavedPolicy, digest_of, load_policy, read_saved
from gym_dr.options import check_fields, expect, is_number
from gym_dr.policies.frozen import (
    Draws,
    FrozenPolicy,
    checked,
    for_one_or_many,
    takes_episode_starts,
    with_episode_starts,
)
from gym_dr.randomization.context import context_ranges as checked_ranges
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.checkpoint import checkpoint_paths, load_newest
from gym_dr.runs.config import OpenedRun
from gym_dr.runs.environments import ContextRanges, check_source
from gym_dr.runs.folder import EVALUATION, read_plain
from gym_dr.training.api import EpisodeStarts, LoadPolicy, MemorylessPolicy, Policy
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.wrappers.frame_stack import Frames

RANDOM = "random"  # in place of a policy: uniform random actions

MAX_NAME = 100  # characters of an algorithm's name
_JSON = ("seed", "randomization", "observes_past", "observes_draw", "draw_span")  # of metadata

# entries of the policy's record, its training randomization (None if unknown), and what it observes, as fields of a
# ``FrozenPolicy``
Metadata = tuple[Mapping[str, Any], Randomization | None, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The user's settings for policies that do not record them."""

    env: str
    space: ParamSpace | None  # parameters of the environment; None if it has none
    randomization: Randomization | None  # of the policies' training; None if unknown
    context_ranges: ContextRanges | None  # of the observed parameters, mapped to [-1, 1]
    stochastic: bool | None  # whether actions are sampled; None for the default of their kind
    trust: Collection[str]  # files and modules whose code may be run


def open_trained(
    run: OpenedRun,
    *,
    home: Path,
    name: str | None = None,
    stochastic: bool | None = None,
) -> FrozenPolicy:
    """The policy in the newest checkpoint of a run."""
    folder, config, algorithm = run.folder, run.config, run.algorithm
    loader = algorithm.policy_loader()
    if loader is None:
        raise ConfigError(
            f"{folder.path}: algorithm {algorithm.name!r} has no load_policy: its runs cannot be evaluated or played."
        )
    if stochastic is False:
        if "deterministic" not in inspect.signature(loader).parameters:
            raise ConfigError(
                f"{folder.path}: algorithm {algorithm.name!r} has no deterministic policy: its load_policy takes no "
                "keyword 'deterministic'. Its actions can only be sampled."
            )
        loader = functools.partial(loader, deterministic=True)
    checkpoint, path = load_newest(folder), checkpoint_paths(folder)[-1]
    return FrozenPolicy(
        name=name or folder.path.name,
        env=config.settings.env,
        source=str(path),
        space=config.space,
        randomization=config.randomization,
        context_ranges=config.context_ranges,
        frames=config.frames,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        load=functools.partial(_load, loader, checkpoint["state"], config.options),
        home=home,
        record={
            "kind": "run",
            "path": str(folder.path),
            "algorithm": algorithm.name,
            "seed": config.settings.seed,
            **({} if config.settings.sampler == UNIFORM else {"sampler": config.settings.sampler}),
            "updates": int(checkpoint["update"]),
            "checkpoint": path.name,
        },
        run=run,
    )


def _load(loader: LoadPolicy, state: Mapping[str, Any], options: Any, envs: VectorEnv[Any, Any, Any]) -> Policy:
    return loader(state, envs, options)


def run_policy(run: OpenedRun, *, deterministic: bool = False) -> Policy:
    """Loads the policy from a run's newest checkpoint; see ``Run.policy``.

    Raises:
        ConfigError: The algorithm cannot load policies, or not deterministic ones.
        CheckpointError: There is no usable checkpoint.
    """
    policy = open_trained(run, stochastic=False if deterministic else None, home=run.folder.evaluation)
    with contextlib.closing(policy.make_envs(Draws())) as envs:
        act, shape = policy.make(envs), envs.single_observation_space.shape
        if shape is None or takes_episode_starts(act, policy.source):  # no arrays, or a memory per batch
            return act
        return for_one_or_many(cast(MemorylessPolicy, act), shape, str(run.folder.path))


def open_random(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    """Uniform random actions."""
    record = {"kind": "random", "path": None, "algorithm": None, "seed": None, "actions": "random"}
    return _policy(
        name or RANDOM,
        "random actions",
        functools.partial(UniformActions, setting.env),
        setting,
        RANDOM.encode(),
        record,
    )


class UniformActions:
    """Chooses actions uniformly; actions of sub-environment ``i`` depend only on the seed plus ``i``."""

    def __init__(self, env: str, envs: VectorEnv[Any, Any, Any]) -> None:
        """Makes the policy.

        Args:
            env: Id of the environment, for messages.
            envs: The environment, of which the policy keeps the actions and their number.

        Raises:
            ConfigError: Actions have no bounds, or are not numbers.
        """
        space: Any = envs.single_action_space
        bounded = isinstance(space, Box) and bool(np.isfinite(space.low).all() and np.isfinite(space.high).all())
        if not (bounded or isinstance(space, Discrete)):
            raise ConfigError(f"{env}: expected actions with bounds, to choose among them at random, got {space}.")
        self._space, self._num_envs = space, envs.num_envs
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Restarts the random numbers."""
        # apart from the environment's
        self._generators = [np.random.default_rng((seed + i, 1)) for i in range(self._num_envs)]

    def __call__(self, observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        """Actions ``(N, ...)``."""
        space = self._space
        if isinstance(space, Box):
            drawn = [rng.uniform(space.low, space.high) for rng in self._generators]
            return np.clip(drawn, space.low, space.high).astype(space.dtype)
        return np.array([rng.integers(space.start, space.start + space.n) for rng in self._generators], np.int64)


def open_callable(given: Policy, name: str, setting: Setting, text: str | None = None) -> FrozenPolicy:
    """Anything that can be called with observations; ``text`` is "package.module:function" if it was given so."""
    source = f"policy {text or repr(name)}"
    with_episode_starts(given, source)  # checks it
    known = {"kind": "callable"} if text is None else {"kind": "function", "function": text}
    record = {**known, "path": None, "algorithm": None, "seed": None, "actions": None}
    # it may change without its code, so episodes of earlier evaluations are never reused
    return _policy(name, source, functools.partial(_same, given, source), setting, uuid.uuid4().bytes, record)


def _same(given: Policy, source: str, envs: VectorEnv[Any, Any, Any]) -> Policy:
    return with_episode_starts(given, source)


def open_function(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    """A function by name, ``package.module:function``."""
    module_name, _, path = text.partition(":")
    if module_name not in setting.trust:
        raise ConfigError(
            f"policy {text}: importing {module_name} runs its code. If you trust it: `trust={[module_name]!r}`"
        )
    try:
        found = operator.attrgetter(path)(importlib.import_module(module_name))
    except Exception as error:  # a module may raise anything when it is imported
        raise ConfigError(
            f"policy {text}: cannot be imported: {type(error).__name__}: {error}. Install the module, or add its "
            "folder to PYTHONPATH."
        ) from error
    if not callable(found):
        raise ConfigError(f"policy {text}: expected a function, got {shortened(found)}.")
    return open_callable(found, name or path.rpartition(".")[2], setting, text)


def open_sb3(text: str, name: str | None, setting: Setting) -> FrozenPolicy:
    """A file of Stable-Baselines3."""
    saved = read_saved(as_path(text))
    source, statistics, stochastic = f"sb3:{text}", saved.statistics, bool(setting.stochastic)
    _check_trust(source, [saved.path, *([] if statistics is None else [statistics])], setting.trust)
    loaded, digest = load_policy(saved, stochastic=stochastic), digest_of(saved)
    actions = "stochastic" if stochastic else "deterministic"
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
    with contextlib.closing(policy.make_envs(Draws())) as envs:
        policy.make(envs)  # for a better message if it does not fit
        frames = loaded.frames(envs)
    return policy if frames == 1 else dataclasses.replace(policy, record={**policy.record, "frames": frames})


def open_model(given: Any, name: str, setting: Setting) -> FrozenPolicy:
    """A model of Stable-Baselines3 in memory, with the ``VecNormalize`` around its environments."""
    about = SavedPolicy(
        path=Path(name),
        statistics=None,
        algorithm=type(given).__name__,
        seed=given.seed,
        steps=given.num_timesteps,
        version="",
        use_sde=given.use_sde,
    )
    loaded = LoadedPolicy(about, given.policy, given.get_vec_normalize_env(), stochastic=bool(setting.stochastic))
    record = {
        "kind": "callable",  # there is no file to read it from
        "path": None,
        "algorithm": about.algorithm,
        "seed": about.seed,
        "steps": about.steps,
        "actions": "stochastic" if loaded.stochastic else "deterministic",
    }
    return _policy(name, f"policy {name!r}", loaded.make, setting, uuid.uuid4().bytes, record)


def _check_trust(source: str, files: Sequence[Path], trust: Collection[str]) -> None:
    """Checks that the user names every file whose code would run; a file beside a trusted one is not trusted.

    Raises:
        ConfigError: A file is not named; the message gives the argument to add.
    """
    trusted = {as_path(one).resolve() for one in trust}
    if missing := [file for file in files if file.resolve() not in trusted]:
        statistics = files[1:] and files[1] in missing
        raise ConfigError(
            f"policy {source}: files of Stable-Baselines3 and of VecNormalize hold pickles, which can run any code "
            f"when they are read. If you trust the source of {' and '.join(file.name for file in missing)}: "
            f"`trust={[str(file) for file in files]!r}`"
            + (f" (if {files[1].name} does not belong to the policy, move it elsewhere)" if statistics else "")
        )


def open_onnx(found: OnnxPolicy, name: str, setting: Setting) -> FrozenPolicy:
    """A policy in an ONNX file."""
    known, randomization, observed = read_metadata(found, setting.env, setting.space)
    trained_on = randomization if setting.randomization is None else setting.randomization
    setting = dataclasses.replace(setting, randomization=trained_on, context_ranges=None)
    record = {"kind": "onnx", "path": str(found.path), **known, "actions": "deterministic"}
    source, content = f"onnx:{found.path}", found.digest.encode()
    return dataclasses.replace(_policy(name, source, found.make, setting, content, record), **observed)


def _policy(
    name: str,
    source: str,
    make: Callable[[VectorEnv[Any, Any, Any]], Policy],
    setting: Setting,
    content: bytes,
    record: dict[str, Any],
) -> FrozenPolicy:
    """The policy that ``make`` makes; ``content`` determines its actions."""
    # a path would lead the evaluation's folder elsewhere
    expect(not {"/", "\\"} & {*name}, "`policies`", "a name without slashes", name)
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
        load=functools.partial(_made, make, source, setting.env),  # not a lambda, which cannot be pickled
        home=Path(f"{name}-{EVALUATION}"),
        record=record,
    )


def _made(
    make: Callable[[VectorEnv[Any, Any, Any]], Policy], source: str, env: str, envs: VectorEnv[Any, Any, Any]
) -> Policy:
    return checked(make(envs), envs, source, env)


def read_onnx(path: Path) -> OnnxPolicy:
    """Reads an ONNX file, once.

    Raises:
        ConfigError: There is no such file, a package is missing, or the file is not a policy or is dangerous.
    """
    try:
        content = read_plain(Path(os.path.realpath(path)), MAX_FILE)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return read_policy(path, content)


# ---- metadata of ONNX files, which may be untrusted ------------------------------------------------------------------


def env_of(policy: OnnxPolicy, trust: Collection[str]) -> str | None:
    """Id of the environment that a file names; None if it names none.

    Raises:
        ConfigError: The id would import a module that is not trusted.
    """
    env = policy.about.get("env")
    if env is not None:
        with located(policy.path):
            check_source(env, trust)
    return env


def read_metadata(policy: OnnxPolicy, env: str, space: ParamSpace | None) -> Metadata:
    """Reads a file's metadata about its policy.

    Args:
        policy: The policy.
        env: Id of the environment to act in. Training draws are unknown if the file names another environment.
        space: Parameters of this environment; None if it has none.

    Raises:
        GymDrError: Metadata are malformed, or the environment has no such parameters.
    """
    with located(policy.path), raised_as(ConfigError, "expected metadata as gymdr export writes them"):
        return _metadata(policy, env, space)


def _metadata(policy: OnnxPolicy, env: str, space: ParamSpace | None) -> Metadata:
    about = {name: json.loads(text) for name, text in policy.about.items() if name in _JSON}
    algorithm, seed = policy.about.get("algorithm", ""), about.get("seed")
    randomization, ranges = None, None
    frames, span = about.get("observes_past", {}), about.get("draw_span", CONTEXT_SPAN)
    if env == policy.about.get("env") and "randomization" in about and space is not None:
        randomization = resolve(Randomization.from_dict(about["randomization"]), space)
    expect(is_number(span) and span > 0, "draw_span", "a number above 0", span)
    if about.get("observes_draw"):
        if space is None:
            raise ConfigError("observes_draw: expected an environment with parameters to observe, got one without.")
        shown = checked_ranges(space, Randomization(), dict(about["observes_draw"]))
        ranges = {one.name: (one.low, one.high) for one in shown}
    record = {
        "algorithm": algorithm if algorithm.isprintable() and 0 < len(algorithm) <= MAX_NAME else None,
        "seed": seed if type(seed) is int and 0 <= seed < 2**63 else None,
    }
    observed = {
        "frames": Frames(**check_fields(Frames, frames)),
        "context_ranges": ranges,
        "context_span": float(span),
    }
    return record, randomization, observed
