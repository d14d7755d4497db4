"""Makes the configuration of a run: ``build_config`` from keywords and a file, ``open_run`` from a run's folder.

Both check everything before the first step.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import family_of, randomized_id
from gym_dr.errors import (
    ConfigError,
    PluginError,
    RunFolderError,
    UnknownNameError,
    as_path,
    did_you_mean,
    located,
    raised_as,
    shortened,
    unknown_name,
)
from gym_dr.options import check_fields, check_values, expect
from gym_dr.randomization.context import INFO, OBSERVATION, context_ranges
from gym_dr.randomization.files import file_beside, read_table
from gym_dr.randomization.presets import resolve, with_rules
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import load_object
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.config import KEYWORDS, SETTINGS, OpenedRun, RunConfig, RunSettings, check_other_run, with_total_steps
from gym_dr.runs.environments import (
    REGISTERED_BY,
    ContextRanges,
    check_env_id,
    check_sensors,
    check_source,
    check_vectorization,
    has_discrete_actions,
    make_sampler,
    param_space_of,
)
from gym_dr.runs.folder import RunFolder, seed_name
from gym_dr.training.api import Algorithm
from gym_dr.training.config import RolloutConfig
from gym_dr.training.registry import find_algorithm
from gym_dr.version import WRITTEN_BY
from gym_dr.wrappers.adapt import OWN_KEYWORDS


def build_config(
    algorithm: Algorithm,
    values: Mapping[str, Any],
    *,
    config: str | Path | None = None,
    trust: Collection[str] = (),
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    by_seed: bool = True,
) -> RunConfig:
    """Makes the configuration of a new run: ``values`` override those of a file, which override the defaults.

    Args:
        algorithm: The algorithm of the run.
        values: Settings of the run and options of the algorithm and the sampler.
        config: See ``gym_dr.train``, as for the others.
        trust: Modules that the file may import.
        randomization: None for the file's, or else the preset "default". An environment without parameters needs one
            that draws nothing, since its user may expect a randomization.
        randomize: Rules for single parameters.
        by_seed: Whether a folder of several seeds, in an option that names a run, stands for its run with the same
            seed.

    Raises:
        UnknownNameError: A setting, the environment, a preset or a parameter is unknown.
        ConfigError: A value has the wrong type or is out of range, the file cannot be used, or the environment cannot
            be randomized.
        RandomizationError: A range is impossible.
        PluginError: An option of the algorithm or the sampler has the name of another option.
    """
    if not isinstance(env := values.get("env", ""), str):
        raise ConfigError(f"env: expected an id, got {shortened(env)}. `gym_dr.register` gives a function one.")
    in_file, drawn = ({}, {}) if config is None else read_config_file(config, algorithm)
    before = in_file.get("sampler", UNIFORM)
    sampler = SAMPLERS.get(str(values.get("sampler", before)))
    if sampler.name != before:  # the file's options are another sampler's
        kept = (*SETTINGS, *option_names(algorithm))
        in_file = {name: value for name, value in in_file.items() if name in kept}
    values = _checked(algorithm, sampler, values)
    if "env" not in values:
        check_source(in_file.get("env", ""), trust)
    if randomization is not None:  # replaces both of the file's
        drawn = {"randomization": randomization}
    elif config is not None and isinstance(rules := drawn.get("randomization"), str):
        drawn["randomization"] = file_beside(as_path(config), rules)
    drawn |= {"randomize": randomize} if randomize else {}
    made = _make(algorithm, {**in_file, **values}, drawn.get("randomization"), drawn.get("randomize"))
    if "total_steps" in drawn and "updates" not in values:
        made = with_total_steps(made, drawn["total_steps"], in_file)
    _check_minibatches(made.options, made.settings.num_envs)
    _check_draws_to_observe(made)
    made = _with_runs(made, values, by_seed=by_seed)
    _check_actions(made, values)  # not a file's: that of a run has all options, with its family's values
    return made


def open_run(path: str | Path, trust: Collection[str] = ()) -> OpenedRun:
    """Opens a run's folder, its configuration and its algorithm; plugins must be loaded.

    The folder may be untrusted: its content is only data, names no other files, and runs no code except for modules in
    ``trust``.

    Raises:
        RunFolderError: There is no run at the path.
        ConfigError: Its configuration cannot be read, or names a module or a file.
        UnknownNameError: Its algorithm or environment is not installed.
    """
    folder = RunFolder.open(path)
    table = folder.read_config()
    with located(folder.config):
        algorithm = find_algorithm(table["algorithm"])
    values, drawn = read_config_file(folder.config, algorithm)
    rules = drawn.pop("randomization", None)
    with located(folder.config):
        check_source(values.get("env", ""), trust, table.get(REGISTERED_BY, ""))
        if drawn:
            raise ConfigError(f"{', '.join(drawn)}: expected only a randomization in a run's configuration.")
        if isinstance(rules, str):
            raise ConfigError("randomization: expected a table in a run's configuration, got a name.")
        if isinstance(rules, Mapping):
            rules = Randomization.from_dict(rules)
        config = _make(algorithm, values, Randomization() if rules is None else rules, saved=True)
    return OpenedRun(folder=folder, config=config, algorithm=algorithm)


def read_config_file(path: str | Path, algorithm: Algorithm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reads a configuration file: settings and options by name, checked; draws and ``total_steps`` unchecked.

    Raises:
        ConfigError: The file cannot be read, is for another algorithm, or has a value of the wrong type.
        UnknownNameError: It has an unknown key.
    """
    if not (table := read_table(path)):
        raise ConfigError(f"{path}: expected settings, got an empty file.")
    for name in (WRITTEN_BY, REGISTERED_BY):
        table.pop(name, None)
    drawn: dict[str, Any] = {
        name: table.pop(name) for name in ("randomization", "randomize", "total_steps") if name in table
    }
    with located(path):
        if (written_for := table.pop("algorithm", algorithm.name)) != algorithm.name:
            raise ConfigError(f"is for algorithm {shortened(written_for)}, not {algorithm.name!r}.")
        sampler = SAMPLERS.get(str(table.get("sampler", UNIFORM)))
        owned = {algorithm.name: option_names(algorithm), sampler.name: sampler_option_names(sampler, algorithm)}
        values: dict[str, Any] = {}
        for name, known in owned.items():
            inner = table.pop(name, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"expected a table [{name}], got {shortened(inner)}.")
            if misplaced := sorted(table.keys() & {*known}):
                raise ConfigError(f"{', '.join(misplaced)}: expected in the table [{name}], not outside it.")
            for key in inner:
                if key not in known:
                    raise unknown_name("setting", key, known)
            values |= inner
        if other := next((name for name in table if name in SAMPLERS), None):
            raise ConfigError(f"[{other}]: expected with sampler = {other!r}, got {sampler.name!r}.")
        return _checked(algorithm, sampler, {**table, **values}), drawn


