"""The configuration of a run: ``build_config`` makes it from keywords and a file, ``open_run`` from a run's folder.

Both check everything before the first step.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import family_of, randomized_id
from gym_dr.envs.workers.vector_env import MAX_TIMEOUT
from gym_dr.errors import ConfigError, GymDrError, PluginError, RunFolderError, located, shortened
from gym_dr.options import check_choices, check_fields, expect, option
from gym_dr.randomization.context import INFO, OBSERVATION, context_ranges
from gym_dr.randomization.files import read_table
from gym_dr.randomization.presets import resolve, with_rules
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import load_object
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.environments import (
    VECTORIZATIONS,
    ContextRanges,
    check_env_id,
    check_module,
    check_sensors,
    check_vectorization,
    param_space_of,
    task_of,
)
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.other_runs import check_imitable, check_weights_fit
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import find_algorithm
from gym_dr.wording import either, spelled
from gym_dr.wrappers.adapt import OWN_KEYWORDS
from gym_dr.wrappers.disturbed_space import split
from gym_dr.wrappers.past import MAX_STACKED, Past

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
    worker_timeout: float = option(60.0, "seconds to wait for an answer from an async worker")
    context: str = option("info", "who sees the draw: info (only records) or observation (also the policy)", CONTEXTS)
    stack_observations: int = option(
        1, "number of observations that the policy sees at once: the current one and those before it"
    )
    observe_reward: bool = option(False, "append the reward of the last step to what the policy observes")
    sampler: str = option(UNIFORM, "sampler of the draws; see gymdr list samplers")
    resample_every: int = option(0, "rollouts between re-draws of all parameters; 0 re-draws at every episode")
    checkpoint_every: int = option(
        100, "updates between checkpoints; each checkpoint drops unfinished episodes and re-draws all parameters"
    )
    eval_episodes: int = option(100, "episodes in each evaluation after training; 0 for none")
    on_nan: str = option("stop", "what to do if a loss or an observation is not finite", ON_NAN)
    device: str = option("cpu", "device of the networks: cpu or cuda")
    reserved_seeds: tuple[int, ...] = option(
        (), "seeds on which options were tuned; runs with these seeds must not be reported"
    )
    loggers: tuple[str, ...] = option((), "tools that show the run while it trains; see gymdr list loggers")

    def __post_init__(self) -> None:
        lowest = {"seed": 0, "num_envs": 1, "resample_every": 0, "checkpoint_every": 1, "eval_episodes": 0}
        for name, low in lowest.items():
            expect(getattr(self, name) >= low, name, f"at least {low}", getattr(self, name))
        expect(min(self.reserved_seeds, default=0) >= 0, "reserved_seeds", "at least 0 each", self.reserved_seeds)
        check_choices(self)
        stacked = f"1 to {MAX_STACKED}"
        expect(1 <= self.stack_observations <= MAX_STACKED, "stack_observations", stacked, self.stack_observations)
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
    # derived from the others:
    context_ranges: ContextRanges | None = None  # of parameters that the policy observes
    space: ParamSpace | None = dataclasses.field(default=None, compare=False, repr=False)  # of the environment

    @property
    def past(self) -> Past:
        """What the policy observes besides the current observation and the draw."""
        return Past(stack_observations=self.settings.stack_observations, observe_reward=self.settings.observe_reward)

    @property
    def steps_per_update(self) -> int | None:
        """Environment steps of one update, with reset steps; None if they depend on the length of episodes."""
        steps = getattr(self.options, "rollout_steps", None)
        return None if steps is None else int(steps * self.settings.num_envs)

    def to_dict(self) -> dict[str, Any]:
        """The form of ``config.json``, which ``config`` of ``gym_dr.train`` reads back."""
        form: dict[str, Any] = {"algorithm": self.algorithm, **_plain(self.settings)}
        form["randomization"] = {} if self.randomization is None else self.randomization.to_dict()
        form[self.algorithm] = _plain(self.options)
        if self.sampler_options is not None:
            form[self.settings.sampler] = _plain(self.sampler_options)
        return form

    def to_json(self) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


NOT_COMPARED = ("loggers",)  # settings that change nothing of a run's results
SETTINGS = tuple(field.name for field in dataclasses.fields(RunSettings))
KEYWORDS = (  # of gym_dr.train that are not settings of a single run
    *("run_dir", "seeds", "launcher", "workers", "ray_address", "config", "trust"),
    *("randomization", "randomize", "total_steps", "overwrite", "progress", "callback", "command"),
)


class _Given(NamedTuple):
    """Checked values, each name once."""

    settings: Mapping[str, Any]  # of ``RunSettings``
    options: Mapping[str, Any]  # of the algorithm
    sampler_options: Mapping[str, Any]
    randomization: Any = None  # in any form; None if it is not given


def build_config(
    algorithm: Algorithm,
    given: Mapping[str, Any],
    *,
    config: str | Path | None = None,
    trust: Collection[str] = (),
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    by_seed: bool = True,
) -> RunConfig:
    """Makes the configuration of a new run: ``given`` overrides a file, which overrides the defaults.

    Args:
        algorithm: The algorithm of the run.
        given: Fields of ``RunSettings`` and of the algorithm's and the sampler's configuration.
        config: See ``gym_dr.train``, as for the others.
        trust: Modules that the file may import.
        randomization: None for the file's, or else the preset "default". An environment without parameters needs one
            that draws nothing, since its user may expect a randomization.
        randomize: Rules for single parameters.
        by_seed: Whether an option that names a run also takes a folder of several seeds, of which it is the run with
            the same seed.

    Raises:
        UnknownNameError: A setting, the environment, a preset or a parameter is unknown.
        ConfigError: A value has the wrong type or is out of range, the file cannot be used, or the environment cannot
            be randomized.
        RandomizationError: A range is impossible.
        PluginError: An option of the algorithm or the sampler has the name of another one.
    """
    file = _Given({}, {}, {}) if config is None else _read_named(Path(config), algorithm)
    keywords = _check_given(algorithm, given, file.settings.get("sampler", UNIFORM))
    if "env" not in given:
        check_module(file.settings.get("env", ""), trust)
    made = _make(algorithm, file, keywords._replace(randomization=randomization), randomize)
    _check_sequences(made.settings, made.options)
    return _with_runs(made, by_seed=by_seed)


def open_run(path: str | Path, trust: Collection[str] = ()) -> tuple[RunFolder, RunConfig, Algorithm]:
    """Opens a run's folder, its configuration and its algorithm; plugins must be loaded.

    The folder may be untrusted: its content is only data, which names no other files and, except for modules in
    ``trust``, runs no code.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: Its configuration cannot be read, or names a module or a file.
        UnknownNameError: Its algorithm or environment is not installed.
    """
    folder = RunFolder.open(path)
    named = folder.read_config()["algorithm"]
    with located(folder.config):
        algorithm = find_algorithm(named)
    saved = read_config_file(str(folder.config), algorithm)
    with located(folder.config):
        check_module(saved["settings"].get("env", ""), trust)
        drawn = saved.pop("randomization", {})  # 0.2 left it out for environments without parameters
        if isinstance(drawn, str):
            raise ConfigError("randomization: expected a table in a run's configuration, got a name.")
        if isinstance(drawn, Mapping):
            drawn = Randomization.from_dict(drawn, saved=True)
        config = _make(algorithm, _Given(**saved, randomization=drawn), _Given({}, {}, {}), saved=True)
    return folder, config, algorithm


def _make(
    algorithm: Algorithm,
    file: _Given,
    given: _Given,
    randomize: Mapping[str, Any] | None = None,
    *,
    saved: bool = False,
) -> RunConfig:
    """Makes a configuration. If several of these give a value, the last one wins:

    the dataclasses, the algorithm (its number of environments), the environment's family, a file, the user. A file that
    a run ``saved`` has all settings but later ones, which the family does not set: the run was made without them.
    """
    named = {**file.settings, **given.settings}
    env_id = named.get("env", DEFAULT_ENV)
    if isinstance(env_id, str):  # else refused below
        check_env_id(env_id)  # imports its module, which registers the family
    family = family_defaults(algorithm, env_id) if isinstance(env_id, str) and not saved else {}
    for_run = {name: value for name, value in family.items() if name in SETTINGS}
    for_algorithm = {name: value for name, value in family.items() if name not in SETTINGS}
    settings = RunSettings(**{"num_envs": algorithm.num_envs, **for_run, **named})
    sampler = SAMPLERS.get(settings.sampler)
    _check_sampler(sampler, algorithm, settings)
    of_file = file.sampler_options if file.settings.get("sampler", UNIFORM) == sampler.name else {}
    sampler_options = sampler.make_options({**of_file, **given.sampler_options})
    chosen = {**file.options, **given.options}
    if chosen.get("normalize_observations") is False:  # without it no sensor can be ignored
        for_algorithm.pop("ignored_sensors", None)
    options = _make_options(algorithm, {**for_algorithm, **chosen})

    space = param_space_of(settings.env)
    check_sensors(settings.env, "ignored_sensors", getattr(options, "ignored_sensors", ()))
    check_vectorization(settings.env, settings.vectorization)
    drawn = file.randomization if given.randomization is None else given.randomization
    if randomize:
        drawn = randomize if space is None else with_rules(drawn, randomize, space)
    if space is None:
        _check_nothing_varies(settings, drawn)
        return RunConfig(algorithm=algorithm.name, settings=settings, randomization=None, options=options)
    resolved = resolve("default" if drawn is None else drawn, space)
    if isinstance(drawn, Randomization) and drawn.switched_on is not None:
        space.check_randomization(resolved)  # it comes from a file, so nothing has warned yet
    with warnings.catch_warnings():  # the run itself warns
        warnings.simplefilter("ignore")
        sampler.for_space(space, split(resolved)[0], sampler_options, task_of(settings.env, settings.num_envs))
    return RunConfig(
        algorithm=algorithm.name,
        settings=settings,
        randomization=resolved,
        options=options,
        sampler_options=sampler_options,
        context_ranges=_observed(space, resolved) if settings.context == OBSERVATION else None,
        space=space,
    )


def family_defaults(algorithm: Algorithm, env_id: str) -> Mapping[str, Any]:
    """Settings and options for which this environment overrides the algorithm's defaults."""
    family = family_of(env_id)
    return family.defaults.get(algorithm.name, {}) if family is not None else {}


