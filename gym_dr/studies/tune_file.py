"""The plan of a tuning, read from a file and checked before anything is trained."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from gym_dr.errors import ConfigError, check_known, located, raised_as, shortened
from gym_dr.evaluation.sets import TRAINING, CellSet, draws
from gym_dr.evaluation.suite import sets_of
from gym_dr.options import expect
from gym_dr.runs.config import RunConfig
from gym_dr.studies.variants import Head, Variant, VariantFile, opened

FIXED = ("env", "seed", "reserved_seeds", "eval_episodes", "updates")  # the same for all trials
# Optuna's classes that need no further package, are not experimental and store no pickles
OPTUNA_CLASSES = {
    "sampler": ("TPESampler", "GPSampler", "RandomSampler"),
    "pruner": (
        *("MedianPruner", "PercentilePruner", "SuccessiveHalvingPruner", "HyperbandPruner", "ThresholdPruner"),
        "NopPruner",
    ),
}
# besides tables for the algorithm and the sampler of draws -> keys that are in no other table
TUNING_TABLES = {
    **dict.fromkeys(("settings", "randomization", "randomize", "search"), ()),
    **{"evaluation": ("episodes",), "optuna": tuple(OPTUNA_CLASSES)},
}
DEFAULTS = {"sampler": "TPESampler", "pruner": {"name": "MedianPruner", "n_warmup_steps": 4}}


@dataclass(frozen=True, kw_only=True)
class TuningHead(Head):
    """The top-level keys of a tuning's file that are not tables."""

    algorithm: str = "ppo"
    trials: int = 0


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The search, its seeds and its evaluation.

    Attributes:
        file: The file that defines it.
        head: The file's top-level keys.
        search: Option -> its range or choices.
        cells: The set on which a trial is evaluated; its value is the mean return there.
        sampler: Makes Optuna's sampler from a seed.
        pruner: Makes Optuna's pruner.
    """

    file: VariantFile
    head: TuningHead
    search: Mapping[str, optuna.distributions.BaseDistribution]
    cells: CellSet
    sampler: functools.partial[optuna.samplers.BaseSampler]
    pruner: functools.partial[optuna.pruners.BasePruner]

    def variant(self, params: Mapping[str, Any]) -> Variant:
        """The variant that a trial with these of Optuna's params trains."""
        return _variant(self.file, self.head, params)

    def sampler_of(self, trial: int, worker: int) -> optuna.samplers.BaseSampler:
        """The sampler of one trial of a worker, with its own random numbers."""
        numbers = np.random.SeedSequence([self.sampler.keywords.get("seed", 0), trial, worker])
        return self.sampler(seed=int(numbers.generate_state(1)[0]))

    @property
    def first(self) -> dict[str, Any]:
        """Params of the first trial: the values that hold without a search, if the search allows them."""
        known = _known(self.variant({}).config)
        return {name: _label(known[name]) for name, one in self.search.items() if _allows(one, _label(known[name]))}

    def to_dict(self) -> dict[str, Any]:
        """The content of ``tune.json``: everything that a trial's value depends on."""
        return {
            "config": self.variant({}).config.to_dict(),
            "search": {name: repr(one) for name, one in self.search.items()},
            "evaluation": self.cells.to_dict(),
        }


def read_tuning(given: str | Path | Mapping[str, Any], trust: Collection[str] = ()) -> Tuning:
    """Reads a tuning from a TOML or JSON file, or from a mapping of the same content, and checks all of it.

    Raises:
        UnknownNameError: A key, option, environment, preset, parameter, sampler or pruner is unknown.
        ConfigError: The file cannot be read, a value cannot be used, or budgets would differ.
        RandomizationError: A range is impossible.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # gym_dr shows progress
    with opened(given, trust) as file:
        return _read(file)


def _read(file: VariantFile) -> Tuning:
    head = file.head(TuningHead, TUNING_TABLES)
    expect(head.trials >= 1, "trials", "at least 1, such as trials = 40", head.trials)
    base = _variant(file, head, {})
    file.check_used([base])
    known = _known(base.config)
    search = {name: _distribution(name, form, known) for name, form in file.inner("search").items()}
    _check_budgets(search, head, base.config)
    for end in (0, -1):  # each value of an option, with the first and the last values of all others
        others = {name: _extremes(one)[end] for name, one in search.items()}
        for name, one in search.items():
            for value in _extremes(one):
                with located(f"[search]: {name} = {value}"):
                    _variant(file, head, {**others, name: value})
    chosen = {**DEFAULTS, **file.inner("optuna")}
    with located("[optuna]"):
        for name in chosen:
            check_known("key", name, OPTUNA_CLASSES)
        sampler, pruner = (_maker(kind, chosen[kind]) for kind in OPTUNA_CLASSES)
    with located("[evaluation]"):
        cells = _cells(file, base.config)
    return Tuning(file=file, head=head, search=search, cells=cells, sampler=sampler, pruner=pruner)


def _variant(file: VariantFile, head: TuningHead, params: Mapping[str, Any]) -> Variant:
    """The variant of a trial; the tuning's seeds are reserved."""
    values = {name: json.loads(one) if str(one)[:1] == "[" else one for name, one in params.items()}
    made = file.variant("trial", values, head)
    config = made.config
    reserved = tuple(dict.fromkeys([*config.settings.reserved_seeds, *head.seeds]))
    settings = replace(config.settings, reserved_seeds=reserved, eval_episodes=0)  # the tuning itself evaluates
    return replace(made, config=replace(config, settings=settings))


