"""Makes the configuration of a run: ``build_config`` from keywords and a file, ``open_run`` from a run's folder.

Both check everything before the first step.
"""

from __future__ import annotations

import dataclasses
import difflib
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import family_of, randomized_id
from gym_dr.errors import ConfigError, RunFolderError, located, shortened
from gym_dr.options import check_fields, expect
from gym_dr.randomization.context import INFO, OBSERVATION, context_ranges
from gym_dr.randomization.presets import resolve, with_rules
from gym_dr.randomization.sampler import SAMPLERS, UNIFORM, Sampler
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.checkpoint import updates_saved
from gym_dr.runs.config import SETTINGS, OpenedRun, RunConfig, RunSettings
from gym_dr.runs.environments import (
    ContextRanges,
    check_env_id,
    check_module,
    check_sensors,
    check_vectorization,
    has_discrete_actions,
    param_space_of,
    training_info,
)
from gym_dr.runs.folder import RunFolder, seed_name
from gym_dr.runs.given import Given, check_given, make_options, option_names, read_config_file, read_named
from gym_dr.runs.other_runs import check_other_run
from gym_dr.training.api import Algorithm
from gym_dr.training.config import check_minibatches
from gym_dr.training.registry import find_algorithm
from gym_dr.wrappers.disturbed_space import split


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
    file = Given({}, {}, {}) if config is None else read_named(Path(config), algorithm)
    keywords = check_given(algorithm, given, file.settings.get("sampler", UNIFORM))
    if "env" not in given:
        check_module(file.settings.get("env", ""), trust)
    made = _make(algorithm, file, keywords._replace(randomization=randomization), randomize)
    check_minibatches(made.options, made.settings.num_envs)
    _check_draws_to_observe(made)
    found = _with_runs(made, keywords.options, by_seed=by_seed)
    _check_actions(found, keywords.options)  # not a file's: that of a run has all options, with its family's values
    return found


def open_run(path: str | Path, trust: Collection[str] = ()) -> OpenedRun:
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
        drawn = saved.pop("randomization", {})
        if isinstance(drawn, str):
            raise ConfigError("randomization: expected a table in a run's configuration, got a name.")
        if isinstance(drawn, Mapping):
            drawn = Randomization.from_dict(drawn)
        config = _make(algorithm, Given(**saved, randomization=drawn), Given({}, {}, {}), saved=True)
    return OpenedRun(folder=folder, config=config, algorithm=algorithm)