def check_not_reserved(name: str, seeds: Collection[int], reserved: Collection[int]) -> None:
    """Checks that options were not tuned on any of some seeds.

    Raises:
        ConfigError: They were, so results with these seeds would look better than those with others.
    """
    if taken := sorted({*seeds} & {*reserved}):
        raise ConfigError(
            f"{name}: expected seeds on which no options were tuned, got {', '.join(map(str, taken))}. Use others than "
            f"reserved_seeds: {', '.join(map(str, reserved))}."
        )


def with_total_steps(config: RunConfig, total_steps: int) -> RunConfig:
    """The configuration with as many updates as it takes to make at least ``total_steps`` environment steps.

    Raises:
        ConfigError: It is no whole number above 0, or the steps of an update are not known in advance.
    """
    if isinstance(total_steps, bool) or not isinstance(total_steps, int) or total_steps < 1:
        raise ConfigError(
            f"{spelled('total_steps')}: expected a whole number of at least 1, got {shortened(total_steps)}."
        )
    if (each := config.steps_per_update) is None:
        raise ConfigError(
            f"{spelled('total_steps')}: expected an algorithm with rollouts of a fixed length, got {config.algorithm}, "
            f"whose updates take complete episodes. Use {spelled('updates')}."
        )
    options = dataclasses.replace(config.options, updates=-(-total_steps // each))
    return dataclasses.replace(config, options=options)


# ---- what a file and a user give -------------------------------------------------------------------------------------


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
    with located(path):
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
    with located(path):
        known = ("algorithm", "randomization", algorithm.name, sampler.name)
        settings = check_fields(RunSettings, table, also=known)
        options = check_fields(algorithm.config_class(), options)
        of_sampler = _check_sampler_options(sampler, of_sampler)
        RunSettings(**settings)
        _make_options(algorithm, options)
        sampler.make_options(of_sampler)
    return {"settings": settings, "options": options, "sampler_options": of_sampler, **others}


def option_names(algorithm: Algorithm) -> list[str]:
    """The fields of an algorithm's configuration.

    Raises:
        PluginError: One has the name of a setting that every run has.
    """
    names = [field.name for field in dataclasses.fields(algorithm.config_class())]
    if taken := sorted({*names} & {*SETTINGS, *KEYWORDS}):
        raise PluginError(
            f"Algorithm {algorithm.name!r}: every run already has an option {', '.join(taken)}; rename the algorithm's."
        )
    return names


def sampler_option_names(sampler: Sampler, algorithm: Algorithm) -> list[str]:
    """The options of a sampler.

    Raises:
        PluginError: One has the name of another option of ``gymdr train``, or of a keyword of ``AdaptParams``.
    """
    names = [field.name for field in sampler.option_fields()]
    if taken := sorted({*names} & {*OWN_KEYWORDS}):
        raise PluginError(
            f"Sampler {sampler.name!r}: AdaptParams already has a keyword {', '.join(taken)}; rename the sampler's."
        )
    if taken := sorted({*names} & {*SETTINGS, *KEYWORDS, *option_names(algorithm)}):
        raise PluginError(
            f"Sampler {sampler.name!r}: runs of {algorithm.name} already have an option {', '.join(taken)}; rename the "
            "sampler's."
        )
    return names


def file_beside(path: Path, named: str) -> str:
    """Resolves the randomization that a file names: a preset, or a file beside it.

    Raises:
        ConfigError: It names a file that is elsewhere.
    """
    if not (named.endswith((".toml", ".json")) or {"/", os.sep} & set(named)):
        return named
    folder = path.parent
    if not (folder / named).resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{path}: randomization: expected a file beside or below this one, got {shortened(named)}. Copy it there."
        )
    return str(folder / named)


def _read_named(path: Path, algorithm: Algorithm) -> _Given:
    """Reads a file that the user named, which may name a file with a randomization."""
    read = _Given(**read_config_file(str(path), algorithm))
    named = read.randomization
    return read._replace(randomization=file_beside(path, named)) if isinstance(named, str) else read


def _check_given(algorithm: Algorithm, given: Mapping[str, Any], sampler_of_file: str) -> _Given:
    """Checks names and types of keywords, but not their ranges."""
    sampler = SAMPLERS.get(str(given.get("sampler", sampler_of_file)))
    own, of_sampler = option_names(algorithm), sampler_option_names(sampler, algorithm)
    for name in given.keys() - {*own, *SETTINGS, *of_sampler}:
        if owners := [other.name for other in SAMPLERS.values() if name in [f.name for f in other.option_fields()]]:
            raise ConfigError(f"{name}: expected with sampler {' or '.join(owners)}, got {sampler.name}.")
    drawing = _check_sampler_options(sampler, {name: value for name, value in given.items() if name in of_sampler})
    options = check_fields(algorithm.config_class(), {name: value for name, value in given.items() if name in own})
    others = {name: value for name, value in given.items() if name not in (*own, *of_sampler)}
    return _Given(check_fields(RunSettings, others, also=(*own, *of_sampler, *KEYWORDS)), options, drawing)


def _check_sampler_options(sampler: Sampler, values: Mapping[str, Any]) -> dict[str, Any]:
    """Applies ``check_fields`` to a sampler's options; a sampler may have none."""
    if not sampler.option_fields():
        sampler.make_options(values)
        return {}
    return check_fields(load_object(sampler.options), values)


# ---- what fits together ----------------------------------------------------------------------------------------------


def _make_options(algorithm: Algorithm, options: Mapping[str, Any]) -> Any:
    try:
        made = algorithm.config_class()(**options)
        check_choices(made)  # a plugin's configuration may leave it to us
        return made
    except GymDrError:
        raise
    except (TypeError, ValueError) as error:  # a plugin's algorithm may reject a value this way
        raise ConfigError(f"{algorithm.name}: {error}") from None


def _with_runs(config: RunConfig, *, by_seed: bool) -> RunConfig:
    """The configuration of a new run, with full paths of the runs that its options name.

    Raises:
        ConfigError: There is no such run, or this algorithm cannot go on from it or imitate it.
    """
    paths = {}
    for field in dataclasses.fields(config.options):
        name, value, choices = field.name, getattr(config.options, field.name), field.metadata.get("choices", ())
        kind = field.metadata.get("run")
        if not kind or value in choices:
            continue
        words = f"{', '.join(choices)} or a run's folder" if choices else "a run's folder"
        if not value:  # which would be the current folder
            raise ConfigError(f"{name}: expected {words}, got none. Name one: {spelled(name, 'runs/...')}")
        try:
            folder, other, _ = open_run(_with_the_seed(Path(value), config.settings.seed) if by_seed else value)
        except RunFolderError as error:
            close = difflib.get_close_matches(value, choices, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{name}: expected {words}, got {shortened(value)}: {error}{hint}") from None
        source = str(folder.path)
        (check_weights_fit if kind == "weights" else check_imitable)(config, other, name, source)
        if not updates_saved(folder):
            raise ConfigError(f"{name}: {source} has no checkpoint: it has learned nothing yet. Train it first.")
        paths[name] = str(folder.path.resolve())
    return dataclasses.replace(config, options=dataclasses.replace(config.options, **paths)) if paths else config


def _with_the_seed(path: Path, seed: int) -> Path:
    """The run with the same seed, if a folder holds one for each of several seeds; else the folder itself."""
    own = path / f"seed-{seed}"
    return own if own.is_dir() and not RunFolder(path).config.exists() else path


def _check_sampler(sampler: Sampler, algorithm: Algorithm, settings: RunSettings) -> None:
    """Checks that a sampler fits the algorithm and the other settings."""
    if missing := [needed for needed in sampler.needs if needed not in algorithm.offers]:
        raise ConfigError(
            f"sampler: {sampler.name!r} needs {' and '.join(missing)}, which {algorithm.name} does not offer. Use "
            "another sampler or algorithm."
        )
    fixed_draws = sampler.name == UNIFORM or not settings.resample_every
    expected = f"0 with sampler {sampler.name}, which draws at each reset"
    expect(fixed_draws, "resample_every", expected, settings.resample_every)


def _check_sequences(settings: RunSettings, options: Any) -> None:
    """Checks that each minibatch of an algorithm with memory gets a sequence."""
    needed = ("rollout_steps", "sequence_length", "minibatches")
    if getattr(options, "memory", "none") == "none" or not all(hasattr(options, name) for name in needed):
        return
    sequences = settings.num_envs * options.rollout_steps // options.sequence_length
    most = (
        f"at most {sequences}, the sequences of an update (num_envs {settings.num_envs} x rollout_steps "
        f"{options.rollout_steps} / sequence_length {options.sequence_length})"
    )
    expect(options.minibatches <= sequences, "minibatches", most, options.minibatches)


def _check_nothing_varies(settings: RunSettings, randomization: Any) -> None:
    """Checks that a run on an environment without parameters wants none."""
    drawn = settings.resample_every or settings.sampler != UNIFORM
    none = randomization == "none" or (isinstance(randomization, Mapping) and not randomization)
    if drawn or settings.context != INFO or not none:
        listing = either("gymdr list envs", "gymnasium.pprint_registry()")
        raise ConfigError(
            f"env: {settings.env} has no parameters, so nothing would be randomized. Use "
            f"{randomized_id(settings.env) or f'a gym_dr/... id ({listing})'}, or train it as it is, with "
            f"{spelled('randomization', 'none')}."
        )


def _observed(space: ParamSpace, randomization: Randomization) -> ContextRanges:
    """The ranges of the parameters that a policy observes with ``context="observation"``."""
    if not randomization:
        raise ConfigError("context: expected a randomization with 'observation', which adds the draw to it; got none.")
    return {r.name: (r.low, r.high) for r in context_ranges(space, randomization)}


# ---- as text, and compared with a saved one --------------------------------------------------------------------------


def _plain(options: Any) -> dict[str, Any]:
    """A configuration's fields in JSON form."""
    return {
        name: list(value) if isinstance(value, tuple) else value.to_dict() if hasattr(value, "to_dict") else value
        for name, value in vars(options).items()
    }


def differences(saved: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Describes the settings in which a configuration differs from a saved one.

    Options that the saved configuration lacks, since an older version wrote it, have their defaults.
    """
    sections = {config.algorithm: config.options}
    if config.sampler_options is not None and saved.get("sampler") == config.settings.sampler:
        sections[config.settings.sampler] = config.sampler_options
    filled = {name: {**_defaults(options), **saved.get(name, {})} for name, options in sections.items()}
    merged = {"randomization": {}, **_defaults(config.settings), **saved, **filled}
    unseen = {name: getattr(config.settings, name) for name in NOT_COMPARED}
    return _differences({**merged, **unseen}, {**config.to_dict(), **unseen})


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
