"""Opens policies of any origin: runs, files of Stable-Baselines3, ONNX files, functions, and random actions.

Functions are code, and files of Stable-Baselines3 and of its ``VecNormalize`` are pickles, which can run code: none is
loaded unless the user names it as trusted. ONNX files are data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import itertools
import json
import operator
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from gymnasium.vector import VectorEnv

from gym_dr.errors import ConfigError, check_known, shortened
from gym_dr.evaluation.acting import takes_episode_starts, with_episode_starts
from gym_dr.evaluation.actions import checked, for_one_or_many
from gym_dr.evaluation.cells import nominal
from gym_dr.evaluation.exported import env_of, read_metadata
from gym_dr.integrations.onnx_policy import MAX_FILE, OnnxPolicy, read_policy
from gym_dr.integrations.sb3_policy import digest_of, load_policy, read_saved
from gym_dr.plugins.loading import load_plugins
from gym_dr.policies.frozen import FrozenPolicy, TrainedRun
from gym_dr.policies.uniform import UniformActions
from gym_dr.randomization.context import INFO, OBSERVATION, check_context, context_ranges
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.checkpoint import checkpoint_paths, load_newest
from gym_dr.runs.config import CONTEXTS, RunConfig
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import ContextRanges, check_env_id, param_space_of
from gym_dr.runs.folder import EVALUATION, RunFolder, expand
from gym_dr.runs.plain import read_plain
from gym_dr.training.api import Algorithm, MemorylessPolicy, Policy
from gym_dr.training.config import CONTEXT_SPAN

RANDOM = "random"  # in place of a policy: uniform random actions
EXPECTED = f"{RANDOM}, [NAME=]sb3:FILE.zip, [NAME=]onnx:FILE.onnx or [NAME=]package.module:function"
PROBED = 64  # episodes on whose first observations functions are compared ...
PROBED_STEPS = 8  # ... and their next ones, if they remember

_TEXT = re.compile(
    r"(?:(?P<name>[^=:]+)=)?"
    rf"(?:sb3:(?P<sb3>.+)|onnx:(?P<onnx>.+)|(?P<function>[^\W\d][\w.]*:[^\W\d][\w.]*)|(?P<random>{RANDOM}))"
)

RunParts = tuple[RunFolder, RunConfig, Algorithm]


@runtime_checkable
class OpenedRuns(Protocol):
    """One run, or several with different seeds: ``gym_dr.Run`` and ``gym_dr.Runs``."""

    path: Any

    @property
    def opened(self) -> Sequence[RunParts]:
        """Their folders, configurations and algorithms."""


PolicyLike = str | Path | OpenedRuns | FrozenPolicy | Policy  # a text may also be one of EXPECTED
PoliciesLike = PolicyLike | Sequence[PolicyLike] | Mapping[str, PolicyLike]
ContextParams = Sequence[str] | Mapping[str, tuple[float, float] | None] | None  # names, or name -> (low, high)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Setting:
    """What only runs record about themselves."""

    env: str
    space: ParamSpace | None  # what may vary in it; None if nothing may
    randomization: Randomization | None  # of their training; None if unknown
    context_ranges: ContextRanges | None  # of the parameters that they observe, mapped to [-1, 1]
    stochastic: bool | None  # whether actions are sampled; None for the default of their kind
    trust: Collection[str]  # files and modules whose code may be run


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Source:
    """A policy, or several runs, before it is known in which environment they are compared."""

    kind: str
    open: Callable[[_Setting], list[FrozenPolicy]]
    env: str | None = None  # that it records
    tells: bool = False  # whether it says what it observes


def open_policy(
    policy: PolicyLike,
    *,
    env: str | None = None,
    randomization: Any = None,
    context: str = INFO,
    context_params: ContextParams = None,
    stochastic: bool | None = None,
    trust: Collection[str] = (),
) -> FrozenPolicy:
    """Opens one policy, to evaluate, play or record it.

    Example:
        >>> theirs = gym_dr.open_policy("sb3:ppo.zip", env="gym_dr/LunarLanderDR-v3", trust=["ppo.zip"])
        >>> gym_dr.evaluate([theirs, "runs/first"], output="compared")

    Args:
        policy: A run (its path or a ``Run``), any callable that takes observations ``(N, ...)`` and returns actions
            ``(N, ...)``, or a text "sb3:FILE.zip", "onnx:FILE.onnx" or "package.module:function", after "NAME=" if it
            shall have another name, or "random". A callable with memory has a second positional parameter that has no
            default or is named ``episode_starts``: bool ``(N,)``, True where an observation is the first of an episode,
            so everywhere at its first call. It keeps its state itself.
        env: Id of its environment; required unless it is a run or a file of ``Run.export``, which name their own.
        randomization: What it was trained on, in any form that an environment takes; None if unknown. Runs say so
            themselves.
        context: "observation" if it was trained on environments made with ``context="observation"``: it observes the
            draw, mapped to [-1, 1]. Runs and files of ``Run.export`` say so themselves.
        context_params: Which parameters it observes, as its environments had it: names, or name -> (low, high). None
            for all of ``randomization``, with its ranges.
        stochastic: Whether a run or a policy of Stable-Baselines3 samples its actions, or takes the most likely ones.
            If None, runs sample them, as in training, and policies of Stable-Baselines3 do not.
        trust: Files of Stable-Baselines3, their ``VecNormalize`` statistics and modules of functions whose code may
            run, each named itself, and modules that a run's configuration may import.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: The policy does not fit the environment or is not trusted, it is several, or an argument does not
            apply to it.
        InvalidActionError: Its actions do not fit the environment, or are not finite.
        UnknownNameError: There is no such environment, parameter or preset.
        RandomizationError: There is nothing to observe.
    """
    found = open_policies(
        [policy],
        env=env,
        randomization=randomization,
        context=context,
        context_params=context_params,
        stochastic=stochastic,
        trust=trust,
    )
    if len(found) > 1:
        raise ConfigError(f"{policy}: holds several runs: expected one, such as {_place(found[0])}.")
    return found[0]


def open_policies(
    policies: PoliciesLike,
    references: PoliciesLike = (),
    *,
    env: str | None = None,
    randomization: Any = None,
    context: str = INFO,
    context_params: ContextParams = None,
    stochastic: bool | None = None,
    trust: Collection[str] = (),
) -> list[FrozenPolicy]:
    """Opens policies and checks that they can be compared; for the arguments see ``open_policy``.

    Args:
        policies: One, several, or a mapping that names them. A folder of seeds stands for all of its runs.
        references: Others, which only show what is possible.
        env: Id of the environment of all; None for that which one records.
        randomization: Training randomization of those that do not record it.
        context: Of those that do not say what they observe.
        context_params: Likewise.
        stochastic: See ``open_policy``.
        trust: See ``open_policy``.

    Returns:
        The policies in the order given, then the references, which say so themselves.
    """
    load_plugins()
    asked, others = ([_source(name, one, trust) for name, one in _named(given)] for given in (policies, references))
    sources = [*asked, *others]
    if not asked:
        raise ConfigError("Expected a run or a policy, got none.")
    env = env or next((source.env for source in sources if source.env), None)
    if env is None:
        raise ConfigError("Expected `env`: only runs and files of gymdr export record their environment.")
    if stochastic and not any(source.kind in ("run", "sb3") for source in sources):
        raise ConfigError("`stochastic` is for runs and policies of Stable-Baselines3: expected one, got none.")
    if context != INFO and all(source.tells for source in sources):
        raise ConfigError(
            "`context` is for policies that do not say what they observe: expected one, got only runs and files of "
            "gymdr export."
        )
    if randomization is not None and all(source.kind == "run" for source in sources):
        raise ConfigError(
            "`randomization` is for policies that are not runs: a run says itself what it was trained on."
        )
    check_env_id(env)
    # runs and opened policies know it
    space = None if all(source.kind in ("run", "open") for source in sources) else param_space_of(env)
    if space is None and randomization is not None:
        raise ConfigError(f"`randomization`: {env} has no parameters to randomize.")
    draws = None if space is None or randomization is None else resolve(randomization, space)
    ranges = _context_ranges(context, context_params, draws, space)
    setting = _Setting(
        env=env, space=space, randomization=draws, context_ranges=ranges, stochastic=stochastic, trust=trust
    )
    found = [policy for source in asked for policy in source.open(setting)]
    found += [dataclasses.replace(policy, reference=True) for source in others for policy in source.open(setting)]
    return _comparable(found, env)


def open_runs(runs: Sequence[RunParts]) -> list[FrozenPolicy]:
    """Opens the policies in the newest checkpoints of runs, and checks that they can be compared.

    Raises:
        ConfigError: As for ``open_policies``.
        CheckpointError: There is no usable checkpoint.
    """
    env = runs[0][1].settings.env
    return _comparable([_open_run(*run, home=run[0].evaluation) for run in runs], env)


def run_policy(folder: RunFolder, config: RunConfig, algorithm: Algorithm, *, deterministic: bool = False) -> Policy:
    """Loads the policy from a run's newest checkpoint; see ``Run.policy``.

    Raises:
        ConfigError: The algorithm cannot load policies, or not deterministic ones.
        CheckpointError: There is no usable checkpoint.
    """
    from gym_dr.training.behavior import RememberingPolicy  # heavy

    policy = _open_run(folder, config, algorithm, stochastic=False if deterministic else None, home=folder.evaluation)
    with contextlib.closing(policy.make_envs(nominal(episodes=1))) as envs:
        act, shape = policy.make(envs), envs.single_observation_space.shape
        if isinstance(act, RememberingPolicy):
            act.hint = _about_observations(config)
        if shape is None or takes_episode_starts(act, policy.source):  # no arrays; or a memory has a batch's size
            return act
        return for_one_or_many(cast(MemorylessPolicy, act), shape, str(folder.path), _about_observations(config))


def is_policy_text(text: str) -> bool:
    """Whether a text names a policy (see ``EXPECTED``) rather than a run."""
    return _TEXT.fullmatch(text) is not None and not Path(text).exists()


# ---- what is given ---------------------------------------------------------------------------------------------------


def _named(given: PoliciesLike) -> list[tuple[str | None, Any]]:
    """Each policy with its name, None if it has to find one."""
    if isinstance(given, Mapping):
        return list(given.items())
    several = given if isinstance(given, Sequence) and not isinstance(given, str | OpenedRuns) else [given]
    return [(None, one) for one in several]


def _source(name: str | None, given: Any, trust: Collection[str]) -> _Source:
    """What a policy is, before it is opened.

    Raises:
        RunFolderError: There is no run at a path.
        ConfigError: It is none, or a file cannot be read.
    """
    if isinstance(given, FrozenPolicy):
        policy = dataclasses.replace(given, name=name or given.name)
        return _Source(kind="open", open=lambda setting: [policy], env=policy.env, tells=True)
    if isinstance(given, str) and is_policy_text(given):
        return _text_source(name, given, trust)
    if isinstance(given, str | Path):
        if Path(given).suffix == ".onnx":
            raise ConfigError(f"{given}: expected a run, got an ONNX file. Name it so: `policies='onnx:{given}'`")
        if name is not None and not Path(given).exists():
            raise ConfigError(f"`policies`: expected {EXPECTED}, got {shortened(str(given))}.")
        runs = [open_run(folder.path, trust) for folder in expand([str(given)])]
        return _run_source(name, runs, Path(given))
    if isinstance(given, OpenedRuns):
        return _run_source(name, given.opened, given.path)
    if not callable(given):
        raise ConfigError(
            "Expected a policy: a run, a callable that takes observations (N, ...), and episode_starts (N,) if it "
            f"remembers, and returns actions, or a text {EXPECTED}, got {shortened(given)}."
        )
    own_name = name or getattr(given, "__name__", type(given).__name__).strip("<>")
    return _Source(kind="callable", open=lambda setting: [_open_callable(given, own_name, setting)])


def _text_source(name: str | None, text: str, trust: Collection[str]) -> _Source:
    match = _TEXT.fullmatch(text)
    assert match is not None  # the caller has seen that
    kind = next(kind for kind in ("sb3", "onnx", "function", "random") if match[kind])
    given, name = match[kind], name or match["name"]
    if kind == "onnx":  # what it holds decides how it is opened
        found = _read_onnx(Path(given))
        return _Source(
            kind=kind,
            open=lambda setting: [_open_onnx(found, name or found.path.stem, setting)],
            env=env_of(found, trust),
            tells=found.says_what_it_observes,
        )
    opener = {"sb3": _open_sb3, "function": _open_function, "random": _open_random}[kind]
    return _Source(kind=kind, open=lambda setting: [opener(given, name, setting)], tells=kind == "random")


def _run_source(name: str | None, runs: Sequence[RunParts], path: Path) -> _Source:
    def opened(setting: _Setting) -> list[FrozenPolicy]:
        home = path / EVALUATION
        return [_open_run(*run, home=home, name=name, stochastic=setting.stochastic) for run in runs]

    return _Source(kind="run", open=opened, env=runs[0][1].settings.env, tells=True)


def _read_onnx(path: Path) -> OnnxPolicy:
    """Reads an ONNX file, once.

    Raises:
        ConfigError: There is no such file, a package is missing, or the file is no policy, or a dangerous one.
    """
    try:
        content = read_plain(path.resolve(), MAX_FILE)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return read_policy(path, content)


def _context_ranges(
    context: str, chosen: ContextParams, draws: Randomization | None, space: ParamSpace | None
) -> ContextRanges | None:
    """The ranges of what policies observe that were trained with ``context="observation"``; None if they were not.

    Raises:
        UnknownNameError: There is no such context or parameter.
        ConfigError: The ranges are unknown, or the environment has no parameters.
        RandomizationError: There is nothing to observe, or a range is impossible.
    """
    check_known("context", context, CONTEXTS)
    check_context(context, chosen)
    if context != OBSERVATION:
        return None
    if space is None:
        raise ConfigError(
            f"`context='{OBSERVATION}'`: expected an environment with parameters to observe, got one without."
        )
    named = isinstance(chosen, Mapping) and None not in chosen.values()
    if draws is None and not named:
        raise ConfigError(
            f"`context='{OBSERVATION}'`: what a policy observes is scaled by the ranges that it was trained with. Give "
            "its training randomization, `randomization='default'` if none was given then, or each parameter's range "
            "with `context_params`."
        )
    ranges = context_ranges(space, Randomization() if draws is None else draws, chosen)
    return {one.name: (one.low, one.high) for one in ranges}


# ---- one of each kind ------------------------------------------------------------------------------------------------


def _open_run(
    folder: RunFolder,
    config: RunConfig,
    algorithm: Algorithm,
    *,
    home: Path,
    name: str | None = None,
    stochastic: bool | None = None,
) -> FrozenPolicy:
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
    load, checkpoint, path = loader, load_newest(folder), checkpoint_paths(folder)[-1]
    return FrozenPolicy(
        name=name or folder.path.name,
        env=config.settings.env,
        source=str(path),
        space=config.space,
        randomization=config.randomization,
        context_ranges=config.context_ranges,
        past=config.past,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        load=lambda envs: load(checkpoint["state"], envs, config.options),
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
        run=TrainedRun(folder=folder, config=config),
    )


def _about_observations(config: RunConfig) -> str:
    """A sentence, to follow others, on what a policy observes besides the environment's observations."""
    sentence = ""
    if past := config.past:
        words = ", ".join(f"{name}={value}" for name, value in vars(past).items())
        sentence += f" The policy observes what was before: wrap the environment in ObservePast(envs, {words})."
    if config.context_ranges:
        sentence += (
            f" The policy observes the draw of {', '.join(config.context_ranges)} at the end: wrap the environment in "
            f"DrawContext(envs, 'observation', run.config.context_ranges, span={CONTEXT_SPAN})."
        )
    return sentence