def _known(config: RunConfig) -> dict[str, Any]:
    """All settings and options of a configuration."""
    parts = (config.settings, config.options, config.sampler_options)
    return {name: value for part in parts if part is not None for name, value in vars(part).items()}


def _label(value: Any) -> Any:
    """A value as Optuna stores it: lists as text."""
    return json.dumps(value) if isinstance(value, list | tuple) else value


def _distribution(name: str, form: Any, known: Mapping[str, Any]) -> optuna.distributions.BaseDistribution:
    """The range or the choices of an option in ``known``."""
    with located(f"[search]: {name}"):
        check_known("option", name, known.keys() - {*FIXED})
        expected = "expected { low = ..., high = ... } or { choices = [...] }"
        if not isinstance(form, Mapping) or not isinstance(form.get("choices", []), list | tuple):
            raise ConfigError(f"{expected}, got {shortened(form)}.")
        with raised_as(ConfigError, f"{expected}, got {shortened(form)}", (TypeError, ValueError)):
            if "choices" in form:
                return optuna.distributions.CategoricalDistribution(
                    **{**form, "choices": [*map(_label, form["choices"])]}
                )
            whole = isinstance(known[name], int)
            if not all(isinstance(one, int if whole else int | float) for one in form.values()):
                raise ValueError(f"only {'whole ' if whole else ''}numbers are possible.")
            return (optuna.distributions.IntDistribution if whole else optuna.distributions.FloatDistribution)(**form)


def _extremes(one: Any) -> tuple[Any, ...]:
    """All choices, or both ends of a range."""
    return tuple(getattr(one, "choices", ())) or (one.low, one.high)


def _allows(one: Any, value: Any) -> bool:
    """Whether a trial may have a value."""
    if choices := getattr(one, "choices", ()):
        return value in choices
    return value is not None and one.low <= value <= one.high and not (one.step and (value - one.low) % one.step)


def _check_budgets(search: Collection[str], head: TuningHead, base: RunConfig) -> None:
    """Checks that all trials train for the same number of environment steps."""
    if not search:
        raise ConfigError("[search]: expected options, such as gamma = { low = 0.98, high = 0.999 }; got none.")
    unequal = sorted({"num_envs", "rollout_steps"} & {*search})
    if unequal and head.total_steps is None and base.steps_per_update is not None:
        raise ConfigError(
            f"[search]: {', '.join(unequal)}: expected total_steps = ... at the top of the file, got none, so trials "
            "would train for different numbers of environment steps."
        )


def _cells(file: VariantFile, config: RunConfig) -> CellSet:
    """The set on which trials are evaluated: training draws, or draws that the file names."""
    table = file.inner("evaluation")
    for name in table:
        check_known("key", name, ("episodes", "randomization"))
    named, trained = file.beside(table.get("randomization")), config.randomization
    chosen = [] if named is None else [draws(named)]
    trainings = {TRAINING: trained} if trained else {}
    return sets_of(config.settings.env, config.space, chosen, trainings, table.get("episodes"))[-1]


def _maker(kind: str, given: Any) -> functools.partial[Any]:
    """Makes a sampler or pruner from the name of Optuna's class, or a table with its name and keywords."""
    form = {"name": given} if isinstance(given, str) else given
    if not isinstance(form, Mapping) or "name" not in form:
        raise ConfigError(f'{kind}: expected a name or {{ name = "...", ... }}, got {shortened(given)}.')
    check_known(kind, form["name"], OPTUNA_CLASSES[kind])
    keywords = {key: value for key, value in form.items() if key != "name"}
    make = functools.partial(getattr(getattr(optuna, f"{kind}s"), form["name"]), **keywords)
    with raised_as(ConfigError, f"{kind}: expected possible options of {form['name']}", (TypeError, ValueError)):
        make()
    return make
