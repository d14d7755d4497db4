"""Logs as tables: one row for each observation, with the action that follows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.errors import LogError, shortened

if TYPE_CHECKING:
    import pandas as pd

EPISODE, TIME = "episode", "time"
EXPECTED = (
    "observation_0, observation_1, ... (or observation), action_0, ... (or action), and optional episode and time"
)


def split_table(table: pd.DataFrame, place: str) -> list[tuple[str, dict[str, npt.NDArray[Any]]]]:
    """Splits a table into episodes.

    In each episode the last row's action is dropped, since no observation follows it; it may be missing.

    Args:
        table: Columns ``observation_0``, ... or ``observation``, ``action_0``, ... or ``action``, and optionally
            ``episode`` and ``time``; all others are kept.
        place: Begins the names of the episodes and the messages.

    Returns:
        For each episode its name, and its arrays by name, among them observations ``(T + 1, n)`` and actions ``(T, m)``
        or ``(T,)``.

    Raises:
        LogError: Columns are missing or hold something else than numbers, or rows are out of order.
    """
    columns = list(table.columns)
    if not all(isinstance(name, str) for name in columns):
        raise LogError(f"{place}: expected columns with names, {EXPECTED}, got {shortened(columns)}.")
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise LogError(f"{place}: column {twice[0]!r}: expected it once, got it {columns.count(twice[0])} times.")
    seen, acted = (_numbered(columns, what, place) for what in ("observation", "action"))
    observations = np.stack([_floats(table[name], place) for name in seen], axis=1)
    taken = [_numbers(table[name], place) for name in acted]
    actions = taken[0] if acted == ["action"] else np.stack(taken, axis=1)
    others = {name: _values(table[name], place) for name in columns if name not in (*seen, *acted, EPISODE)}
    found: list[tuple[str, dict[str, npt.NDArray[Any]]]] = []
    for label, first, last in _episodes(table, place):
        rest = {name: values[first:last] for name, values in others.items()}
        name = f"{place}, {EPISODE} {label}" if EPISODE in columns else place
        found.append((name, {"observations": observations[first:last], "actions": actions[first : last - 1], **rest}))
    return found


def _numbered(columns: Sequence[str], what: str, place: str) -> list[str]:
    """The columns ``what_0``, ``what_1``, ... in order, or ``what`` alone."""
    numbers = sorted(int(name.rpartition("_")[2]) for name in columns if re.fullmatch(rf"{what}_(0|[1-9][0-9]*)", name))
    if numbers and what in columns:
        raise LogError(f"{place}: expected columns {what}_0, ... or {what} alone, got both.")
    if not numbers and what not in columns:
        raise LogError(f"{place}: expected columns {EXPECTED}, got no {what} among {shortened(list(columns))}.")
    if missing := sorted(set(range(len(numbers))) - set(numbers)):
        raise LogError(
            f"{place}: expected columns {what}_0 to {what}_{len(numbers) - 1}, got {what}_{numbers[-1]} but no "
            f"{what}_{missing[0]}."
        )
    return [f"{what}_{number}" for number in numbers] or [what]


def _episodes(table: pd.DataFrame, place: str) -> list[tuple[str, int, int]]:
    """The label, first row and row after the last of each episode."""
    if not len(table):
        return []
    if EPISODE not in table.columns:
        return [("", 0, len(table))]
    labels = table[EPISODE]
    if (missing := np.flatnonzero(labels.isna().to_numpy())).size:
        raise LogError(f"{place}: column {EPISODE!r}: expected the episode of each row, got none in row {missing[0]}.")
    given = labels.to_numpy()
    starts: Indices = np.flatnonzero(np.append(True, given[1:] != given[:-1])).astype(np.int64)
    names = [f"{given[i]:g}" if isinstance(given[i], float | np.floating) else str(given[i]) for i in starts.tolist()]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise LogError(
            f"{place}: expected the rows of each {EPISODE} together, got some of {EPISODE} {name} after another "
            f"one. Sort them: table.sort_values(['{EPISODE}', '{TIME}'])."
        )
    return list(zip(names, starts.tolist(), [*starts[1:].tolist(), len(table)], strict=True))


def _numbers(column: pd.Series[Any], place: str) -> npt.NDArray[Any]:
    """A column of whole numbers as int64, of others as float64, NaN where a value is missing."""
    values = column.to_numpy()
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    return _floats(column, place)


def _floats(column: pd.Series[Any], place: str) -> Array:
    """A column of numbers, NaN where a value is missing."""
    dtype = column.dtype
    if getattr(dtype, "kind", "O") not in "biuf":
        kept = column.dropna()
        wrong = next((value for value in kept if not isinstance(value, int | float | np.number)), None)
        hint = " Seconds since the first row: (t - t.iloc[0]).dt.total_seconds()." if dtype.kind in "mM" else ""
        if wrong is not None or dtype.kind != "O":
            got = shortened(wrong) if dtype.kind == "O" else str(dtype)
            raise LogError(f"{place}: column {column.name!r}: expected numbers, got {got}.{hint}")
    values: Array = column.to_numpy(np.float64, na_value=np.nan)
    return values


def _values(column: pd.Series[Any], place: str) -> npt.NDArray[Any]:
    """A column of numbers or texts."""
    if getattr(column.dtype, "kind", "O") in "biuf" or column.name == TIME:
        return _numbers(column, place)
    texts = [value for value in column if isinstance(value, str)]
    return np.array(texts) if len(texts) == len(column) else _floats(column, place)
