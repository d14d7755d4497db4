"""Opens policies of any origin: runs, files of Stable-Baselines3, ONNX files, functions, and random actions.

In order: ``_source`` recognizes what the user gave, ``open_policies`` finds the common environment, a function of
``gym_dr.policies.origins`` opens each policy, and ``_comparable`` gives policies distinct names and lets each act once.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.own import id_of
from gym_dr.errors import ConfigError, RunFolderError, as_path, check_known, did_you_mean, printable, shortened
from gym_dr.plugins.loading import load_plugins
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.origins import (
    RANDOM,
    Setting,
    env_of,
    open_callable,
    open_function,
    open_model,
    open_onnx,
    open_random,
    open_sb3,
    open_trained,
    read_onnx,
)
from gym_dr.randomization.context import INFO, OBSERVATION, check_context, context_ranges
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import CONTEXTS, OpenedRun
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import ContextRanges, check_env_id, param_space_of
from gym_dr.runs.folder import EVALUATION, expand
from gym_dr.training.api import Policy

PRETRAINED = Path(__file__).resolve().parent.parent / "pretrained"  # of the package

EXPECTED = f"{RANDOM}, [NAME=]sb3:FILE.zip, [NAME=]onnx:FILE.onnx or [NAME=]package.module:function"
_TEXT = re.compile(
    r"(?:(?P<name>[^=:]+)=)?"
    rf"(?:sb3:(?P<sb3>.+)|onnx:(?P<onnx>.+)|(?P<function>[^\W\d][\w.]*:[^\W\d][\w.]*)|(?P<random>{RANDOM}))"
)


@runtime_checkable
class OpenedRuns(Protocol):
    """One run, or several with different seeds: ``gym_dr.Run`` and ``gym_dr.Runs``."""

    path: Any

    @property
    def opened(self) -> Sequence[OpenedRun]:
        """The runs."""


PolicyLike = str | Path | OpenedRuns | FrozenPolicy | Policy  # texts as in EXPECTED, or the path of a run
PoliciesLike = PolicyLike | Sequence[PolicyLike] | Mapping[str, PolicyLike]
EnvLike = str | Callable[..., gym.Env[Any, Any]] | gym.Env[Any, Any]  # an id, or what makes an environment, or is one
ContextParams = Sequence[str] | Mapping[str, tuple[float, float] | None] | None  # names, or name -> (low, high)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Source:
    """A policy, or several runs, before the common environment is known."""

    kind: str
    open: Callable[[Setting], list[FrozenPolicy]]
    env: str | None = None  # the environment that it records


def open_policy(
    policy: PolicyLike,
    *,
    env: EnvLike | None = None,
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
        policy: A run (its path or a ``Run``), a model of Stable-Baselines3, any callable that takes observations
            ``(N, ...)`` (or the dictionary or tuple of such arrays that the environment returns) and returns actions
            ``(N, ...)``, or a text "sb3:FILE.zip", "onnx:FILE.onnx" or "package.module:function", after "NAME=" to
            rename it, or "random". A callable with memory keeps its own state and has a second positional parameter,
            without a default or named ``episode_starts``: bool ``(N,)``, True where an observation is the first of an
            episode, so everywhere at the first call.
        env: Its environment: an id, a function without arguments that makes a randomized environment, or such an
            environment, which plays alone. Required except for runs and files of ``Run.export``, which name their own.
        randomization: What it was trained on, in any form that an environment takes; None if unknown. Runs record
            it.
        context: "observation" if it was trained on environments made with ``context="observation"``: it observes the
            draw, mapped to [-1, 1]. Runs and files of ``Run.export`` record it.
        context_params: The parameters that it observes, as in its environments: names, or name -> (low, high). None for
            all of ``randomization``, with its ranges.
        stochastic: Whether a run or a policy of Stable-Baselines3 samples its actions, or takes the most likely ones.
            If None, runs sample them, as in training, and policies of Stable-Baselines3 do not.
        trust: Files whose code may run, each by name: files of Stable-Baselines3, their ``VecNormalize`` statistics,
            modules of functions, and modules that a run's configuration may import.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: The policy does not fit the environment or is not trusted, there are several, or an argument does
            not apply.
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
        raise ConfigError(f"{policy}: holds several runs: expected one, such as {_where(found[0])}.")
    return found[0]


def open_policies(
    policies: PoliciesLike,
    references: PoliciesLike = (),
    *,
    env: EnvLike | None = None,
    randomization: Any = None,
    context: str = INFO,
    context_params: ContextParams = None,
    stochastic: bool | None = None,
    trust: Collection[str] = (),
) -> list[FrozenPolicy]:
    """Opens policies and checks that they can be compared; for arguments see ``open_policy``.

    Args:
        policies: One, several, or a mapping that names them. A folder of seeds stands for all of its runs.
        references: Policies that only show what is possible.
        env: The common environment; None for the recorded one.
        randomization: Training randomization of policies that do not record theirs.
        context: Context of policies that do not record what they observe.
        context_params: Observed parameters of the same policies.
        stochastic: See ``open_policy``.
        trust: See ``open_policy``.

    Returns:
        The policies in the order given, then the references, marked as such.
    """
    load_plugins()
    compared, others = ([_source(*one, trust) for one in _with_names(given)] for given in (policies, references))
    sources = [*compared, *others]
    if not compared:
        raise ConfigError("Expected a run or a policy, got none.")
    recorded = next((source.env for source in sources if source.env), None)
    if not (given := env or recorded):
        raise ConfigError("Expected `env`: only runs and files of gymdr export record their environment.")
    env_id = id_of(given)
    if stochastic and not any(source.kind in ("run", "sb3") for source in sources):
        raise ConfigError("`stochastic` is for runs and policies of Stable-Baselines3: expected one, got none.")
    if context != INFO and not any(source.kind in ("sb3", "function", "callable") for source in sources):
        raise ConfigError(
            "`context` is for policies that do not record what they observe, as runs and files of gymdr export do: "
            "leave it out."
        )
    if randomization is not None and all(source.kind == "run" for source in sources):
        raise ConfigError("`randomization` is for policies that are not runs: runs record theirs. Leave it out.")
    check_env_id(env_id)
    # runs and opened policies record it
    space = None if all(source.kind in ("run", "open") for source in sources) else param_space_of(env_id)
    if space is None and randomization is not None:
        raise ConfigError(f"`randomization`: {env_id} has no parameters to randomize.")
    draws = None if space is None or randomization is None else resolve(randomization, space)
    ranges = _context_ranges(context, context_params, draws, space)
    setting = Setting(
        env=env_id, space=space, randomization=draws, context_ranges=ranges, stochastic=stochastic, trust=trust
    )
    found = [policy for source in compared for policy in source.open(setting)]
    found += [dataclasses.replace(policy, reference=True) for source in others for policy in source.open(setting)]
    if not isinstance(given, str):  # what a function makes may have changed, so episodes of it are never reused
        found = [dataclasses.replace(policy, digest=uuid.uuid4().hex) for policy in found]
    return _comparable(found, env_id)


def open_runs(runs: Sequence[OpenedRun]) -> list[FrozenPolicy]:
    """Opens the policies in the newest checkpoints of runs, and checks that they can be compared.

    Raises:
        ConfigError: As for ``open_policies``.
        CheckpointError: There is no usable checkpoint.
    """
    policies = [open_trained(run, home=run.folder.evaluation) for run in runs]
    return _comparable(policies, policies[0].env)


def is_policy_text(text: str) -> bool:
    """Whether a text names a policy (see ``EXPECTED``) rather than a run."""
    return _TEXT.fullmatch(text) is not None and not Path(text).exists()


# ---- what is given ---------------------------------------------------------------------------------------------------


def _with_names(given: PoliciesLike) -> list[tuple[str | None, Any]]:
    """Each policy with the user's name for it, or None."""
    if isinstance(given, Mapping):
        return list(given.items())
    several = given if isinstance(given, Sequence) and not isinstance(given, str | OpenedRuns) else [given]
    return [(None, one) for one in several]