def _open_random(text: str, name: str | None, setting: _Setting) -> FrozenPolicy:
    def make(envs: VectorEnv[Any, Any, Any]) -> Policy:
        return UniformActions(envs.single_action_space, envs.num_envs, setting.env)

    record = {"kind": "random", "path": None, "algorithm": None, "seed": None, "actions": "random"}
    return _policy(RANDOM, "random actions", make, setting, RANDOM.encode(), record)


def _open_callable(given: Policy, name: str, setting: _Setting) -> FrozenPolicy:
    source = f"policy {name!r}"
    act = with_episode_starts(given, source)
    record = {"kind": "callable", "path": None, "algorithm": None, "seed": None, "actions": None}
    # a callable may change without its code, so episodes of earlier calls are never reused
    return _policy(name, source, lambda envs: act, setting, uuid.uuid4().bytes, record)


def _open_function(text: str, name: str | None, setting: _Setting) -> FrozenPolicy:
    module_name, _, path = text.partition(":")
    if module_name not in setting.trust:
        raise ConfigError(
            f"policy {text}: importing {module_name} runs its code. If you trust it: `trust={[module_name]!r}`"
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


def _open_sb3(text: str, name: str | None, setting: _Setting) -> FrozenPolicy:
    saved = read_saved(Path(text))
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
    with contextlib.closing(policy.make_envs(nominal(episodes=1))) as envs:
        policy.make(envs)  # if it does not fit, a better message
        frames = loaded.frames(envs)
    return policy if frames == 1 else dataclasses.replace(policy, record={**policy.record, "frames": frames})


def _check_trust(source: str, files: Sequence[Path], trust: Collection[str]) -> None:
    """Checks that the user names every file whose code would run; a file beside a trusted one is not trusted.

    Raises:
        ConfigError: One is not named; the message has the argument that names it.
    """
    trusted = {Path(one).resolve() for one in trust}
    if missing := [file for file in files if file.resolve() not in trusted]:
        statistics = files[1:] and files[1] in missing
        raise ConfigError(
            f"policy {source}: files of Stable-Baselines3 and of VecNormalize hold pickles, which can run any code "
            f"when they are read. If you trust the source of {' and '.join(file.name for file in missing)}: "
            f"`trust={[str(file) for file in files]!r}`"
            + (f" (if {files[1].name} does not belong to the policy, move it elsewhere)" if statistics else "")
        )


def _open_onnx(found: OnnxPolicy, name: str, setting: _Setting) -> FrozenPolicy:
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


def _policy(
    name: str,
    source: str,
    make: Callable[[VectorEnv[Any, Any, Any]], Policy],
    setting: _Setting,
    content: bytes,
    record: dict[str, Any],
) -> FrozenPolicy:
    """A policy that ``make`` makes for its environments; ``content`` determines its actions on an observation."""
    if name is not None and {"/", "\\"} & {*name}:  # it would place the folder of its evaluation elsewhere
        raise ConfigError(f"`policies`: expected a name without slashes, got {name!r}.")
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
        home=Path(f"{name}-{EVALUATION}"),
        record=record,
    )


