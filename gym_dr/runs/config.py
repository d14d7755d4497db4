"""The configuration of a run, merged from defaults, a file and the command line and checked before the first step."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import family_of, randomized_id
from gym_dr.envs.workers.vector_env import MAX_TIMEOUT
from gym_dr.errors import ConfigError, GymDrError, shortened, unknown_name
from gym_dr.options import check_choices, expect, option
from gym_dr.randomization.context import INFO, OBSERVATION, context_ranges
from gym_dr.randomization.files import read_table
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import load_object
from gym_dr.runs.environments import VECTORIZATIONS, ContextRanges, check_vectorization, param_space_of, task_of
from gym_dr.training.api import Algorithm
from gym_dr.wording import either, spelled
from gym_dr.wrappers.disturbed_space import split

CONTEXTS = (INFO, OBSERVATION)  # not "hidden", which would hide the draw from the run's records
ON_NAN = ("stop", "skip")
MAX_ENVS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings that all algorithms share."""

    env: str = option(DEFAULT_ENV, "id of the environment to train on")
    seed: int = option(1, "random seed of the run")
    num_envs: int = option(10, "number of sub-environments")
    vectorization: str = option("auto", "how sub-environments run; auto: native if available", VECTORIZATIONS)
    restart_workers: bool = option(
        False, "replace async workers that fail and truncate their episodes instead of ending the run"
    )
    worker_timeout: float = option(60.0, "seconds to wait for an answer of an async worker")
    context: str = option("info", "where the draw goes: into records only, or into the observation too", CONTEXTS)
    sampler: str = option(UNIFORM, "sampler of the draws, see gymdr list samplers")
    resample_every: int = option(0, "rollouts between re-draws of all parameters; 0 re-draws at every episode")
    checkpoint_every: int = option(
        100, "updates between checkpoints; each drops unfinished episodes and re-draws all parameters"
    )
    eval_episodes: int = option(100, "episodes of each evaluation after training; 0 for none")
    on_nan: str = option("stop", "what to do if a loss or an observation is not finite", ON_NAN)
    device: str = option("cpu", "device of the networks: cpu or cuda")

    def __post_init__(self) -> None:
        lowest = {"seed": 0, "num_envs": 1, "resample_every": 0, "checkpoint_every": 1, "eval_episodes": 0}
        for name, low in lowest.items():
            expect(getattr(self, name) >= low, name, f"at least {low}", getattr(self, name))
        check_choices(self)
        expect(self.num_envs <= MAX_ENVS, "num_envs", f"at most {MAX_ENVS}", self.num_envs)
        most = f"at most checkpoint_every ({self.checkpoint_every}), which re-draws all parameters"
        expect(self.resample_every <= self.checkpoint_every, "resample_every", most, self.resample_every)
        seconds = f"seconds above 0 and at most {MAX_TIMEOUT:g}"
        expect(0.0 < self.worker_timeout <= MAX_TIMEOUT, "worker_timeout", seconds, self.worker_timeout)
        for name in ("restart_workers", "worker_timeout"):
            usual = self.vectorization == "async" or getattr(self, name) == getattr(RunSettings, name)
            expect(usual, name, "with vectorization async, which has workers", self.vectorization)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that determines a run."""

    algorithm: str  # name
    settings: RunSettings
    randomization: Randomization | None  # None for environments without parameters
    options: Any  # the algorithm's dataclass
    sampler_options: Any = None  # the sampler's dataclass; None if it has none
    context_ranges: ContextRanges | None = None  # of parameters that the policy observes; derived from the others

    def to_dict(self) -> dict[str, Any]:
        """The form of ``config.json``, which ``config`` of ``gym_dr.train`` reads back."""
        form: dict[str, Any] = {"algorithm": self.algorithm, **dataclasses.asdict(self.settings)}
        form["randomization"] = {} if self.randomization is None else self.randomization.to_dict()
        form[self.algorithm] = _plain(self.options)
        if self.sampler_options is not None:
            form[self.settings.sampler] = _plain(self.sampler_options)
        return form

    def to_json(self) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def read_config_file(path: str, algorithm: Algorithm) -> dict[str, Any]:
    """Reads a configuration file and checks its settings and options, but not yet its randomization.

    Raises:
        ConfigError: The file cannot be read, is for another algorithm, or has a value of the wrong type or range.
        UnknownNameError: It has an unknown key.
    """
    table = read_table(path)
    written_for = table.pop("algorithm", algorithm.name)
    if written_for != algorithm.name:
        raise ConfigError(f"{path}: is for algorithm {shortened(written_for)}, not {algorithm.name!r}.")
    sampler = SAMPLERS.get(str(table.get("sampler", UNIFORM)))
    options, of_sampler = table.pop(algorithm.name, {}), table.pop(sampler.name, {})
    others = {"randomization": table.pop("randomization")} if "randomization" in table else {}
    fields = {algorithm.name: dataclasses.fields(algorithm.config_class()), sampler.name: sampler.option_fields()}
    for name, values in {algorithm.name: options, sampler.name: of_sampler}.items():
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: expected a table [{name}], got {shortened(values)}.")
        if misplaced := sorted(table.keys() & {field.name for field in fields[name]}):
            raise ConfigError(f"{path}: {', '.join(misplaced)}: expected in the table [{name}], not outside it.")
    if other := next((name for name in table if name in SAMPLERS), None):
        raise ConfigError(f"{path}: [{other}]: expected with sampler = {other!r}, got {sampler.name!r}.")
    try:
        known = ("algorithm", "randomization", algorithm.name, sampler.name)
        settings = check_fields(RunSettings, table, also=known)
        options = check_fields(algorithm.config_class(), options)
        of_sampler = check_sampler_options(sampler, of_sampler)
        RunSettings(**settings)
        _make_options(algorithm, options)
        sampler.make_options(of_sampler)
    except GymDrError as error:
        raise type(error)(f"{path}: {error}") from None
    return {"settings": settings, "options": options, "sampler_options": of_sampler, **others}


def build_config(
    algorithm: Algorithm,
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    randomization: Any,
    sampler_options: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Builds the resolved configuration from values that override the defaults.

    Args:
        algorithm: The algorithm of the run.
        settings: Fields of ``RunSettings``.
        options: Fields of the algorithm's configuration.
        randomization: In any form that environments accept; None for the preset "default". An environment without
            parameters needs one that draws nothing, since its user may expect a randomization.
        sampler_options: Fields of the sampler's configuration.

    Raises:
        UnknownNameError: The environment, a preset or a parameter is unknown.
        ConfigError: A value is out of range, or the environment cannot be randomized.
        RandomizationError: A range is impossible.
    """
    family = family_defaults(algorithm, settings.get("env", DEFAULT_ENV))
    common = {field.name for field in dataclasses.fields(RunSettings)}
    for_run = {name: value for name, value in family.items() if name in common}
    for_algorithm = {name: value for name, value in family.items() if name not in common}
    run_settings = RunSettings(**{"num_envs": algorithm.num_envs, **for_run, **settings})
    sampler = SAMPLERS.get(run_settings.sampler)
    if missing := [needed for needed in sampler.needs if needed not in algorithm.offers]:
        raise ConfigError(
            f"sampler: {sampler.name!r} needs {' and '.join(missing)}, which {algorithm.name} does not offer. Use "
            "another sampler or algorithm."
        )
    fixed_draws = sampler.name == UNIFORM or not run_settings.resample_every
    expect(
        fixed_draws,
        "resample_every",
        f"0 with sampler {sampler.name}, which draws at each reset",
        run_settings.resample_every,
    )
    made = sampler.make_options(sampler_options or {})
    own = _make_options(algorithm, {**for_algorithm, **options})
    space = param_space_of(run_settings.env)
    check_vectorization(run_settings.env, run_settings.vectorization)
    if space is None:
        drawn = run_settings.resample_every or run_settings.sampler != UNIFORM
        if drawn or run_settings.context != INFO or not _is_none(randomization):
            raise ConfigError(
                f"env: {run_settings.env} has no parameters, so nothing would be randomized. Use "
                f"{randomized_id(run_settings.env) or _listing()}, or train it as it is, with "
                f"{spelled('randomization', 'none')}."
            )
        return RunConfig(algorithm=algorithm.name, settings=run_settings, randomization=None, options=own)
    resolved = resolve("default" if randomization is None else randomization, space)
    if isinstance(randomization, Randomization) and randomization.switched_on is not None:
        space.check_randomization(resolved)  # it comes from a file, so nothing has warned yet
    with warnings.catch_warnings():  # the run itself warns
        warnings.simplefilter("ignore")
        sampler.for_space(space, split(resolved)[0], made, task_of(run_settings.env, run_settings.num_envs))
    ranges = None
    if run_settings.context == OBSERVATION:
        if not resolved:
            raise ConfigError(
                "context: expected a randomization with 'observation', which adds the draw to it; got none."
            )
        ranges = {r.name: (r.low, r.high) for r in context_ranges(space, resolved)}
    return RunConfig(
        algorithm=algorithm.name,
        settings=run_settings,
        randomization=resolved,
        options=own,
        sampler_options=made,
        context_ranges=ranges,
    )