def option_names(algorithm: Algorithm) -> list[str]:
    """The fields of an algorithm's configuration.

    Raises:
        PluginError: A field has the name of a run's setting.
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
        PluginError: An option has the name of another option of ``gymdr train``, or of a keyword of ``AdaptParams``.
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


def _checked(algorithm: Algorithm, sampler: Sampler, values: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types of settings and options; their classes check ranges.

    Raises:
        UnknownNameError: There is no such setting or option.
        ConfigError: A value has the wrong type, or an option is another sampler's.
    """
    names = {RunSettings: SETTINGS, algorithm.config_class(): option_names(algorithm)}
    if of_sampler := sampler_option_names(sampler, algorithm):
        names[load_object(sampler.options)] = of_sampler
    known = [name for own in names.values() for name in own]
    for name in values:
        if name not in known:
            if owners := [one.name for one in SAMPLERS.values() if name in [f.name for f in one.option_fields()]]:
                raise ConfigError(f"{name}: expected with sampler {' or '.join(owners)}, got {sampler.name}.")
            if name in KEYWORDS:
                raise UnknownNameError(f"Unknown setting {name!r} in a file: give it as `{name}`.")
            raise unknown_name("setting", name, {*known, *KEYWORDS, algorithm.name, sampler.name} - {name})
    checked: dict[str, Any] = {}
    for cls, own in names.items():
        checked |= check_fields(cls, {name: values[name] for name in own if name in values})
    return checked


