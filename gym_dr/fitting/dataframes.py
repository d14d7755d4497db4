"""Logs as data frames: a row for each observation, with the action that follows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import LogError, shortened

if TYPE_CHECKING:
    import pandas as pd

EPISODE, TIME = "episode", "time"
EXPECTED = (
    "observation_0, observation_1, ... (or observation), action_0, ... (or action), and optional episode and time"
)


def split_dataframe(table: pd.DataFrame, place: str) -> list[tuple[str, dict[str, npt.NDArray[Any]]]]:
    """Splits a data frame into episodes.

    The action in the last row of each episode is dropped and may be missing, since no observation follows it.

    Args:
        table: Columns ``observation_0``, ... or ``observation``, ``action_0``, ... or ``action``, and optionally
            ``episode`` and ``time``; other columns are kept.
        place: Name of the table, at the start of the names of episodes and of messages.

    Returns:
        For each episode its name and its arrays by name, with observations ``(T + 1, n)`` and actions ``(T, m)`` or
        ``(T,)``.

    Raises:
        LogError: Columns are missing or are not numbers, or rows are out of order.
    """
    table = table.rename(columns=str)
    columns = list(table.columns)
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise LogError(f"{place}: column {twice[0]!r}: expected it once, got it {columns.count(twice[0])} times.")
    seen, acted = (_numbered(columns, what, place) for what in ("observation", "action"))
    values = {name: _values(table[name], place) for name in columns if name != EPISODE}
    observations = np.stack([values.pop(name) for name in seen], axis=1)
    taken = [values.pop(name) for name in acted]
    actions = taken[0] if acted == ["action"] else np.stack(taken, axis=1)
    found: list[tuple[str, dict[str, npt.NDArray[Any]]]] = []
    for label, first, end in _episodes(table, place):
        rest = {name: column[first:end] for name, column in values.items()}
        name = f"{place}, {EPISODE} {label}" if label else place
        found.append((name, {"observations": observations[first:end], "actions": actions[first : end - 1], **rest}))
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
    if labels.isna().any():
        raise LogError(f"{place}: column {EPISODE!r}: expected the episode of each row, got rows without one.")
    starts = np.flatnonzero((labels != labels.shift()).to_numpy())
    if len(starts) > labels.nunique():
        raise LogError(
            f"{place}: expected the rows of each {EPISODE} together, got them interrupted by another. Sort them: "
            f"table.sort_values(['{EPISODE}', '{TIME}'])."
        )
    names = [f"{label:g}" if isinstance(label, float) else str(label) for label in labels.iloc[starts]]
    return list(zip(names, starts.tolist(), [*starts[1:].tolist(), len(table)], strict=True))


def _values(column: pd.Series[Any], place: str) -> npt.NDArray[Any]:
    """A column as int64, as float64 with NaN for missing values, or as texts."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "mM":
        hint = "Seconds since the first row: (t - t.iloc[0]).dt.total_seconds()."
        raise LogError(f"{place}: column {column.name!r}: expected numbers, got {column.dtype}. {hint}")
    if kind in "biu" and not column.isna().any():
        return column.to_numpy(np.int64)
    try:
        return column.to_numpy(np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        return np.array(list(map(str, column)))
