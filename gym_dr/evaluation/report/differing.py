"""In what the compared policies' configurations differ: what a reader asks before which one is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gym_dr.evaluation.report.groups import Group
from gym_dr.evaluation.report.page import Cell, Table
from gym_dr.runs.config import RunConfig


def what_differs(groups: Sequence[Group]) -> list[Table]:
    """A table with a row for each setting that is not the same in all policies, and a column for each policy.

    Returns:
        No table for a single policy.
    """
    if len(groups) < 2:
        return []
    configs = [group.config for group in groups]
    one_algorithm = len({config.algorithm for config in configs}) == 1
    settings = [_settings(config, own=one_algorithm) for config in configs]
    draws = [_draws(config) for config in configs]
    rows = [*_unequal(settings, missing="none"), *_unequal(draws, missing="nominal")]
    notes = [] if one_algorithm else ["The algorithms' own settings are at the end of the page."]
    columns = ["Setting", *(group.name for group in groups)]
    return [Table(caption="What differs between the policies", columns=columns, rows=rows, notes=notes)]


def _unequal(known: Sequence[dict[str, str]], missing: str) -> list[tuple[str, list[Cell]]]:
    """A row for each name whose value is not the same everywhere."""
    table = {
        name: [values.get(name, missing) for values in known] for name in dict.fromkeys(n for v in known for n in v)
    }
    return [(name, [Cell(value=value) for value in row]) for name, row in table.items() if len(set(row)) > 1]


def _settings(config: RunConfig, *, own: bool) -> dict[str, str]:
    """Name -> value of every setting but the seed and the randomization; the algorithm's ``own`` if asked for."""
    form = config.to_dict()
    options = form.pop(config.algorithm)
    form.pop("randomization", None)
    del form["seed"]
    return {name: _text(value) for name, value in {**form, **(options if own else {})}.items()}


def _draws(config: RunConfig) -> dict[str, str]:
    """Parameter -> its distribution; nothing for those that keep their nominal values."""
    if config.randomization is None:
        return {}
    found = {f"draws of {name}": str(rule) for name, rule in config.randomization.rules}
    correlation = config.randomization.correlation
    return found if correlation is None else {**found, "correlation of draws": str(correlation)}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