def _make(
    algorithm: Algorithm,
    values: Mapping[str, Any],
    rules: Any,
    randomize: Mapping[str, Any] | None = None,
    *,
    saved: bool = False,
) -> RunConfig:
    """Makes a configuration from checked values.

    They override the defaults of the environment's family, which override those of the algorithm and of the classes.
    The values that a run ``saved`` lack only newer settings, which the family does not set.
    """
    env_id = values.get("env", DEFAULT_ENV)
    check_env_id(env_id)  # imports the module that registers the family
    family = {} if saved else family_defaults(algorithm, env_id)
    if values.get("normalize_observations") is False:  # without normalization, no sensor can be ignored
        family.pop("ignored_sensors", None)
    values = {"num_envs": algorithm.num_envs, **family, **values}
    own = option_names(algorithm)
    settings = RunSettings(**{name: value for name, value in values.items() if name in SETTINGS})
    options = make_options(algorithm, {name: value for name, value in values.items() if name in own})
    sampler = SAMPLERS.get(settings.sampler)
    redrawn_by_sampler = sampler.name != UNIFORM and settings.resample_every
    expected = f"0 with sampler {sampler.name}, which draws at each reset"
    expect(not redrawn_by_sampler, "resample_every", expected, settings.resample_every)
    of_sampler = {name: value for name, value in values.items() if name not in (*SETTINGS, *own)}
    sampler_options = sampler.make_options(of_sampler)

    space = param_space_of(settings.env)
    check_sensors(settings.env, "ignored_sensors", getattr(options, "ignored_sensors", ()))
    check_vectorization(settings.env, settings.vectorization)
    if randomize:
        rules = randomize if space is None else with_rules(rules, randomize, space)
    if space is None:
        _check_nothing_varies(settings, rules)
        return RunConfig(algorithm=algorithm.name, settings=settings, randomization=None, options=options)
    resolved = resolve("default" if rules is None else rules, space)
    with warnings.catch_warnings():  # the run will warn
        warnings.simplefilter("ignore")
        make_sampler(sampler, settings.env, settings.num_envs, space, resolved, sampler_options)
    return RunConfig(
        algorithm=algorithm.name,
        settings=settings,
        randomization=resolved,
        options=options,
        sampler_options=sampler_options,
        context_ranges=_observed(space, resolved) if settings.context == OBSERVATION else None,
        space=space,
    )


def make_options(algorithm: Algorithm, options: Mapping[str, Any]) -> Any:
    """The algorithm's configuration.

    Raises:
        ConfigError: A value is out of range, also if a plugin's configuration raises another error.
    """
    with raised_as(ConfigError, algorithm.name, (TypeError, ValueError)):
        made = algorithm.config_class()(**options)
        check_values(made)  # for plugins' configurations
        return made


def family_defaults(algorithm: Algorithm, env_id: str) -> dict[str, Any]:
    """Settings and options for which this environment overrides the algorithm's defaults.

    Raises:
        UnknownNameError: There is no such setting or option.
        ConfigError: A value has the wrong type.
    """
    family = family_of(env_id)
    defaults = family.defaults.get(algorithm.name, {}) if family is not None else {}
    with located(f"Defaults of {env_id} for {algorithm.name}"):  # of a plugin or a user
        checked = _checked(algorithm, SAMPLERS.get(UNIFORM), defaults)
    return {name: checked[name] for name in defaults}


# ---- what fits together ----------------------------------------------------------------------------------------------