def _make(
    algorithm: Algorithm,
    file: Given,
    given: Given,
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
    _check_sampler(sampler, settings)
    of_file = file.sampler_options if file.settings.get("sampler", UNIFORM) == sampler.name else {}
    sampler_options = sampler.make_options({**of_file, **given.sampler_options})
    chosen = {**file.options, **given.options}
    if chosen.get("normalize_observations") is False:  # without it no sensor can be ignored
        for_algorithm.pop("ignored_sensors", None)
    options = make_options(algorithm, {**for_algorithm, **chosen})

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
    with warnings.catch_warnings():  # the run itself warns
        warnings.simplefilter("ignore")
        sampler.for_space(space, split(resolved)[0], sampler_options, training_info(settings.env, settings.num_envs))
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
    """Settings and options for which this environment overrides the algorithm's defaults.

    Raises:
        UnknownNameError: There is no such setting or option.
        ConfigError: A value has the wrong type.
    """
    family = family_of(env_id)
    defaults = family.defaults.get(algorithm.name, {}) if family is not None else {}
    own = option_names(algorithm)
    with located(f"Defaults of {env_id} for {algorithm.name}"):  # a plugin's, or a user's
        for_algorithm = {name: value for name, value in defaults.items() if name in own}
        others = {name: value for name, value in defaults.items() if name not in own}
        checked = check_fields(algorithm.config_class(), for_algorithm) | check_fields(RunSettings, others, also=own)
    return {name: checked[name] for name in defaults}


# ---- what fits together ----------------------------------------------------------------------------------------------


def _with_runs(config: RunConfig, given: Collection[str], *, by_seed: bool) -> RunConfig:
    """The configuration of a new run, with full paths of the runs that its options name; ``given`` are options' names.

    Raises:
        ConfigError: There is no such run, this algorithm cannot go on from it or imitate it, or it overrules an option.
    """
    paths = {}
    for field in dataclasses.fields(config.options):
        name, value, choices = field.name, getattr(config.options, field.name), field.metadata.get("choices", ())
        kind = field.metadata.get("run")
        if not kind or value in choices:
            continue
        words = f"{', '.join(choices)} or a run's folder" if choices else "a run's folder"
        if not value:  # which would be the current folder
            raise ConfigError(f"{name}: expected {words}, got none. Name one: `{name}='runs/...'`")
        try:
            other = open_run(_with_the_seed(Path(value), config.settings.seed) if by_seed else value)
        except RunFolderError as error:
            close = difflib.get_close_matches(value, choices, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{name}: expected {words}, got {shortened(value)}: {error}{hint}") from None
        source = str(other.folder.path)
        if kind == "weights" and "initial_std" in given:
            raise ConfigError(
                f"initial_std: has no effect with `{name}={value!r}`, whose standard deviation goes on. Leave it out."
            )
        check_other_run(config, other.config, kind, name, source)
        if not updates_saved(other.folder):
            raise ConfigError(f"{name}: {source} has no checkpoint: it has learned nothing yet. Train it first.")
        paths[name] = str(other.folder.path.resolve())
    return dataclasses.replace(config, options=dataclasses.replace(config.options, **paths)) if paths else config


def _with_the_seed(path: Path, seed: int) -> Path:
    """The run with the same seed, if a folder holds one for each of several seeds; else the folder itself."""
    own = path / seed_name(seed)
    return own if own.is_dir() and not RunFolder(path).config.exists() else path


def _check_sampler(sampler: Sampler, settings: RunSettings) -> None:
    """Checks that a sampler fits the other settings."""
    fixed_draws = sampler.name == UNIFORM or not settings.resample_every
    expected = f"0 with sampler {sampler.name}, which draws at each reset"
    expect(fixed_draws, "resample_every", expected, settings.resample_every)


def _check_draws_to_observe(config: RunConfig) -> None:
    """Checks that there are draws for a critic to observe, or for a memory to predict."""
    if config.randomization:
        return
    for name, what in (("critic_context", "observe"), ("predict_draw", "predict")):
        if getattr(config.options, name, 0):
            raise ConfigError(f"{name}: expected a randomization, whose draws to {what}; got none.")


def _check_actions(config: RunConfig, given: Collection[str]) -> None:
    """Checks that options that were given do not concern continuous actions where there are none."""
    fields = [field for field in dataclasses.fields(config.options) if field.metadata.get("continuous")]
    chosen = [f.name for f in fields if f.name in given and getattr(config.options, f.name) != f.default]
    if chosen and has_discrete_actions(config.settings.env):
        raise ConfigError(
            f"{', '.join(chosen)}: has no effect on {config.settings.env}, whose actions are discrete. Leave it out."
        )


def _check_nothing_varies(settings: RunSettings, randomization: Any) -> None:
    """Checks that a run on an environment without parameters wants none."""
    drawn = settings.resample_every or settings.sampler != UNIFORM
    none = randomization == "none" or (isinstance(randomization, Mapping) and not randomization)
    if drawn or settings.context != INFO or not none:
        raise ConfigError(
            f"env: {settings.env} has no parameters, so nothing would be randomized. Use "
            f"{randomized_id(settings.env) or 'a gym_dr/... id (gymdr list envs)'}, or train it as it is, with "
            f"`randomization='none'`."
        )


def _observed(space: ParamSpace, randomization: Randomization) -> ContextRanges:
    """The ranges of the parameters that a policy observes with ``context="observation"``."""
    if not randomization:
        raise ConfigError("context: expected a randomization with 'observation', which adds the draw to it; got none.")
    return {r.name: (r.low, r.high) for r in context_ranges(space, randomization)}