def _listing() -> str:
    return f"a gym_dr/... id ({either('gymdr list envs', 'gymnasium.pprint_registry()')})"


def _is_none(randomization: Any) -> bool:
    """Whether a randomization draws nothing in any environment."""
    return randomization == "none" or (isinstance(randomization, Mapping) and not randomization)


def family_defaults(algorithm: Algorithm, env_id: str) -> Mapping[str, Any]:
    """Settings and options for which this environment overrides the algorithm's defaults."""
    family = family_of(env_id)
    return family.defaults.get(algorithm.name, {}) if family is not None else {}


def _make_options(algorithm: Algorithm, options: Mapping[str, Any]) -> Any:
    try:
        return algorithm.config_class()(**options)
    except GymDrError:
        raise
    except (TypeError, ValueError) as error:  # a plugin's algorithm may reject a value this way
        raise ConfigError(f"{algorithm.name}: {error}") from None


def check_sampler_options(sampler: Sampler, values: Mapping[str, Any]) -> dict[str, Any]:
    """Applies ``check_fields`` to a sampler's options; a sampler may have none."""
    if not sampler.option_fields():
        sampler.make_options(values)
        return {}
    return check_fields(load_object(sampler.options), values)


def _plain(options: Any) -> dict[str, Any]:
    """A configuration's fields in JSON form."""
    return {
        name: list(value) if isinstance(value, tuple) else value.to_dict() if hasattr(value, "to_dict") else value
        for name, value in vars(options).items()
    }


