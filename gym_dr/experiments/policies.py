"""Opens policies to evaluate and play: runs, callables, functions by name, ONNX files, and Stable-Baselines3's."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import ConfigError, check_known
from gym_dr.experiments.run import Run, RunLike, Runs, load_run
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.context import INFO, OBSERVATION, check_context, context_ranges
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import CONTEXTS
from gym_dr.runs.environments import ContextRanges
from gym_dr.runs.folder import EVALUATION
from gym_dr.training.api import Policy
from gym_dr.wording import either, flag, spelled

if TYPE_CHECKING:
    from gym_dr.evaluation.policies import FrozenPolicy

PolicyLike = RunLike | Policy  # a str may also be sb3:FILE.zip, onnx:FILE.onnx or package.module:function
PoliciesLike = PolicyLike | Sequence[PolicyLike] | Mapping[str, Policy | str]
ContextParams = Sequence[str] | Mapping[str, tuple[float, float] | None] | None  # names, or name -> (low, high)


def open_all(
    given: PoliciesLike,
    *,
    references: PoliciesLike = (),
    env: str | None = None,
    randomization: Any = None,
    context: str = INFO,
    context_params: ContextParams = None,
    stochastic: bool = False,
    trust: Collection[str] = (),
) -> tuple[list[FrozenPolicy], list[Path]]:
    """Opens policies and checks that they can be compared.

    ``randomization`` is the training randomization of policies that are not runs; for the others see
    ``gym_dr.evaluate``.

    Returns:
        The policies in the order given, then the references, which say so themselves, and for each item of both the
        default folder of its evaluation.

    Raises:
        RunFolderError: There is no run at a path.
        ConfigError: The policies cannot be compared, one does not fit the environment or is not trusted, or an argument
            applies to none of them.
        UnknownNameError: There is no such environment or preset.
        InvalidActionError: Actions of a policy do not fit the environment.
    """
    from gym_dr.evaluation.exported import env_of  # heavy, as those below
    from gym_dr.evaluation.foreign import Setting, is_file_text, is_policy_text, open_foreign, read_if_onnx
    from gym_dr.evaluation.policies import RunParts, open_policies
    from gym_dr.integrations.onnx_policy import OnnxPolicy
    from gym_dr.randomization.presets import resolve
    from gym_dr.runs.environments import check_env_id, param_space_of

    load_plugins()
    items = _named(given)
    named = [*items, *_named(references)]
    opened: list[tuple[str | None, Any]] = []  # Run, Runs, or another policy as given
    for name, one in named:
        is_run = isinstance(one, Path | Run | Runs) or (isinstance(one, str) and not name and not is_policy_text(one))
        if is_run and isinstance(one, str | Path) and Path(one).suffix == ".onnx":
            typed = either(f"{flag('policy')} onnx:{one}", repr(f"onnx:{one}"))
            raise ConfigError(f"{one}: expected a run, got an ONNX file. Name it so: {typed}")
        if is_run:
            opened.append((name, load_run(one, trust) if isinstance(one, str | Path) else one))
        else:
            opened.append(read_if_onnx(one, name))
    runs = [
        run for _, one in opened for run in ([one] if isinstance(one, Run) else one if isinstance(one, Runs) else [])
    ]
    others = [one for _, one in opened if not isinstance(one, Run | Runs)]
    if not items:
        typed = f"RUN, or {flag('policy')} POLICY {flag('env')} ID"
        raise ConfigError(f"Expected a run or a policy: {either(typed, 'policies, and env if none is a run')}.")
    recorded = [run.config.settings.env for run in runs]
    if env is None and not recorded:
        named_by = [env_of(one, trust) for one in others if isinstance(one, OnnxPolicy)]
        recorded = [env_id for env_id in named_by if env_id is not None]
    if env is None and not recorded:
        typed = f"{flag('env')} ID"
        raise ConfigError(
            f"Expected {either(typed, 'env')}: only runs and files of {either('gymdr export', 'run.export')} record "
            "their environment."
        )
    first = env or recorded[0]
    for run in runs:
        if env not in (None, run.config.settings.env):
            raise ConfigError(f"{spelled('env', env)}: {run.path} was trained on {run.config.settings.env}.")
    if stochastic and not any(map(is_file_text, others)):
        raise ConfigError(
            f"{spelled('stochastic')} is for policies of Stable-Baselines3: expected an sb3:FILE.zip, got none."
        )
    if context != INFO and all(isinstance(one, OnnxPolicy) and one.says_what_it_observes for one in others):
        raise ConfigError(
            f"{spelled('context')} is for policies that do not say what they observe: expected one, got only runs and "
            f"files of {either('gymdr export', 'run.export')}."
        )
    check_env_id(first)
    space = runs[0].config.space if runs else param_space_of(first)
    if space is None and randomization is not None:
        raise ConfigError(f"{spelled('randomization')}: {first} has no parameters to randomize.")
    draws = None if space is None or randomization is None or not others else resolve(randomization, space)
    setting = Setting(
        env=first,
        space=space,
        randomization=draws,
        context_ranges=_context_ranges(context, context_params, draws, space),
        stochastic=stochastic,
        trust=trust,
    )
    found: list[RunParts | FrozenPolicy] = []
    folders = []
    asked = 0  # policies that are no references
    for k, (name, one) in enumerate(opened):
        if isinstance(one, Run | Runs):
            found += [run.parts for run in ([one] if isinstance(one, Run) else one)]
            folders.append(one.path / EVALUATION)
        else:
            policy = open_foreign(one, setting, name)
            _check_name(policy.name)
            found.append(policy)
            folders.append(Path(f"{policy.name}-{EVALUATION}"))
        asked = len(found) if k < len(items) else asked
    policies = open_policies(found)
    return [*policies[:asked], *(dataclasses.replace(one, reference=True) for one in policies[asked:])], folders


def _check_name(name: str) -> None:
    """Raises ConfigError for a name of a policy that would place the folder of its evaluation elsewhere."""
    if {"/", "\\"} & {*name}:
        raise ConfigError(f"{either(flag('policy'), 'policies')}: expected a name without slashes, got {name!r}.")


def _named(given: PoliciesLike) -> list[tuple[str | None, Any]]:
    """Each policy with its name, None if it has to find one."""
    if isinstance(given, Mapping):
        return list(given.items())
    several = given if isinstance(given, Sequence) and not isinstance(given, str | Runs) else [given]
    return [(None, one) for one in several]


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
    observes = spelled("context", OBSERVATION)
    if space is None:
        raise ConfigError(f"{observes}: expected an environment with parameters to observe, got one without.")
    named = isinstance(chosen, Mapping) and None not in chosen.values()
    if draws is None and not named:
        raise ConfigError(
            f"{observes}: what a policy observes is scaled by the ranges that it was trained with. Give its training "
            f"randomization, {spelled('randomization', 'default')} if none was given then, or each parameter's range: "
            f"{spelled('context_params')} with {either('NAME=LOW:HIGH', '{NAME: (LOW, HIGH)}')}."
        )
    ranges = context_ranges(space, Randomization() if draws is None else draws, chosen)
    return {one.name: (one.low, one.high) for one in ranges}