def _source(name: str | None, given: Any, trust: Collection[str]) -> _Source:
    """Recognizes what the user gave, without opening it.

    Raises:
        RunFolderError: There is no run at a path.
        ConfigError: It is no policy, or a file cannot be read.
    """
    if isinstance(given, FrozenPolicy):
        policy = dataclasses.replace(given, name=name or given.name)
        return _Source(kind="open", open=lambda _: [policy], env=policy.env)
    if isinstance(given, str) and is_policy_text(given):
        return _text_source(name, given, trust)
    if isinstance(given, str | Path):
        if (path := as_path(given)).suffix == ".onnx":
            raise ConfigError(f"{given}: expected a run, got an ONNX file. Name it so: `policies='onnx:{given}'`")
        if not path.exists():
            raise RunFolderError(f"{given}: no such run folder.{_meant(str(given))}")
        runs = [open_run(folder.path, trust) for folder in expand([str(path)])]
        return _run_source(name, runs, path)
    if isinstance(given, OpenedRuns):
        return _run_source(name, given.opened, given.path)
    own_name = name or getattr(given, "__name__", type(given).__name__).strip("<>")
    if hasattr(given, "get_vec_normalize_env"):
        return _Source(kind="sb3", open=lambda setting: [open_model(given, own_name, setting)])
    if not callable(given):
        raise ConfigError(
            "Expected a policy: a run, a callable that takes observations (N, ...), and episode_starts (N,) if it "
            "remembers, and returns actions, a model of Stable-Baselines3, or a text "
            f"{EXPECTED}, got {shortened(given)}."
        )
    return _Source(kind="callable", open=lambda setting: [open_callable(given, own_name, setting)])