def check_fields(cls: type, values: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, Any]:
    """Checks names and types of a dataclass's values; converts lists to tuples and ints to floats where needed.

    Suggestions for an unknown name come from the fields and ``also``.

    Raises:
        UnknownNameError: The dataclass has no such field.
        ConfigError: A value has another type.
    """
    hints = typing.get_type_hints(cls)
    known = {field.name for field in dataclasses.fields(cls)}
    checked = {}
    for name, value in values.items():
        if name not in known:
            raise unknown_name("setting", name, known.union(also))
        checked[name] = _convert(name, hints[name], value)
    return checked


def _convert(name: str, hint: Any, value: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        inner = [part for part in get_args(hint) if part is not type(None)]
        if isinstance(value, Mapping) and any(get_origin(part) is Mapping for part in inner):
            return value
        return None if value is None else _convert(name, inner[0], value)
    if get_origin(hint) is tuple:
        if isinstance(value, list | tuple):
            return tuple(_convert(name, get_args(hint)[0], item) for item in value)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        raise ConfigError(f"{name}: expected a number of at most 64 bits, got {value.bit_length()} bits.")
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    expected = "a list" if get_origin(hint) is tuple else getattr(hint, "__name__", str(hint))
    raise ConfigError(f"{name}: expected {expected}, got {shortened(value)}.")


def differences(saved: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Describes the settings in which a configuration differs from a saved one.

    Options that the saved configuration lacks, since an older version wrote it, have their defaults.
    """
    sections = {config.algorithm: config.options}
    if config.sampler_options is not None and saved.get("sampler") == config.settings.sampler:
        sections[config.settings.sampler] = config.sampler_options
    filled = {name: {**_defaults(options), **saved.get(name, {})} for name, options in sections.items()}
    return _differences({"randomization": {}, **_defaults(config.settings), **saved, **filled}, config.to_dict())


def _defaults(options: Any) -> dict[str, Any]:
    values = {field.name: field.default for field in dataclasses.fields(options)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _differences(saved: Mapping[str, Any], current: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name in sorted(saved.keys() | current.keys()):
        old, new = saved.get(name), current.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{prefix}{name}.")
        elif old != new:
            found.append(f"{prefix}{name} was {old!r} and is {new!r}")
    return found


def check_device(device: str) -> None:
    """Checks that networks can be trained on a device, which evaluation and play do not need.

    Raises:
        ConfigError: The device is not available.
    """
    import torch  # heavy: only when a run begins

    try:
        torch.zeros(1, device=device).item()  # a meta device has no numbers
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device: expected cpu, or cuda where there is one, got {device!r} ({reason}).") from None