def _with_runs(config: RunConfig, given: Collection[str], *, by_seed: bool) -> RunConfig:
    """The configuration of a new run with the full paths of the runs that its options name.

    Args:
        config: The configuration.
        given: Names of the options that the user gave.
        by_seed: See ``build_config``.

    Raises:
        ConfigError: There is no such run, this algorithm cannot start from it or imitate it, or a given option has no
            effect with it.
    """
    paths = {}
    for field in dataclasses.fields(config.options):
        name, value, choices = field.name, getattr(config.options, field.name), field.metadata.get("choices", ())
        kind = field.metadata.get("run")
        if not kind or value in choices:
            continue
        words = f"{', '.join(choices)} or a run's folder" if choices else "a run's folder"
        if not value:  # an empty path would be the current folder
            raise ConfigError(f"{name}: expected {words}, got none. Name one: `{name}='runs/...'`")
        try:
            other = open_run(_with_the_seed(as_path(value), config.settings.seed) if by_seed else value)
        except RunFolderError as error:
            hint = did_you_mean(value, choices)
            raise ConfigError(f"{name}: expected {words}, got {shortened(value)}: {error}{hint}") from None
        source = str(other.folder.path)
        if kind == "weights" and "initial_std" in given:
            raise ConfigError(
                f"initial_std: has no effect with `{name}={value!r}`, which has learned its own. Leave it out."
            )
        check_other_run(config, other.config, kind, name, source)
        if not updates_saved(other.folder):
            raise ConfigError(f"{name}: {source} has no checkpoint: it has learned nothing yet. Train it first.")
        paths[name] = str(other.folder.path.resolve())
    return dataclasses.replace(config, options=dataclasses.replace(config.options, **paths)) if paths else config


def _with_the_seed(path: Path, seed: int) -> Path:
    """The run with the same seed in a folder of several seeds; else the folder itself."""
    own = path / seed_name(seed)
    return own if own.is_dir() and not RunFolder(path).config.exists() else path


def _check_minibatches(options: Any, num_envs: int) -> None:
    """Checks that each minibatch gets a sequence or steps: two if advantages are scaled, since one alone would be 0."""
    if isinstance(options, RolloutConfig):
        least = 2 if getattr(options, "normalize_advantages", False) else 1  # an option of PPO
        if options.memory != "none":
            least = options.sequence_length
        most = num_envs * options.rollout_steps // least
        each = f"at most {most}, with at least {least} steps each"
        expect(options.minibatches <= most, "minibatches", each, options.minibatches)


def _check_draws_to_observe(config: RunConfig) -> None:
    """Checks that there are draws for a critic to observe, or for a memory to predict."""
    if config.randomization:
        return
    for name, what in (("critic_context", "observe"), ("predict_draw", "predict")):
        if getattr(config.options, name, 0):
            raise ConfigError(f"{name}: expected a randomization, so that there are draws to {what}; got none.")


def _check_actions(config: RunConfig, given: Collection[str]) -> None:
    """Refuses options of continuous actions where actions are discrete."""
    fields = [field for field in dataclasses.fields(config.options) if field.metadata.get("continuous")]
    chosen = [f.name for f in fields if f.name in given and getattr(config.options, f.name) != f.default]
    if chosen and has_discrete_actions(config.settings.env):
        raise ConfigError(
            f"{', '.join(chosen)}: has no effect on {config.settings.env}, whose actions are discrete. Leave it out."
        )


def _check_nothing_varies(settings: RunSettings, randomization: Any) -> None:
    """Refuses a randomization of an environment without parameters."""
    drawn = settings.resample_every or settings.sampler != UNIFORM
    none = randomization == "none" or (isinstance(randomization, Mapping) and not randomization)
    if drawn or settings.context != INFO or not none:
        raise ConfigError(
            f"env: {settings.env} has no parameters, so nothing would be randomized. Use "
            f"{randomized_id(settings.env) or 'gym_dr.register, for a function that wraps it'}, or train it as it "
            f"is, with `randomization='none'`."
        )


def _observed(space: ParamSpace, randomization: Randomization) -> ContextRanges:
    """The ranges of the parameters that a policy observes with ``context="observation"``."""
    if not randomization:
        raise ConfigError(
            "context: 'observation' adds the draw to the observation: expected a randomization, got none."
        )
    return {r.name: (r.low, r.high) for r in context_ranges(space, randomization)}
