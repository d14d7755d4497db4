"""Reads logs of episodes of a real or simulated system.

An episode of T actions has T + 1 observations: the first one before the first action, and one after each action.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.errors import LogError, as_path, located, shortened
from gym_dr.fitting.archives import KINDS, SUFFIX, archives_in, read_archives

if TYPE_CHECKING:
    import pandas as pd

OBSERVATIONS, ACTIONS = "observations", "actions"  # arrays of an episode
EXPECTED = (
    f"an {SUFFIX} file, a folder of {SUFFIX} files, a pandas DataFrame, a mapping with observations and actions, or a "
    "list of these"
)

_TIME, _EPISODE = "time", "episode"
_Raw = tuple[str, Mapping[str, Any]]  # source, and what it holds by name


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedEpisode:
    """Observations and actions of one episode of T actions."""

    # (T + 1, n), the first one before the first action; while it is recorded, also others, as in a vector environment
    observations: Array
    actions: npt.NDArray[Any]  # (T, m) float64, or (T,) int64 for discrete actions
    time: Array | None = None  # (T + 1,) s, of the observations; None without
    others: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # by name: "qpos", "params/gravity"
    # how it is simulated, see ``clock.py``
    holds: Indices = field(default_factory=lambda: np.zeros(0, np.int64))  # (T,) steps of the environment in each step
    gaps: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))  # (T,) steps in which nobody knows what acted
    known: Mapping[str, Array] = field(default_factory=dict)  # parameters that the log tells: name -> (T,)
    source: str = "episode 0"  # begins messages: "flights/003.npz"

    def __len__(self) -> int:
        """T, the number of actions."""
        return len(self.actions)

    def __post_init__(self) -> None:
        """Lets each logged step be one of the environment, without gaps, unless it is told."""
        for name, value in (("holds", np.ones(len(self), np.int64)), ("gaps", np.zeros(len(self), np.bool_))):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"LoggedEpisode({self.source!r}, {len(self)} steps)"


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_log(source: Any) -> list[LoggedEpisode]:
    """Reads and checks a log.

    Example:
        >>> numpy.savez("flight.npz", observations=observations, actions=actions)  # (T + 1, n) and (T, m)
        >>> episodes = read_log("flight.npz")

    Args:
        source: One of these, or a list of them:

            - a path of an .npz file: one episode with the arrays ``observations`` (T + 1, n) and ``actions`` (T, m) or
              (T,), and optionally ``time`` (T + 1,), in s;
            - a folder of such files, read in the order of their names;
            - a mapping with the same keys, or a ``LoggedEpisode``;
            - a ``pandas.DataFrame`` with a row for each observation and the action that follows it: columns
              ``observation_0``, ... (or ``observation``), ``action_0``, ... (or ``action``), and optionally
              ``episode`` and ``time``. The action in the last row of an episode is not read, and may be missing.

            Arrays with other names, and columns of numbers, are kept in ``others``.

    Returns:
        The episodes, at least one. Observations and time are float64, actions float64 or int64; all are finite, but for
        observations that are nan: not measured at that time.

    Raises:
        LogError: Something is missing or damaged, does not fit together, or does not fit into memory.
    """
    found = [_episode(parts, place) for place, parts in _raw(source, "", itertools.count())]
    if not found:
        raise LogError(f"Expected a log of at least one episode, got an empty {type(source).__name__}.")
    return found


def _raw(source: Any, place: str, numbers: Iterator[int]) -> Iterator[_Raw]:
    """The content of a source, episode by episode.

    Args:
        source: See ``read_log``.
        place: Name for sources without a name of their own.
        numbers: For episodes without a name.
    """
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    if isinstance(source, LoggedEpisode):
        own = {OBSERVATIONS: source.observations, ACTIONS: source.actions, _TIME: source.time}
        yield source.source, {**source.others, **own}
    elif isinstance(source, str | os.PathLike):
        yield from _files(as_path(source))
    elif pandas is not None and isinstance(source, pandas.DataFrame):
        yield from _split(source, place or "the table")
    elif isinstance(source, Mapping):
        yield f"episode {next(numbers)}", source
    elif isinstance(source, Sequence):
        for i, one in enumerate(source):
            yield from _raw(one, f"table {i}", numbers)
    else:
        raise LogError(f"Expected a log: {EXPECTED}, got {type(source).__name__}: {shortened(source)}.")


def _files(path: Path) -> Iterator[_Raw]:
    is_folder = path.is_dir()
    if not is_folder and path.suffix.lower() != SUFFIX:
        raise LogError(
            f"{path}: expected {EXPECTED}, got no folder and no {SUFFIX} file. Write each episode with "
            f"numpy.savez, or read a table in Python: pandas.read_csv({str(path)!r})."
        )
    paths = archives_in(path) if is_folder else [path]
    yield from zip(map(str, paths), read_archives(paths), strict=True)


def _split(table: pd.DataFrame, place: str) -> Iterator[_Raw]:
    """The episodes of a data frame, in the order of their first rows."""
    table = table.rename(columns=str)
    seen, acted = (_numbered(table, what, place) for what in ("observation", "action"))
    others = [name for name in _columns_of_numbers(table) if name not in (*seen, *acted, _EPISODE)]
    if _TIME in table and _TIME not in others:
        raise LogError(
            f"{place}: {_TIME}: expected seconds, such as (t - t.iloc[0]).dt.total_seconds(), got text or dates."
        )
    whole = [("", table)] if len(table) else []
    groups = table.groupby(_EPISODE, sort=False, dropna=False) if _EPISODE in table else whole
    for label, rows in groups:
        values: dict[str, Any] = {name: rows[name].to_numpy(np.float64, na_value=np.nan) for name in others}
        values[OBSERVATIONS] = rows[seen].to_numpy(np.float64, na_value=np.nan)
        values[ACTIONS] = rows[acted].to_numpy(np.float64, na_value=np.nan)[:-1]
        yield f"{place}, {_EPISODE} {label}" if _EPISODE in table else place, values


def _columns_of_numbers(table: pd.DataFrame) -> list[str]:
    return list(map(str, table.select_dtypes(["number", "bool"]).columns))


def _numbered(table: pd.DataFrame, what: str, place: str) -> list[str]:
    """The columns ``what_0``, ``what_1``, ... in order, or ``what``."""
    found = [name for name in _columns_of_numbers(table) if re.fullmatch(rf"{what}(_[0-9]+)?", name)]
    if not found:
        raise LogError(f"{place}: expected numbers in columns {what}_0, ... or {what}, got {shortened(list(table))}.")
    return sorted(found, key=lambda name: (len(name), name))


def _episode(parts: Mapping[str, Any], place: str) -> LoggedEpisode:
    """Checks one episode."""
    with located(place):
        if missing := [name for name in (OBSERVATIONS, ACTIONS) if name not in parts]:
            listed = ", ".join(map(str, parts)) or "nothing"
            raise LogError(f"expected {OBSERVATIONS} (T + 1, n) and {ACTIONS} (T, m), got no {missing[0]}: {listed}.")
        observations = _numbers(OBSERVATIONS, parts[OBSERVATIONS]).astype(np.float64)
        actions = _numbers(ACTIONS, parts[ACTIONS])
        if observations.ndim != 2 or not observations.shape[1]:
            hint = ", or values[:, None] if each is a single number" if observations.ndim == 1 else ""
            raise LogError(f"{OBSERVATIONS}: expected shape (T + 1, n){hint}, got {observations.shape}.")
        if actions.ndim not in (1, 2) or not all(actions.shape[1:]):
            raise LogError(f"{ACTIONS}: expected shape (T, m), or (T,) for discrete actions, got {actions.shape}.")
        _check_lengths(len(observations), len(actions))
        _check_finite(OBSERVATIONS, np.nan_to_num(observations, posinf=np.inf, neginf=-np.inf))  # nan is not measured
        _check_finite(ACTIONS, actions)
        given = parts.get(_TIME)
        return LoggedEpisode(
            observations=observations,
            actions=actions,
            time=None if given is None else _time(given, len(observations)),
            others=_others(parts),
            source=place,
        )


def _numbers(name: str, given: Any) -> npt.NDArray[Any]:
    """Whole numbers as int64, others as float64; a new array."""
    try:
        values = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, or no array at all
        raise LogError(f"{name}: expected an array of numbers, got {shortened(given)}: {error}.") from None
    if values.dtype.kind not in "biuf":
        got = "Python objects, such as rows of different lengths" if values.dtype == object else str(values.dtype)
        raise LogError(f"{name}: expected numbers, got {got}.")
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _check_lengths(observed: int, acted: int) -> None:
    """Raises LogError unless there is one observation more than actions, and at least one action."""
    if observed != acted + 1 or acted < 1:
        raise LogError(
            f"expected one observation more than {ACTIONS}, of which there is at least one: the first before the first "
            f"action and one after each; got {observed} {OBSERVATIONS} and {acted} {ACTIONS}. If they are equally many "
            "and observation i was made before action i, leave out the last action; if after it, put the observation "
            "of the start first."
        )


def _check_finite(name: str, values: npt.NDArray[Any]) -> None:
    if not (finite := np.isfinite(values)).all():
        place = np.argwhere(~finite)[0].tolist()
        column = f", column {place[1]}" if len(place) > 1 else ""
        raise LogError(
            f"{name}: expected finite numbers, got {values[tuple(place)]} in row {place[0]}{column}. Split the episode "
            "there, or fill in the true value."
        )


def _time(given: Any, count: int) -> Array:
    time = _numbers(_TIME, given).astype(np.float64)
    if time.shape != (count,):
        raise LogError(f"{_TIME}: expected shape ({count},), one for each observation, got {time.shape}.")
    _check_finite(_TIME, time)
    if (wrong := np.flatnonzero(np.diff(time) <= 0)).size:
        row = int(wrong[0])
        raise LogError(
            f"{_TIME}: expected increasing times, got {time[row]:.9g} s in row {row} and {time[row + 1]:.9g} s in row "
            f"{row + 1}. Sort the rows, drop repeated ones, or split the episode where the clock was set."
        )
    return time


def _others(parts: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """All arrays but observations, actions and time."""
    given = {name: parts[name] for name in parts if name not in (OBSERVATIONS, ACTIONS, _TIME)}
    found: dict[str, npt.NDArray[Any]] = {}
    for name, value in given.items():
        try:
            found[str(name)] = np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise LogError(f"{name}: expected an array, got {shortened(value)}: {error}.") from None
        if found[str(name)].dtype.kind not in KINDS:
            raise LogError(f"{name}: expected numbers or texts, got {found[str(name)].dtype}. Leave it out.")
    return found
