"""Defines a tuning and reads it from a file, with all checks before anything is trained."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.errors import ConfigError, check_known, located, shortened
from gym_dr.evaluation.sets import TRAINING, draws
from gym_dr.evaluation.suite import sets_of
from gym_dr.options import check_fields, expect, is_whole
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.registry import needs
from gym_dr.runs.config import RunConfig, RunSettings, with_total_steps
from gym_dr.studies.plan import check_distinct, inner_table, make_variant, randomization_beside, read_plan
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS

if TYPE_CHECKING:
    import optuna

    from gym_dr.evaluation.sets import CellSet

TABLES = ("settings", "randomization", "randomize", "search", "evaluation", "optuna")
FIXED = ("env", "seed", "reserved_seeds", "eval_episodes", "updates")  # the same for all trials
# of Optuna's classes: those that need no further package, are no experiments and store no pickles
KNOWN = {
    "sampler": ("TPESampler", "GPSampler", "RandomSampler"),
    "pruner": (
        *("MedianPruner", "PercentilePruner", "SuccessiveHalvingPruner", "HyperbandPruner", "ThresholdPruner"),
        "NopPruner",
    ),
}
PRUNER = {"name": "MedianPruner", "n_warmup_steps": 4}  # before the fourth of ten reports, returns say little


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is tuned, on which seeds, and what counts."""

    env: str
    seeds: tuple[int, ...]
    trials: int
    algorithm: Algorithm
    search: Mapping[str, optuna.distributions.BaseDistribution]  # option -> its range or choices
    config: Callable[[Mapping[str, Any]], RunConfig]  # what a trial's params stand for, with the first seed
    first: Mapping[str, Any]  # params of the first trial: the values without a search, where trials may have them
    cells: CellSet  # whose mean return is maximized
    sampler: Callable[[int, int], optuna.samplers.BaseSampler]  # called with the number of a trial and of a worker
    pruner: Callable[[], optuna.pruners.BasePruner]
    decisive: Mapping[str, Any]  # all that decides on the value of a trial, as in ``tune.json``


@dataclass(frozen=True, kw_only=True)
class _Head:
    """The top-level keys of a file that are not tables."""

    env: str = RunSettings.env
    algorithm: str = "ppo"
    seeds: tuple[int, ...] = ()
    trials: int = 0
    total_steps: int | None = None


def read_tuning(given: str | Path | Mapping[str, Any], trust: Collection[str] = ()) -> Tuning:
    """Reads a tuning from a TOML or JSON file, or from a mapping of the same content, and checks all of it.

    Raises:
        UnknownNameError: A key, option, environment, preset, parameter, sampler or pruner is unknown.
        ConfigError: Optuna is missing, the file cannot be read, a value cannot be used, or budgets would differ.
        RandomizationError: A range is impossible.
    """
    needs("Tuning", "tune", "optuna")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # progress is ours
    return read_plan(given, trust, _read)


def _read(table: Mapping[str, Any], file: Path | None) -> Tuning:
    parts = [name for name in table if name in ALGORITHMS or name in SAMPLERS]
    top = {name: value for name, value in table.items() if name not in (*TABLES, *parts)}
    head = _Head(**check_fields(_Head, top, also=(*TABLES, *ALGORITHMS, *SAMPLERS)))
    check_distinct("seeds", head.seeds)
    if not head.seeds or head.trials < 1:
        example = "seeds that no report will have and a number of trials, such as seeds = [1001, 1002] and trials = 40"
        raise ConfigError(f"Expected {example}; got seeds = {list(head.seeds)} and trials = {head.trials}.")
    make = functools.partial(_config, table, file, head)
    algorithm, base = make({})
    if unused := set(parts) - {head.algorithm, base.settings.sampler}:
        raise ConfigError(f"[{unused.pop()}]: expected options of the algorithm or of the sampler.")
    known: dict[str, Any] = {**vars(base.settings), **vars(base.options)}
    known |= vars(base.sampler_options) if base.sampler_options else {}
    search = {name: _distribution(name, form, known) for name, form in inner_table(table, "search").items()}
    _check_budgets(search, head, base, table)
    for end in (0, -1):  # each value of an option, with the first and with the last values of all others
        others = {name: _extremes(one)[end] for name, one in search.items()}
        for name, one in search.items():
            for value in _extremes(one):
                with located(f"[search]: {name} = {value}"):
                    make({**others, name: value})
    chosen, judged = inner_table(table, "optuna"), inner_table(table, "evaluation")
    for name in (*chosen, *judged):
        check_known("key", name, KNOWN if name in chosen else ("episodes", "randomization"))
    with located("[evaluation]"):
        cells = _cells(judged, base, file)
    labels = {name: _label(value) for name, value in known.items()}
    return Tuning(
        **{name: getattr(head, name) for name in ("env", "seeds", "trials")},
        algorithm=algorithm,
        search=search,
        config=lambda params: make(params)[1],
        first={name: labels[name] for name, one in search.items() if _may_be(one, labels[name])},
        cells=cells,
        sampler=functools.partial(_sampler, _part("sampler", chosen.get("sampler", "TPESampler"))),
        pruner=_part("pruner", chosen.get("pruner", PRUNER)),
        decisive={
            "config": base.to_dict(),
            "search": {name: repr(one) for name, one in search.items()},
            "evaluation": cells.to_dict(),
        },
    )