def _meant(text: str) -> str:
    """What a text may mean that names no run, for the end of a message."""
    if text in pretrained_names():
        return f" For the policy {text} of the package: gymdr play --pretrained {text}, or gym_dr.pretrained({text!r})."
    if text in ENVIRONMENTS:
        return " It is an environment: name a run or a policy, or play it with gymdr play --human."
    return "" if Path(text).name != text else did_you_mean(text, [*pretrained_names(), *ENVIRONMENTS])


def _text_source(name: str | None, text: str, trust: Collection[str]) -> _Source:
    match = _TEXT.fullmatch(text)
    assert match is not None  # the caller has checked it
    kind = next(kind for kind in ("sb3", "onnx", "function", "random") if match[kind])
    given, name = match[kind], name or match["name"]
    if kind == "onnx":  # its content decides how it is opened
        found = read_onnx(as_path(given))
        return _Source(
            kind=kind,
            open=lambda setting: [open_onnx(found, name or found.path.stem, setting)],
            env=env_of(found, trust),
        )
    opener = {"sb3": open_sb3, "function": open_function, "random": open_random}[kind]
    return _Source(kind=kind, open=lambda setting: [opener(given, name, setting)])


def _run_source(name: str | None, runs: Sequence[OpenedRun], path: Path) -> _Source:
    def opened(setting: Setting) -> list[FrozenPolicy]:
        own = path.resolve().parent == PRETRAINED  # nothing is written into the package
        home = Path(f"{name or path.name}-{EVALUATION}") if own else path / EVALUATION
        return [open_trained(run, home=home, name=name, stochastic=setting.stochastic) for run in runs]

    return _Source(kind="run", open=opened, env=runs[0].config.settings.env)


def _context_ranges(
    context: str, chosen: ContextParams, draws: Randomization | None, space: ParamSpace | None
) -> ContextRanges | None:
    """The ranges of the parameters that policies observe; None without ``context="observation"``.

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


# ---- several together ------------------------------------------------------------------------------------------------


def _comparable(policies: Sequence[FrozenPolicy], env: str) -> list[FrozenPolicy]:
    """Gives policies distinct names and checks that each acts in the common environment.

    Raises:
        ConfigError: A run is named twice, two policies have the same name or act in different environments, or a policy
            does not act in its environment.
        InvalidActionError: A policy's actions do not fit its environment.
    """
    names = iter(_unique_names([policy.run.folder.path for policy in policies if policy.run]))
    found = []
    for policy in policies:
        if policy.env != env:
            raise ConfigError(
                f"{_where(policy)}: was trained on {policy.env}, not on {env}: policies are compared on one."
            )
        unique = next(names) if policy.run else policy.name
        renamed = policy.run and policy.name != policy.run.folder.path.name  # by the user
        found.append(dataclasses.replace(policy, name=printable(policy.name if renamed else unique)))
    if twice := [name for name, count in Counter(policy.name for policy in found).items() if count > 1]:
        raise ConfigError(f"Two policies are named {twice[0]!r}; name one of them: `policies={{'NAME': 'POLICY'}}`.")
    for policy in found:
        policy.check()
    return found


def _where(policy: FrozenPolicy) -> str:
    return policy.source if policy.run is None else str(policy.run.folder.path)


def _unique_names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as few as make all names distinct."""
    resolved = [path.resolve() for path in paths]
    if len(set(resolved)) != len(resolved):
        twice = next(path for path, full in zip(paths, resolved, strict=True) if resolved.count(full) > 1)
        raise ConfigError(f"{twice}: is named twice.")
    longer = (["/".join(path.parts[-parts:]) for path in resolved] for parts in itertools.count(1))
    return next(names for names in longer if len(set(names)) == len(names))


# ---- policies of the package: run folders without logs, loaded as data like any run ----------------------------------


def pretrained_names() -> list[str]:
    """Names of all pretrained policies."""
    return sorted(path.parent.name for path in PRETRAINED.glob("*/config.json"))


def pretrained(name: str) -> Path:
    """The folder of a pretrained policy in the package, for ``load_run`` and ``evaluate``.

    Example:
        >>> policy = gym_dr.load_run(gym_dr.pretrained("lander")).policy()

    Args:
        name: Its name, such as ``lander``; ``gymdr play --help`` lists all.

    Raises:
        UnknownNameError: There is no such policy.
    """
    check_known("pretrained policy", name, pretrained_names())
    return PRETRAINED / name
