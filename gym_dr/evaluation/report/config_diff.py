"""How the configurations of the compared policies differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gym_dr.evaluation.report.comparison import Group
from gym_dr.evaluation.report.page import Cell, Table
from gym_dr.runs.config import RunConfig


def config_diff(groups: Sequence[Group]) -> list[Table]:
    """A table with a row for each setting that is not the same in all policies, and a column for each policy.

    Returns:
        No table for a single policy.
    """
    if len(groups) < 2:
        return []
    configs = [group.config for group in groups]
    one_algorithm = len({config.algorithm for config in configs}) == 1
    settings = [_settings(config, with_options=one_algorithm) for config in configs]
    rows = _differing_rows(settings, missing="none")
    rows += _differing_rows([_draws(config) for config in configs], missing="nominal")
    notes = [] if one_algorithm else ["The algorithms' own settings are at the end of the page."]
    columns = ["Setting", *(group.name for group in groups)]
    return [Table(caption="What differs between the policies", columns=columns, rows=rows, notes=notes)]


def _differing_rows(settings: Sequence[dict[str, str]], missing: str) -> list[tuple[str, list[Cell]]]:
    """A row for each name whose value is not the same everywhere."""
    names = dict.fromkeys(name for values in settings for name in values)
    table = {name: [values.get(name, missing) for values in settings] for name in names}
    return [(name, [Cell(value=value) for value in row]) for name, row in table.items() if len(set(row)) > 1]


def _settings(config: RunConfig, *, with_options: bool) -> dict[str, str]:
    """Name -> value of every setting but the seed and the randomization, the algorithm's options optional."""
    form = config.to_dict()
    options = form.pop(config.algorithm)
    form.pop("randomization", None)
    del form["seed"]
    return {name: _text(value) for name, value in {**form, **(options if with_options else {})}.items()}


def _draws(config: RunConfig) -> dict[str, str]:
    """Parameter -> its distribution, without parameters that stay nominal."""
    if config.randomization is None:
        return {}
    draws = {f"draws of {name}": str(rule) for name, rule in config.randomization.rules}
    correlation = config.randomization.correlation
    return draws if correlation is None else {**draws, "correlation of draws": str(correlation)}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