def _config(table: Mapping[str, Any], file: Path | None, head: _Head, params: Mapping[str, Any]) -> Any:
    """The algorithm and the configuration with a trial's params; the seeds that are tuned on are reserved."""
    values = {name: json.loads(one) if str(one)[:1] == "[" else one for name, one in params.items()}
    made = make_variant("trial", values, table, file, env=head.env, algorithm=head.algorithm, seeds=head.seeds)
    config = made.config if head.total_steps is None else with_total_steps(made.config, head.total_steps)
    reserved = tuple(dict.fromkeys([*config.settings.reserved_seeds, *head.seeds]))
    settings = dataclasses.replace(config.settings, reserved_seeds=reserved, eval_episodes=0)  # the tuning evaluates
    return made.algorithm, dataclasses.replace(config, settings=settings)


def _label(value: Any) -> Any:
    """A value as Optuna stores it: lists are text there."""
    return json.dumps(value) if isinstance(value, list | tuple) else value


def _distribution(name: str, form: Any, known: Mapping[str, Any]) -> optuna.distributions.BaseDistribution:
    """The range or the choices of an option, which has a value in ``known``."""
    from optuna import distributions

    with located(f"[search]: {name}"):
        check_known("option", name, known.keys() - {*FIXED})
        expected = "expected { low = ..., high = ... } or { choices = [...] }"
        if not isinstance(form, Mapping) or not isinstance(form.get("choices", []), list | tuple):
            raise ConfigError(f"{expected}, got {shortened(form)}.")
        try:
            if "choices" in form:
                return distributions.CategoricalDistribution(**{**form, "choices": [*map(_label, form["choices"])]})
            whole = isinstance(known[name], int)
            if not all(isinstance(one, int if whole else int | float) for one in form.values()):
                raise ValueError(f"only {'whole ' if whole else ''}numbers are possible.")
            return (distributions.IntDistribution if whole else distributions.FloatDistribution)(**form)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{expected}, got {shortened(form)}: {error}") from None


def _extremes(one: Any) -> tuple[Any, ...]:
    """All choices, or both ends of a range."""
    return tuple(getattr(one, "choices", ())) or (one.low, one.high)


def _may_be(one: Any, value: Any) -> bool:
    """Whether a trial may have a value."""
    if choices := getattr(one, "choices", ()):
        return value in choices
    return value is not None and one.low <= value <= one.high and not (one.step and (value - one.low) % one.step)


def _check_budgets(search: Collection[str], head: _Head, base: RunConfig, table: Mapping[str, Any]) -> None:
    """Checks that all trials train for the same number of environment steps."""
    if not search:
        raise ConfigError("[search]: expected options, such as gamma = { low = 0.98, high = 0.999 }; got none.")
    if head.total_steps is not None and "updates" in inner_table(table, head.algorithm):
        raise ConfigError("Expected updates or total_steps, got both.")
    unequal = sorted({"num_envs", "rollout_steps"} & {*search})
    if unequal and head.total_steps is None and base.steps_per_update is not None:
        raise ConfigError(
            f"[search]: {', '.join(unequal)}: expected total_steps = ... at the top of the file, got none, so trials "
            "would train for different numbers of environment steps."
        )


def _cells(judged: Mapping[str, Any], config: RunConfig, file: Path | None) -> CellSet:
    """The episodes that count: those of ``gymdr evaluate`` on the training draws, or on draws that the file names."""
    from gym_dr.evaluation.sets import CellSet  # heavy

    episodes = judged.get("episodes", 100)
    expect(is_whole(episodes), "episodes", "a whole number", episodes)
    named = randomization_beside(file, judged.get("randomization"))
    if named is not None:
        return sets_of(config.settings.env, config.space, draws(named), {}, episodes)[-1]
    if not config.randomization:
        return CellSet.nominal(episodes)
    return CellSet.of_draws(TRAINING, config.randomization, episodes)


def _sampler(make: functools.partial[Any], trial: int, worker: int) -> optuna.samplers.BaseSampler:
    """The sampler of one trial of a worker, which has random numbers of its own."""
    numbers = np.random.SeedSequence([make.keywords.get("seed", 0), trial, worker])
    made: optuna.samplers.BaseSampler = make(seed=int(numbers.generate_state(1)[0]))
    return made


def _part(what: str, given: Any) -> functools.partial[Any]:
    """What makes a sampler or a pruner: the name of a class of Optuna, or a table with its keywords."""
    import optuna

    form = {"name": given} if isinstance(given, str) else given
    if not isinstance(form, Mapping) or "name" not in form:
        raise ConfigError(f'[optuna]: {what}: expected a name or {{ name = "...", ... }}, got {shortened(given)}.')
    with located("[optuna]"):
        check_known(what, form["name"], KNOWN[what])
        keywords = {key: value for key, value in form.items() if key != "name"}
        make = functools.partial(getattr(getattr(optuna, f"{what}s"), form["name"]), **keywords)
        try:
            make()
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{what}: expected possible options of {form['name']}: {error}") from None
    return make