# ---- several together ------------------------------------------------------------------------------------------------


def _comparable(policies: Sequence[FrozenPolicy], env: str) -> list[FrozenPolicy]:
    """Names the policies apart and checks that each acts in the environment of all.

    Raises:
        ConfigError: A run is named twice, two policies have the same name or act in different environments, or a policy
            does not act in its environment.
        InvalidActionError: A policy's actions do not fit its environment.
    """
    runs = [policy.run.folder.path for policy in policies if policy.run]
    names = iter(_unique_names(runs))
    # a run that was opened under another name keeps it
    unique = {id(policy): next(names) for policy in policies if policy.run}
    found = [
        dataclasses.replace(policy, name=unique[id(policy)])
        if policy.run and policy.name == policy.run.folder.path.name
        else policy
        for policy in policies
    ]
    for policy in found:
        if policy.env != env:
            raise ConfigError(
                f"{_place(policy)}: was trained on {policy.env}, not on {env}: policies are compared on one."
            )
    if twice := [name for name, count in Counter(policy.name for policy in found).items() if count > 1]:
        raise ConfigError(f"Two policies are named {twice[0]!r}; name one of them: `policies={{'NAME': ...}}`.")
    for policy in found:
        policy.check()
    return found


def _place(policy: FrozenPolicy) -> str:
    return policy.source if policy.run is None else str(policy.run.folder.path)


def _unique_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as it takes to make all distinct."""
    resolved = [path.resolve() for path in paths]
    if len(set(resolved)) != len(resolved):
        twice = next(path for path, full in zip(paths, resolved, strict=True) if resolved.count(full) > 1)
        raise ConfigError(f"{twice}: is named twice.")
    longer = (["/".join(path.parts[-parts:]) for path in resolved] for parts in itertools.count(1))
    return next(names for names in longer if len(set(names)) == len(names))
